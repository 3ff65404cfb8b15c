"""The hot store in front of the archive: the row that records it, and what it needs to continue a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from threadkeep.archive.append import NO_KEY, look_up, receipt_from
from threadkeep.db.messages import GENERATION, IN_SCOPE, of_conversation, of_generation, when
from threadkeep.db.statements import Change, Dialect, Steps, Verb, one_row
from threadkeep.ports.sessions import Front, Seed
from threadkeep.scope import Scope

_SLOT = 1


def front() -> Verb[Front | None]:
    row = yield from one_row("SELECT id, durability, address, missed FROM tk_front")
    return None if row is None else Front(*row)


def attach(new: Front, dialect: Dialect) -> Verb[Front]:
    insert = "INSERT INTO tk_front (slot, id, durability, address) VALUES (:slot, :id, :durability, :address)"
    values = {"slot": _SLOT, "id": new.id, "durability": new.durability, "address": dialect.text(new.address)}
    yield Change(insert + dialect.if_absent("slot"), values)
    return (yield from front()) or new


def note_missed() -> Steps:
    yield Change("UPDATE tk_front SET missed = missed + 1")


def detach(id: str | None) -> Verb[bool]:
    where, values = ("", {}) if id is None else (" WHERE id = :id", {"id": id})
    return (yield Change(f"DELETE FROM tk_front{where}", values)) > 0  # noqa: S608


_NOWHERE = 0  # a row that no conversation has
_MOST_IDS = 16  # a longer append is worth more than one statement


def seed(scope: Scope, ids: Sequence[str], key: str | None, dialect: Dialect) -> Verb[Seed]:
    here = replace(scope, generation=None)
    # In one statement: an erasure between two would give what an older generation said to a newer one.
    of_it = ", ".join(
        f"(SELECT {column} FROM tk_conversations WHERE {IN_SCOPE}) AS {column}"  # noqa: S608
        for column in ("cid", "last_seq", "language", "last_activity_at")
    )
    values = of_conversation(here, dialect) | of_generation(here)
    row = yield from one_row(f"SELECT {GENERATION} AS generation, {of_it}", values)
    assert row is not None
    generation, cid, last_seq, language, active = row
    found = Seed(last_seq or 0, int(generation), language, None if active is None else when(active))
    if not ids and key is None:
        return found
    digest = NO_KEY if key is None else here.digest("key", key)
    known = yield from look_up(here, _NOWHERE if cid is None else cid, ids, digest, dialect)
    return replace(
        found,
        messages=known.messages,
        erased=frozenset(id_ for id_ in ids if here.digest("message", id_) in known.erased),
        key_erased=key is not None and digest in known.erased,
        payload=known.payload,
        receipt=None if known.receipt is None else receipt_from(known.receipt),
    )


def generation_of_unknown(scope: Scope, ids: Sequence[str], key: str | None, dialect: Dialect) -> Verb[int | None]:
    """The generation of a conversation that the archive has never heard of, as of every one that begins.

    None where there is such a conversation, or one of the messages was erased, or the key has been used. One
    statement, so on one snapshot: an erasure comes before all of it or after. Columns have names, or MySQL would call
    them by their text, digests and all, which its driver cannot read.
    """
    if len(ids) > _MOST_IDS:
        return None
    used = NO_KEY if key is None else scope.digest("key", key)
    buried, digests = dialect.in_list("digest", "digest", [used, *(scope.digest("message", id_) for id_ in ids)])
    row = yield from one_row(
        f"SELECT {GENERATION} AS generation,"  # noqa: S608
        f" EXISTS (SELECT 1 FROM tk_conversations WHERE {IN_SCOPE}) AS stands,"
        f" EXISTS (SELECT 1 FROM tk_tombstones WHERE {buried}) AS erased,"
        " EXISTS (SELECT 1 FROM tk_appends WHERE digest = :key) AS answered",
        {**of_conversation(scope, dialect), **of_generation(scope), **digests, "key": used},
    )
    assert row is not None
    generation, *known = row
    return None if any(known) else int(generation)
