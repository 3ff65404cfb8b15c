"""Items of LangGraph's stores, on any of the databases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from threadkeep.db.database import Database
from threadkeep.db.statements import Change, Dialect
from threadkeep.model import Erased
from threadkeep.ports.agent_rows import ItemSearch, NewItem, StoredItem, place_of
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.scope import Scope

HEAD_BYTES = 255  # of a namespace stand in an index
_AT_ONCE = 200
_SWEPT_AT_ONCE = 1_000
_MINUTE = 60_000_000
_COLUMNS = "item_key, namespace, name, value, created_at, updated_at"
ITEM = {  # by column, where its value is bound
    "item_key": ":key",
    "space": ":space",
    "head": ":head",
    "namespace": ":namespace",
    "name": ":name",
    "tenant": ":tenant",
    "user_id": ":user",
    "value": ":value",
    "facts": ":facts",
    "ttl_minutes": ":ttl_minutes",
    "created_at": ":now",
    "updated_at": ":now",
    "expires_at": ":expires_at",
}
_REPLACED = ("tenant", "user_id", "value", "facts", "ttl_minutes", "updated_at", "expires_at")
_ALIVE = "(expires_at IS NULL OR expires_at > :now)"
# A row that goes when turns of its last writing go, by the setting of the process that looks: it has no time of its
# own.
AGES_WITH_TURNS = -1.0  # its `ttl_minutes`
AGED = "(ttl_minutes IS NOT NULL AND ttl_minutes < 0 AND updated_at <= :written)"
_DUE = f"(expires_at <= :now OR {AGED})"
_INTEGER = {"sqlite": "INTEGER", "postgres": "BIGINT", "mysql": "SIGNED"}


class SqlItems:
    def __init__(self, database: Database, clock: Clock = system_clock, *, owned: bool = False) -> None:
        self._database = database
        self._owned = owned
        self._clock = clock

    def _now(self) -> int:
        return int(self._clock().timestamp() * 1_000_000)

    async def get(self, keys: Sequence[bytes], refreshed: Sequence[bytes] = ()) -> Sequence[StoredItem]:
        found: list[StoredItem] = []
        for start in range(0, len(keys), _AT_ONCE):
            some, values = self._database.dialect.among("key", keys[start : start + _AT_ONCE])
            query = f"SELECT {_COLUMNS} FROM tk_store_items WHERE item_key IN {some} AND {_ALIVE}"  # noqa: S608
            found += [_item(row) for row in await self._database.rows(query, values | {"now": self._now()})]
        again = [item.key for item in found if item.key in {*refreshed}]
        if again:
            await self._database.changed([*self._refreshing(again)])
        return found

    def _refreshing(self, keys: Sequence[bytes]) -> Iterator[Change]:
        kind = _INTEGER[self._database.dialect.name]
        later = f"CAST(:now AS {kind}) + CAST(ttl_minutes * {_MINUTE} AS {kind})"
        for start in range(0, len(keys), _AT_ONCE):
            some, values = self._database.dialect.among("key", keys[start : start + _AT_ONCE])
            where = f"item_key IN {some} AND ttl_minutes IS NOT NULL"
            yield Change(f"UPDATE tk_store_items SET expires_at = {later} WHERE {where}", values | {"now": self._now()})  # noqa: S608

    async def change(self, put: Sequence[NewItem], deleted: Sequence[bytes]) -> None:
        """In the order of keys, so that two that change the same items wait for each other in turn."""
        now = self._now()
        steps: list[Change] = []
        for key in sorted(deleted):
            steps.append(Change("DELETE FROM tk_store_items WHERE item_key = :key", {"key": key}))
        for item in sorted(put, key=lambda one: one.key):
            steps.append(
                Change("DELETE FROM tk_store_items WHERE item_key = :key AND expires_at <= :now", _at(item, now))
            )
            statement = self._database.dialect.upsert("tk_store_items", [ITEM], "item_key", _REPLACED)
            steps.append(Change(statement, _values(item, now, self._database.dialect)))
            steps.append(Change("DELETE FROM tk_store_vectors WHERE item_key = :key", {"key": item.key}))
            for part, vector in enumerate(item.vectors):
                steps.append(Change(_VECTOR, {"key": item.key, "model": item.model, "part": part, "vector": vector}))
        if steps:
            await self._database.changed(steps)

    async def find(self, wanted: ItemSearch, limit: int, offset: int = 0) -> Sequence[StoredItem]:
        where, values = self._where(wanted)
        query = (
            f"SELECT {_COLUMNS} FROM tk_store_items i WHERE {where}"  # noqa: S608
            " ORDER BY updated_at DESC, item_key DESC LIMIT :most OFFSET :skipped"
        )
        return [_item(row) for row in await self._database.rows(query, values | {"most": limit, "skipped": offset})]

    async def vectors(self, wanted: ItemSearch, model: bytes) -> Sequence[tuple[bytes, bytes]]:
        where, values = self._where(wanted)
        query = (
            "SELECT v.item_key, v.vector FROM tk_store_items i JOIN tk_store_vectors v ON v.item_key = i.item_key"  # noqa: S608
            f" WHERE v.model = :model AND {where}"
        )
        rows = await self._database.rows(query, values | {"model": model})
        return [(bytes(key), bytes(vector)) for key, vector in rows]

    async def namespaces(self, space: bytes, prefix: bytes) -> Sequence[bytes]:
        where, values = self._where(ItemSearch(space, prefix))
        rows = await self._database.rows(f"SELECT DISTINCT namespace FROM tk_store_items i WHERE {where}", values)  # noqa: S608
        return [bytes(row[0]) for row in rows]

    async def count_expired(self, written: int = 0) -> int:
        values = {"now": self._now(), "written": written}
        rows = await self._database.rows(f"SELECT count(*) FROM tk_store_items WHERE {_DUE}", values)  # noqa: S608
        return int(rows[0][0])

    async def sweep(self, written: int = 0) -> int:
        """Delete what has expired, and what ages with turns and was last written before `written` (microseconds).

        In batches, so that no other writer waits long; another sweeper at the same time does no harm.
        """
        swept = 0
        while True:
            query = f"SELECT item_key FROM tk_store_items WHERE {_DUE} LIMIT :most"  # noqa: S608
            moments = {"now": self._now(), "written": written}
            rows = await self._database.rows(query, moments | {"most": _SWEPT_AT_ONCE})
            if not rows:
                return swept
            some, values = self._database.dialect.among("key", [bytes(row[0]) for row in rows])
            gone = f"DELETE FROM tk_store_items WHERE item_key IN {some} AND {_DUE}"  # noqa: S608
            swept += (await self._database.changed([Change(gone, values | moments)]))[0]

    async def holds(self, user: Scope) -> bool:
        dialect = self._database.dialect
        values = {"tenant": dialect.id(user.tenant), "user": dialect.id(user.user), "now": self._now()}
        query = (
            "SELECT 1 FROM tk_store_items WHERE tenant = :tenant AND user_id = :user"
            " AND (expires_at IS NULL OR expires_at > :now) LIMIT 1"
        )
        return bool(await self._database.rows(query, values))

    async def erase(self, scope: Scope) -> Erased:
        values = {
            "tenant": self._database.dialect.id(scope.tenant),
            "user": self._database.dialect.id(scope.user),
        }
        gone = "DELETE FROM tk_store_items WHERE tenant = :tenant AND user_id = :user"
        if scope.conversation is not None:  # rows of an agent's session say which one they belong to
            gone += " AND substr(facts, 1, 16) = :owner_key"
            values["owner_key"] = place_of(scope)
        count = (await self._database.changed([Change(gone, values)]))[0]
        return Erased(found=count, removed=count)

    async def close(self) -> None:
        if self._owned:
            await self._database.close()

    def _where(self, wanted: ItemSearch) -> tuple[str, dict[str, Any]]:
        """Fixed pieces of SQL; every value is bound."""
        conditions = ["i.space = :space", "(i.expires_at IS NULL OR i.expires_at > :now)"]
        values: dict[str, Any] = {"space": wanted.space, "now": self._now()}
        if wanted.prefix:
            low = wanted.prefix[:HEAD_BYTES]
            conditions.append("i.head >= :low AND i.head <= :high")
            values |= {"low": low, "high": low + b"\xff"}
        if len(wanted.prefix) > HEAD_BYTES:
            conditions.append(f"substr(i.namespace, 1, {len(wanted.prefix)}) = :prefix")
            values["prefix"] = wanted.prefix
        for number, fact in enumerate(wanted.facts):
            conditions.append(_holds(f"fact{number}", self._database.dialect))
            values[f"fact{number}"] = fact
        if wanted.after is not None:
            conditions.append("(i.updated_at, i.item_key) < (:last, :last_key)")
            values |= {"last": wanted.after.updated_at, "last_key": wanted.after.key}
        return " AND ".join(conditions), values


_VECTOR = "INSERT INTO tk_store_vectors (item_key, model, part, vector) VALUES (:key, :model, :part, :vector)"


def _values(item: NewItem, now: int, dialect: Dialect) -> dict[str, Any]:
    ends = None if item.ttl_minutes is None else now + int(item.ttl_minutes * _MINUTE)
    return _at(item, now) | {
        "space": item.space,
        "head": item.namespace[:HEAD_BYTES],
        "namespace": item.namespace,
        "name": item.name,
        "tenant": dialect.id(item.tenant),
        "user": dialect.id(item.user),
        "value": item.value,
        "facts": item.facts,
        "ttl_minutes": item.ttl_minutes,
        "expires_at": ends,
    }


def _at(item: NewItem, now: int) -> dict[str, Any]:
    return {"key": item.key, "now": now}


def _holds(fact: str, dialect: Dialect) -> str:
    """Return a condition. An item without facts is encrypted: the process that can read it filters."""
    if dialect.is_postgres:
        return f"(length(i.facts) = 0 OR position(CAST(:{fact} AS BYTEA) IN i.facts) > 0)"
    return f"(length(i.facts) = 0 OR instr(i.facts, :{fact}) > 0)"


def _item(row: Any) -> StoredItem:
    key, namespace, name, value, created_at, updated_at = row
    return StoredItem(bytes(key), bytes(namespace), bytes(name), bytes(value), created_at, updated_at)
