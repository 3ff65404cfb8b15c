"""The conversations a batch goes to: locked in one order by everybody, with what they hold of the batch already.

Owners by name, then conversations by owner and name: two workers that share some of them wait, and never in a circle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.archive.placing import Held
from threadkeep.db.among import among, pair_among, pairs
from threadkeep.db.locks import Name, Place, Span, create
from threadkeep.db.rows import insert_if_absent, is_postgres, moment
from threadkeep.db.statements import Raced
from threadkeep.db.tables import appends, conversations, messages, owners
from threadkeep.ports.placing import Entry

Owner = tuple[str, str]


class _Questions:
    """Made once for each kind of server."""

    def __init__(self, *, postgres: bool) -> None:
        self.postgres = postgres
        self.owners = (
            select(owners.c.tenant, owners.c.user_id, owners.c.uid)
            .where(pair_among((owners.c.tenant, owners.c.user_id), "names", postgres=postgres))
            .order_by(owners.c.tenant, owners.c.user_id)
            .with_for_update(read=True, of=owners if postgres else None)
        )
        self.conversations = (
            select(
                conversations.c.conversation,
                conversations.c.cid,
                conversations.c.uid,
                conversations.c.last_seq,
                conversations.c.activity,
                conversations.c.session_started_at,
                conversations.c.session_expires_at,
            )
            .where(pair_among((conversations.c.uid, conversations.c.conversation), "names", postgres=postgres))
            .order_by(conversations.c.uid, conversations.c.conversation)
            .with_for_update(of=conversations if postgres else None)
        )
        known = messages.c.cid, messages.c.seq, messages.c.id, messages.c.role, messages.c.content
        by_id = pair_among((messages.c.cid, messages.c.id), "pairs", postgres=postgres)
        by_seq = pair_among((messages.c.cid, messages.c.seq), "pairs", postgres=postgres)
        self.by_id, self.by_seq = select(*known).where(by_id), select(*known).where(by_seq)
        by_key = among(appends.c.digest, "keys", postgres=postgres)
        self.keys = select(appends.c.cid, appends.c.digest, appends.c.payload).where(by_key)


_QUESTIONS = {postgres: _Questions(postgres=postgres) for postgres in (True, False)}


@dataclass(slots=True)
class Target:
    place: Place
    held: Held = field(default_factory=Held)


async def lock_targets(connection: AsyncConnection, entries: Sequence[Entry], ttl: int) -> list[Target]:
    """One for each entry, in order; entries of the same conversation share theirs."""
    uids = await _hold_owners(connection, sorted({_owner(entry) for entry in entries}))
    names = [(uids[_owner(entry)], entry.scope.require_conversation()) for entry in entries]
    first: dict[Name, Span] = {}
    for name, entry in zip(names, entries, strict=True):
        first.setdefault(name, Span(moment(entry.at), ttl))
    targets = {
        name: Target(place, Held(last_seq=place.last_seq)) for name, place in (await _lock(connection, first)).items()
    }
    found = [targets[name] for name in names]
    await _read_held(connection, list(zip(found, entries, strict=True)))
    return found


def _owner(entry: Entry) -> Owner:
    return entry.scope.tenant, entry.scope.user


async def _hold_owners(connection: AsyncConnection, names: Sequence[Owner]) -> dict[Owner, int]:
    found = await _owners(connection, names)
    missing = [{"tenant": tenant, "user_id": user} for tenant, user in names if (tenant, user) not in found]
    if missing:
        await connection.execute(insert_if_absent(connection, owners, "tenant"), missing)
        found = await _owners(connection, names)
    if len(found) < len(names):
        raise Raced
    return found


async def _owners(connection: AsyncConnection, names: Sequence[Owner]) -> dict[Owner, int]:
    ask = _QUESTIONS[is_postgres(connection)]
    rows = await connection.execute(ask.owners, pairs("names", names, postgres=ask.postgres))
    return {(tenant, user): uid for tenant, user, uid in rows}


async def _lock(connection: AsyncConnection, wanted: dict[Name, Span]) -> dict[Name, Place]:
    names = sorted(wanted)
    found = await _conversations(connection, names)
    missing = [name for name in names if name not in found]
    if missing:
        await create(connection, {name: wanted[name] for name in missing})
        found = await _conversations(connection, names)
    if len(found) < len(names):
        raise Raced
    return found


async def _conversations(connection: AsyncConnection, names: Sequence[Name]) -> dict[Name, Place]:
    ask = _QUESTIONS[is_postgres(connection)]
    rows = await connection.execute(ask.conversations, pairs("names", names, postgres=ask.postgres))
    return {(row.uid, row.conversation): Place(*row[1:]) for row in rows}


async def _read_held(connection: AsyncConnection, targeted: Sequence[tuple[Target, Entry]]) -> None:
    """In statements of their own: what was committed until the locks were ours."""
    ask = _QUESTIONS[is_postgres(connection)]
    held = {target.place.cid: target.held for target, _ in targeted}
    said = [(target.place, message) for target, entry in targeted for message in entry.messages]
    by_id = [(place.cid, message.id) for place, message in said]
    # Nothing stands above a conversation's last seq; what comes in order needs no look at what stands under it.
    by_seq = [(place.cid, message.seq) for place, message in said if message.seq <= place.last_seq]
    for query, wanted in ((ask.by_id, by_id), (ask.by_seq, by_seq)):
        values = pairs("pairs", wanted, postgres=ask.postgres)
        for row in await connection.execute(query, values) if wanted else ():
            held[row.cid].by_seq[row.seq] = row.id
            held[row.cid].by_id[row.id] = (row.role, row.content)
    if keys := [entry.key.digest for _, entry in targeted if entry.key is not None]:
        for cid, digest, payload in await connection.execute(ask.keys, {"keys": keys}):
            held[cid].payloads[bytes(digest)] = bytes(payload)
