"""The archive's record of the hot store in front of it: at most one row."""

from __future__ import annotations

from threadkeep.db.dialects import Dialect
from threadkeep.db.statements import Change, Steps, Verb, one_row
from threadkeep.ports.fronts import Claim, Front

_SLOT = 1


def front() -> Verb[Front | None]:
    row = yield from one_row("SELECT id, durability, address, missed FROM tk_front")
    return None if row is None else Front(*row)


def check_writer(claim: Claim) -> Steps:
    claim.check_writer((yield from front()))


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
