"""Placing a batch of entries whose `seq` was allocated elsewhere.

What the locks protect is read again once they are held: when an erasure came in between, the batch starts over and
drops what it must. Owners are locked by name, then conversations by owner and name: two workers that share some of
them wait, and never in a circle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from threadkeep.archive.append import looked_up, remember
from threadkeep.archive.front_row import front
from threadkeep.archive.message_rows import insert_messages, row_of
from threadkeep.archive.placing import Decision, Held, contradicts_itself, decide, dropped, message_digests
from threadkeep.db.dialects import Dialect, read_id
from threadkeep.db.messages import (
    LOCKED_COLUMNS,
    LockedConversation,
    Span,
    create_conversations,
    generation_of,
    latest_activities,
    lock_or_create,
    moment,
    refuse_if_older,
)
from threadkeep.db.statements import Change, ChangeEach, Query, Raced, Steps, Verb
from threadkeep.ports.fronts import Claim
from threadkeep.ports.placing import Entry, Placed
from threadkeep.scope import Scope
from threadkeep.wording import ErasedTexts, is_the_users

_Owner = tuple[str, str]
_Name = tuple[int, str]  # an owner's row and a conversation's name
_ROWS_AT_ONCE = 100
_GROWN = (
    "last_seq",
    "messages",
    "terms",
    "language",
    "status",
    "activity",
    "last_activity_at",
    "session_started_at",
    "session_expires_at",
)


@dataclass(slots=True)
class _Target:
    conversation: LockedConversation
    held: Held = field(default_factory=Held)


class _Decided(NamedTuple):
    entry: Entry
    target: _Target
    decision: Decision
    words: Sequence[Sequence[int]]

    @property
    def rows(self) -> list[dict[str, Any]]:
        by_id = {message.id: own for message, own in zip(self.entry.messages, self.words, strict=True)}
        cid, uid = self.target.conversation.cid, self.target.conversation.uid
        return [row_of(cid, uid, new.seq, new, by_id[new.id]) for new in self.decision.messages]


def place(
    entries: Sequence[Entry],
    words: Sequence[Sequence[Sequence[int]]],
    session_ttl: int,
    claim: Claim,
    erased_texts: ErasedTexts,
    dialect: Dialect,
) -> Verb[list[Placed]]:
    claim.check_hot_store((yield from front()))
    answers, _ = yield from _dropped(entries, erased_texts, dialect)
    for number, entry in enumerate(entries):
        if number not in answers and (conflict := contradicts_itself(entry)) is not None:
            answers[number] = conflict
    live = {number: entry for number, entry in enumerate(entries) if number not in answers}
    if live:
        targets = yield from _lock_targets(list(live.values()), session_ttl, dialect)
        raced, erased = yield from _dropped(list(live.values()), erased_texts, dialect)
        if raced:
            raise Raced
        decided = [
            _Decided(entry, target, decide(entry, target.held, erased), words[number])
            for (number, entry), target in zip(live.items(), targets, strict=True)
        ]
        yield from _store(decided, session_ttl, dialect)
        answers |= {number: one.decision.placed for number, one in zip(live, decided, strict=True)}
    return [answers[number] for number in range(len(entries))]


def leave_gap(scope: Scope, size: int, span: Span, dialect: Dialect) -> Verb[int]:
    conversation = yield from lock_or_create(scope, span, dialect)
    refuse_if_older(scope, (yield from generation_of(scope)))
    last = conversation.last_seq + size
    yield Change(
        "UPDATE tk_conversations SET last_seq = :last WHERE cid = :cid", {"last": last, "cid": conversation.cid}
    )
    return last


def _dropped(
    entries: Sequence[Entry], erased_texts: ErasedTexts, dialect: Dialect
) -> Verb[tuple[dict[int, Placed], set[bytes]]]:
    """By number, the entries of which nothing may be stored; and every tombstone that any of them met."""
    scopes = {scope.digest() for entry in entries for scope in (entry.scope, entry.scope.whole_user)}
    there, values = dialect.in_list("place", "place", sorted(scopes))
    rows = yield Query(f"SELECT place, generation FROM tk_generations WHERE {there}", values)  # noqa: S608
    raised = {bytes(where): generation for where, generation in rows}
    digests = {digest for entry in entries for digest in message_digests(entry)}
    digests |= {entry.key.digest for entry in entries if entry.key is not None}
    marks = {number: erased_texts.mark(entry.scope) for number, entry in enumerate(entries) if _by_others(entry)}
    these, values = dialect.in_list("digest", "digest", sorted(digests.union(marks.values())))
    rows = yield Query(f"SELECT digest FROM tk_tombstones WHERE {these}", values)  # noqa: S608
    erased = {bytes(row[0]) for row in rows}
    for entry in [entries[number] for number, mark in marks.items() if mark in erased]:
        refused = yield from looked_up(erased_texts.refused(entry.scope, entry.messages), dialect)
        erased |= {entry.scope.digest("message", id_) for id_ in refused}
    verdicts = (dropped(entry, _generation(entry.scope, raised), erased) for entry in entries)
    return {number: verdict for number, verdict in enumerate(verdicts) if verdict is not None}, erased


def _by_others(entry: Entry) -> bool:
    return not all(map(is_the_users, entry.messages))


def _generation(scope: Scope, raised: Mapping[bytes, int]) -> int:
    if not raised:
        return 0
    return raised.get(scope.digest(), 0) + raised.get(scope.whole_user.digest(), 0)


def _lock_targets(entries: Sequence[Entry], ttl: int, dialect: Dialect) -> Verb[list[_Target]]:
    """One for each entry, in order; entries of the same conversation share theirs."""
    uids = yield from _hold_owners(sorted({_owner(entry) for entry in entries}), dialect)
    names = [(uids[_owner(entry)], entry.scope.require_conversation()) for entry in entries]
    first: dict[_Name, Span] = {}
    for name, entry in zip(names, entries, strict=True):
        first.setdefault(name, Span(moment(entry.at), ttl))
    locked = yield from _lock(first, dialect)
    targets = {name: _Target(found, Held(last_seq=found.last_seq)) for name, found in locked.items()}
    found = [targets[name] for name in names]
    yield from _read_held(list(zip(found, entries, strict=True)), dialect)
    return found


def _owner(entry: Entry) -> _Owner:
    return entry.scope.tenant, entry.scope.user


def _hold_owners(names: Sequence[_Owner], dialect: Dialect) -> Verb[dict[_Owner, int]]:
    found = yield from _owners(names, dialect)
    missing = [name for name in names if name not in found]
    if missing:
        insert = f"INSERT INTO tk_owners (tenant, user_id) VALUES (:tenant, :user){dialect.if_absent('tenant')}"  # noqa: S608
        yield ChangeEach(insert, [{"tenant": dialect.id(tenant), "user": dialect.id(user)} for tenant, user in missing])
        found = yield from _owners(names, dialect)
    if len(found) < len(names):
        raise Raced
    return found


def _owners(names: Sequence[_Owner], dialect: Dialect) -> Verb[dict[_Owner, int]]:
    bound = [(dialect.id(tenant), dialect.id(user)) for tenant, user in names]
    these, values = dialect.in_pairs(("tenant", "user_id"), ("text", "text"), "owner", bound)
    rows = yield Query(
        f"SELECT tenant, user_id, uid FROM tk_owners WHERE {these} ORDER BY tenant, user_id{dialect.locked_shared}",  # noqa: S608
        values,
    )
    return {(read_id(tenant), read_id(user)): uid for tenant, user, uid in rows}


def _lock(wanted: Mapping[_Name, Span], dialect: Dialect) -> Verb[dict[_Name, LockedConversation]]:
    names = sorted(wanted)
    found = yield from _conversations(names, dialect)
    missing = [name for name in names if name not in found]
    if missing:
        yield from create_conversations({name: wanted[name] for name in missing}, dialect)
        found = yield from _conversations(names, dialect)
    if len(found) < len(names):
        raise Raced
    return found


def _conversations(names: Sequence[_Name], dialect: Dialect) -> Verb[dict[_Name, LockedConversation]]:
    bound = [(uid, dialect.id(name)) for uid, name in names]
    these, values = dialect.in_pairs(("c.uid", "c.conversation"), ("bigint", "text"), "name", bound)
    rows = yield Query(
        f"SELECT c.conversation, {LOCKED_COLUMNS} FROM tk_conversations c WHERE {these}"  # noqa: S608
        f" ORDER BY c.uid, c.conversation{dialect.locked}",
        values,
    )
    return {(row[2], read_id(row[0])): LockedConversation(*row[1:]) for row in rows}


def _read_held(targeted: Sequence[tuple[_Target, Entry]], dialect: Dialect) -> Steps:
    """In statements of their own: what was committed until the locks were ours."""
    held = {target.conversation.cid: target.held for target, _ in targeted}
    said = [(target.conversation, message) for target, entry in targeted for message in entry.messages]
    by_id = [(found.cid, dialect.id(message.id)) for found, message in said]
    # Nothing stands above a conversation's last seq; what comes in order needs no look at what stands under it.
    by_seq = [(found.cid, message.seq) for found, message in said if message.seq <= found.last_seq]
    for column, kind, wanted in (("id", "text", by_id), ("seq", "bigint", by_seq)):
        if wanted:
            these, values = dialect.in_pairs(("cid", column), ("bigint", kind), "message", wanted)
            rows = yield Query(f"SELECT cid, seq, id, role, content FROM tk_messages WHERE {these}", values)  # noqa: S608
            for cid, seq, id_, role, content in rows:
                held[cid].by_seq[seq] = read_id(id_)
                held[cid].by_id[read_id(id_)] = (role, dialect.read_text(content))
    if keys := [entry.key.digest for _, entry in targeted if entry.key is not None]:
        these, values = dialect.in_list("digest", "key", keys)
        rows = yield Query(f"SELECT cid, digest, payload FROM tk_appends WHERE {these}", values)  # noqa: S608
        for cid, digest, payload in rows:
            held[cid].payloads[bytes(digest)] = bytes(payload)


def _store(decided: Sequence[_Decided], session_ttl: int, dialect: Dialect) -> Steps:
    if rows := [row for one in decided for row in one.rows]:
        yield from insert_messages(rows, dialect)
    keys: list[Change] = []
    for one in decided:
        if (key := one.decision.key) is not None:
            keys.append(remember(key.digest, one.target.conversation.cid, key.payload, key.receipt, dialect))
    if keys:
        yield ChangeEach(keys[0].text, [one.values for one in keys])
    if grown := [one for one in decided if one.decision.messages]:
        yield from _note_growth(grown, session_ttl, dialect)


def _note_growth(grown: Sequence[_Decided], session_ttl: int, dialect: Dialect) -> Steps:
    """One row a conversation; the one whose entry came last is the owner's latest.

    The rows exist and are locked: an upsert is how many are updated in one statement, each with its own values.
    """
    by_conversation: dict[int, list[_Decided]] = {}
    for one in grown:
        cid = one.target.conversation.cid
        by_conversation[cid] = [*by_conversation.pop(cid, []), one]
    latest = yield from latest_activities([one.target.conversation.uid for one in grown], dialect)
    rows: list[dict[str, Any]] = []
    for ones in by_conversation.values():
        uid = ones[0].target.conversation.uid
        latest[uid] += 1
        rows.append(_growth(ones, session_ttl, dialect) | {"activity": latest[uid]})
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        some = rows[start : start + _ROWS_AT_ONCE]
        bound = {f"{name}{number}": value for number, row in enumerate(some) for name, value in row.items()}
        places = [{name: f":{name}{number}" for name in row} for number, row in enumerate(some)]
        yield Change(dialect.upsert("tk_conversations", places, "cid", _GROWN), bound)


def _growth(ones: Sequence[_Decided], session_ttl: int, dialect: Dialect) -> dict[str, Any]:
    """Placed late, a turn neither ends a session early nor starts it anew. A message from before a conversation was
    closed does not open it again."""
    now_is, scope = ones[0].target.conversation, ones[0].entry.scope
    new = [message for one in ones for message in one.decision.messages]
    at, last = max(moment(one.entry.at) for one in ones), max(message.seq for message in new)
    language = next((message.language for message in new if message.language), None)
    return {
        "cid": now_is.cid,
        "uid": now_is.uid,
        "conversation": dialect.id(scope.require_conversation()),
        "last_seq": max(now_is.last_seq, last),
        "messages": now_is.messages + len(new),
        "terms": now_is.terms + sum(len(row["words"]) for one in ones for row in one.rows),
        "language": now_is.language or language,
        "status": "active" if last > now_is.last_seq else now_is.status,
        "started_at": at,
        "last_activity_at": max(now_is.last_activity_at, at),
        "session_started_at": now_is.session_started_at if now_is.session_expires_at > at else at,
        "session_expires_at": max(now_is.session_expires_at, at + session_ttl),
    }
