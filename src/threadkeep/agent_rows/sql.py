"""Rows of agent frameworks' sessions, on any of the databases. They share the table of store items."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from threadkeep.checkpoints.items import AGED, AGES_WITH_TURNS, HEAD_BYTES, ITEM, SqlItems
from threadkeep.db.database import Database
from threadkeep.db.statements import Change
from threadkeep.ports.agent_rows import WITH_TURNS, Row, StoredRow
from threadkeep.ports.clock import Clock, system_clock

_AT_ONCE = 200
_TURNS = timedelta(days=90)
_READ = "SELECT item_key, namespace, name, value, facts FROM tk_store_items"
ALIVE = f"(expires_at IS NULL OR expires_at > :now) AND NOT {AGED}"
_PLACED = f"INTO tk_store_items ({', '.join(ITEM)}) VALUES ({', '.join(ITEM.values())})"
_REPLACED = ("tenant", "user_id", "value", "facts", "ttl_minutes", "updated_at", "expires_at")
_SWAP = (
    "UPDATE tk_store_items SET value = :value, facts = :facts, updated_at = :now, expires_at = :expires_at,"
    " ttl_minutes = :ttl_minutes"
    " WHERE item_key = :key AND facts = :old"
)


class SqlAgentRows:
    """`turns`: how long turns are kept, and with them the rows that age as turns do."""

    def __init__(
        self, database: Database, clock: Clock = system_clock, turns: timedelta = _TURNS, *, owned: bool = False
    ) -> None:
        self._database = database
        self._owned = owned
        self._clock = clock
        self._turns = int(turns.total_seconds() * 1_000_000)

    def _moments(self) -> dict[str, int]:
        now = self._now()
        return {"now": now, "written": now - self._turns}

    def _now(self) -> int:
        return int(self._clock().timestamp() * 1_000_000)

    async def get(self, keys: Sequence[bytes]) -> Sequence[StoredRow]:
        found: list[StoredRow] = []
        for start in range(0, len(keys), _AT_ONCE):
            some, values = self._database.dialect.among("key", keys[start : start + _AT_ONCE])
            query = f"{_READ} WHERE item_key IN {some} AND {ALIVE}"
            found += [_stored(row) for row in await self._database.rows(query, values | self._moments())]
        return found

    async def all_of(self, spaces: Sequence[bytes], namespace: bytes | None = None) -> Sequence[StoredRow]:
        some, values = self._database.dialect.among("space", spaces)
        query = f"{_READ} WHERE space IN {some} AND {ALIVE}"
        values |= self._moments()
        if namespace is not None:
            query += " AND head = :head"
            values |= {"head": namespace[:HEAD_BYTES]}
        rows = [_stored(row) for row in await self._database.rows(query, values)]
        return [row for row in rows if namespace is None or row.namespace == namespace]

    async def create(self, head: Row, put: Sequence[Row] = ()) -> bool:
        # One that has expired counts as absent, and must not stand in the way until it is swept.
        delete = f"DELETE FROM tk_store_items WHERE item_key = :key AND (expires_at <= :now OR {AGED})"  # noqa: S608
        await self._database.changed([Change(delete, {"key": head.key} | self._moments())])
        steps = [self._inserted(head), *map(self._upserted, put)]
        return bool(await self._database.changed(steps, only_if_first=True))

    async def swap(self, old: StoredRow, head: Row, put: Sequence[Row] = (), deleted: Sequence[bytes] = ()) -> bool:
        values = self._values(head) | {"old": old.facts}
        values = {name: values[name] for name in ("key", "value", "facts", "old", "now", "expires_at", "ttl_minutes")}
        steps: list[Change] = [Change(_SWAP, values), *map(self._upserted, put), *self._deleted(deleted)]
        return bool(await self._database.changed(steps, only_if_first=True))

    async def put(self, rows: Sequence[Row]) -> None:
        """In the order of keys, so that two that put the same rows wait for each other in turn."""
        if rows:
            await self._database.changed([self._upserted(row) for row in sorted(rows, key=lambda one: one.key)])

    async def remove(self, keys: Sequence[bytes], spaces: Sequence[bytes] = ()) -> int:
        whole = [Change("DELETE FROM tk_store_items WHERE space = :space", {"space": space}) for space in spaces]
        steps: list[Change] = [*self._deleted(keys), *whole]
        return sum(await self._database.changed(steps)) if steps else 0

    async def sweep(self) -> int:
        return await SqlItems(self._database, self._clock).sweep()

    async def close(self) -> None:
        if self._owned:
            await self._database.close()

    def _deleted(self, keys: Sequence[bytes]) -> list[Change]:
        steps: list[Change] = []
        for start in range(0, len(keys), _AT_ONCE):
            some, values = self._database.dialect.among("key", keys[start : start + _AT_ONCE])
            steps.append(Change(f"DELETE FROM tk_store_items WHERE item_key IN {some}", values))  # noqa: S608
        return steps

    def _inserted(self, row: Row) -> Change:
        unless_there = "" if self._database.dialect.is_mysql else " ON CONFLICT (item_key) DO NOTHING"
        return Change(f"INSERT {_PLACED}{unless_there}", self._values(row))

    def _upserted(self, row: Row) -> Change:
        return Change(self._database.dialect.upsert("tk_store_items", [ITEM], "item_key", _REPLACED), self._values(row))

    def _values(self, row: Row) -> dict[str, Any]:
        now, dialect, ages = self._now(), self._database.dialect, row.ttl_seconds == WITH_TURNS
        return {
            "key": row.key,
            "space": row.space,
            "head": row.namespace[:HEAD_BYTES],
            "namespace": row.namespace,
            "name": row.name,
            "tenant": dialect.id(row.tenant),
            "user": dialect.id(row.user),
            "value": row.value,
            "facts": row.facts,
            "ttl_minutes": AGES_WITH_TURNS if ages else None,
            "now": now,
            "expires_at": None if ages or row.ttl_seconds is None else now + int(row.ttl_seconds * 1_000_000),
        }


def _stored(row: Any) -> StoredRow:
    key, namespace, name, value, facts = row
    return StoredRow(bytes(key), bytes(namespace), bytes(name), bytes(value), bytes(facts))
