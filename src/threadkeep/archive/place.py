"""Placing a batch of entries whose `seq` was allocated elsewhere.

What to do with each entry is decided alike on every database, by pure functions (`decide`). What the locks protect is
read again once they are held: when an erasure came in between, the batch starts over and drops what it must. Owners are
locked by name, then conversations by owner and name: two workers that share some of them wait, and never in a circle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from threadkeep.archive.append import check_hot_store, looked_up, remember
from threadkeep.archive.front import front
from threadkeep.db.messages import (
    LOCKED_COLUMNS,
    LockedConversation,
    Span,
    create_conversations,
    generation_of,
    insert_messages,
    latest_activities,
    lock_or_create,
    moment,
    refuse_if_older,
    row_of,
)
from threadkeep.db.statements import Change, ChangeEach, Dialect, Query, Raced, Steps, Verb, read_id
from threadkeep.model import Message
from threadkeep.ports.archive import Entry, KeyedReceipt, Placed
from threadkeep.ports.sessions import Claim
from threadkeep.scope import Scope
from threadkeep.wording import MARK, ErasedTexts, is_the_users

OLDER_GENERATION = "its scope was erased after it was made"
ERASED = "it was erased"
ID_TAKEN = "its message id is stored with other content"
KEY_TAKEN = "its idempotency key was used for another payload"


@dataclass(slots=True)
class Held:
    """What one conversation holds of a batch; kept up to date as entries are decided, so that repeats are seen."""

    by_seq: dict[int, str] = field(default_factory=dict[int, str])
    by_id: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])  # role, content
    payloads: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])  # of idempotency keys
    last_seq: int = 0  # the conversation's

    def take(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.by_seq[message.seq] = message.id
            self.by_id[message.id] = (message.role, message.content)
            self.last_seq = max(self.last_seq, message.seq)


@dataclass(frozen=True, slots=True)
class Decision:
    placed: Placed
    messages: tuple[Message, ...] = ()  # to insert
    key: KeyedReceipt | None = None  # to remember


def dropped(entry: Entry, generation: int, erased: set[bytes]) -> Placed | None:
    """Whether nothing of the entry may be stored any more. Neither generations nor tombstones ever go back."""
    if entry.scope.generation is not None and entry.scope.generation < generation:
        return Placed("dropped", dropped=len(entry.messages), reason=OLDER_GENERATION)
    if not erased:
        return None
    gone = _erased(entry, erased)
    by_key = entry.key is not None and entry.key.digest in erased
    if by_key or (gone and len(gone) == len(entry.messages)):
        return Placed("dropped", dropped=len(entry.messages), reason=ERASED, erased=gone)
    return None


def _erased(entry: Entry, erased: set[bytes]) -> tuple[str, ...]:
    pairs = zip(entry.messages, message_digests(entry), strict=True) if erased else ()
    return tuple(message.id for message, digest in pairs if digest in erased)


def message_digests(entry: Entry) -> list[bytes]:
    return [entry.scope.digest("message", message.id) for message in entry.messages]


def contradicts_itself(entry: Entry) -> Placed | None:
    """Found before anything is made for it."""
    fresh = _new_in(entry, Held(), set())
    return fresh if isinstance(fresh, Placed) else None


def decide(entry: Entry, held: Held, erased: set[bytes]) -> Decision:
    """For an entry that is not `dropped`; what it will store is noted in `held`."""
    key = entry.key
    if key is not None and key.digest in held.payloads:
        if held.payloads[key.digest] != key.payload:
            return Decision(Placed("conflict", reason=KEY_TAKEN))
        return Decision(Placed("duplicate", duplicates=len(entry.messages)))
    fresh = _new_in(entry, held, erased)
    if isinstance(fresh, Placed):
        return Decision(fresh)
    numbered = _numbered(fresh, held)
    moved = numbered != fresh
    held.take(numbered)
    if key is not None:
        held.payloads[key.digest] = key.payload
        if moved:
            key = replace(key, receipt=replace(key.receipt, seq=numbered[-1].seq))
    gone = _erased(entry, erased)
    known = len(entry.messages) - len(fresh) - len(gone)
    outcome = "stored" if fresh or key is not None else "duplicate"
    return Decision(Placed(outcome, len(fresh), known, len(gone), moved=moved, erased=gone), tuple(numbered), key)


def _new_in(entry: Entry, held: Held, erased: set[bytes]) -> list[Message] | Placed:
    """The messages that are new, or the conflict."""
    own, fresh = Held(), list[Message]()
    for message in entry.messages:
        if erased and entry.scope.digest("message", message.id) in erased:
            continue
        same = own.by_id.get(message.id) or held.by_id.get(message.id)
        if same is not None and same != (message.role, message.content):
            return Placed("conflict", reason=ID_TAKEN)
        if same is None:
            own.take([message])
            fresh.append(message)
    return fresh


def _numbered(fresh: list[Message], held: Held) -> list[Message]:
    """As they are; from the first whose number another message has, under the next numbers of the conversation.

    Two allocators that met must not cost a message, and what was appended together stays in order.
    """
    taken, seen = set(held.by_seq), set[int]()
    for at, message in enumerate(fresh):
        if message.seq in taken or message.seq in seen:
            last = max(held.last_seq, *seen, 0)
            moved = [replace(one, seq=seq) for seq, one in enumerate(fresh[at:], last + 1)]
            return [*fresh[:at], *moved]
        seen.add(message.seq)
    return fresh


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
    def terms(self) -> int:
        new = {message.id for message in self.decision.messages}
        return sum(len(own) for message, own in zip(self.entry.messages, self.words, strict=True) if message.id in new)

    def rows(self, dialect: Dialect) -> list[dict[str, Any]]:
        by_id = {message.id: own for message, own in zip(self.entry.messages, self.words, strict=True)}
        cid, uid = self.target.conversation.cid, self.target.conversation.uid
        return [row_of(cid, uid, new.seq, new, by_id[new.id], dialect) for new in self.decision.messages]


def place(
    entries: Sequence[Entry],
    words: Sequence[Sequence[Sequence[int]]],
    session_ttl: int,
    claim: Claim,
    erased_texts: ErasedTexts,
    dialect: Dialect,
) -> Verb[list[Placed]]:
    check_hot_store(claim, (yield from front()))
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
    marks = {number: entry.scope.whole_user.digest(MARK) for number, entry in enumerate(entries) if _by_others(entry)}
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
    if rows := [row for one in decided for row in one.rows(dialect)]:
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
        "terms": now_is.terms + sum(one.terms for one in ones),
        "language": now_is.language or language,
        "status": "active" if last > now_is.last_seq else now_is.status,
        "started_at": at,
        "last_activity_at": max(now_is.last_activity_at, at),
        "session_started_at": now_is.session_started_at if now_is.session_expires_at > at else at,
        "session_expires_at": max(now_is.session_expires_at, at + session_ttl),
    }
