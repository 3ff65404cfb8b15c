"""Rows of agent frameworks' sessions, on any of the databases: where they stand, how they are written and listed.

They share the table of LangGraph's store items, so lists, counts and exports of both take a few statements, however
many rows there are. Listing or exporting needs no framework.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from threadkeep.checkpoints.items import AGED, AGES_WITH_TURNS, HEAD_BYTES, ITEM, SqlItems
from threadkeep.checkpoints.kept import cursor_of, position, without_messages
from threadkeep.checkpoints.reading import text_of
from threadkeep.db.database import Database
from threadkeep.db.statements import Change
from threadkeep.errors import InvalidScope
from threadkeep.model import Conversation, Erased, Kind, UserRecord
from threadkeep.ports.agent_rows import (
    WITH_TURNS,
    ItemStore,
    Row,
    StoredRow,
    decoded_namespace,
    encoded_namespace,
    place_of,
    space_of,
)
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.user_data import Counts, Part, Place
from threadkeep.scope import Scope

NUMBER_BYTES = 8
FRAME, FLIGHT = b"f", b"t"  # of an ADK session's event: what is kept of it, and what rests sealed until its turn ends


def adk_head(scope: Scope) -> bytes:
    """The key of an ADK session's head."""
    return scope.digest("adk session")


def adk_events(scope: Scope) -> bytes:
    """The space of its events."""
    return scope.digest("adk events")


def openai_mark(scope: Scope) -> bytes:
    """The key of the row that says that a conversation is a session of the Agents SDK."""
    return scope.digest("openai session")


def session_row(
    key: bytes, space: bytes, scope: Scope, value: bytes, version: int = 0, ttl_seconds: float | None = None
) -> Row:
    """A session's own row. Of all rows of agents' sessions only these have a namespace, the user: lists know them by
    it."""
    return Row(
        key,
        space,
        scope.require_conversation().encode("utf-8", "surrogatepass"),
        scope.tenant,
        scope.user,
        place_of(scope),
        value,
        namespace=encoded_namespace([scope.user]),
        version=version,
        ttl_seconds=ttl_seconds,
    )


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


ReadItem = Callable[[bytes, str], dict[str, Any]]
_USERS_AT_ONCE = 50
_PLACE = "substr(i.facts, 1, 16)"
_LISTED = "i.item_key, i.tenant, i.user_id, i.name, i.created_at, i.updated_at"
_SESSION = "length(i.head) > 0"  # or an item of a LangGraph store, by its space
_KINDS: tuple[tuple[Kind, Callable[[Scope], bytes]], ...] = (("adk", adk_head), ("openai", openai_mark))


class KeptRows:
    """`reader` gives what turns an item's value into JSON. It raises `MissingExtra` where LangGraph is not installed.

    `turns`: how long rows stay that age as turns do.
    """

    def __init__(
        self,
        database: Database,
        items: ItemStore,
        reader: Callable[[], ReadItem],
        turns: timedelta,
        clock: Clock = system_clock,
    ) -> None:
        self._database = database
        self._items = items
        self._reader = reader
        self._turns = turns
        self._clock = clock

    async def conversations(self, user: Scope, after: str | None, limit: int) -> Sequence[Conversation]:
        where, values = self._sessions_of(user.whole_user)
        if after is not None:
            moment, key = position(after)
            kind = "CAST(:after AS BYTEA)" if self._database.dialect.is_postgres else ":after"
            where += f" AND (i.updated_at, i.item_key) < (:moment, {kind})"
            values |= {"moment": moment, "after": key}
        query = f"SELECT {_LISTED} FROM tk_store_items i WHERE {where} ORDER BY i.updated_at DESC, i.item_key DESC"  # noqa: S608
        rows = await self._database.rows(f"{query} LIMIT :most", values | {"most": limit})
        return [listed for row in rows if (listed := _conversation(row)) is not None]

    async def named(self, user: Scope, names: Sequence[str]) -> Sequence[Conversation]:
        keys = [key(user.with_conversation(name)) for name in names for _, key in _KINDS]
        rows = await self._by_key(_LISTED, keys)
        return [listed for row in rows if (listed := _conversation(row)) is not None]

    async def counted(self, scope: Scope | None) -> Counts:
        """An item of a store and a session's row differ by their space, which only Python can name."""
        sessions = items = 0
        first: int | None = None
        last: int | None = None
        where, values = self._of(scope)
        grouped = "i.tenant, i.user_id, i.space"
        query = (
            f"SELECT {grouped}, count(*), min(i.created_at), max(i.updated_at) FROM tk_store_items i"  # noqa: S608
            f" WHERE {where} AND {_SESSION} GROUP BY {grouped}"
        )
        for tenant, user, space, count, began, active in await self._database.rows(query, values):
            if bytes(space) in item_spaces(Scope(text_of(tenant), text_of(user))):
                items += int(count)
            else:
                sessions += int(count)
                first = began if first is None else min(first, began)
                last = active if last is None else max(last, active)
        if scope is None or scope.conversation is None:
            items += await self._states(scope)
        others = await self._users_of_nothing_else(scope) if sessions or items else 0
        return Counts(others, sessions=sessions, items=items, first_at=_when(first), last_at=_when(last))

    async def places(self, scope: Scope | None) -> Sequence[Place]:
        where, values = self._of(scope)
        query = f"SELECT {_LISTED} FROM tk_store_items i WHERE {where} AND {_SESSION}"  # noqa: S608
        rows = await self._database.rows(query, values)
        return [(*_owner(row), listed.conversation) for row in rows if (listed := _conversation(row)) is not None]

    async def parts(self, places: Sequence[Place]) -> Mapping[Place, Part]:
        """The sessions' own rows last: one that was erased in between has no part."""
        scopes = {place: Scope(*place) for place in places}
        spaces = {adk_events(scope): place for place, scope in scopes.items()}
        frames: dict[Place, list[tuple[bytes, Any]]] = {}
        for space, name, value in await self._in_spaces([*spaces]):
            if bytes(name)[NUMBER_BYTES:] == FRAME:
                frames.setdefault(spaces[bytes(space)], []).append((bytes(name), _json(value)))
        keys: dict[bytes, tuple[Kind, Place]] = {}
        for place, scope in scopes.items():
            keys |= {key(scope): (kind, place) for kind, key in _KINDS}
        found: dict[Place, Part] = {}
        for row in await self._by_key(f"{_LISTED}, i.value", [*keys]):
            kind, place = keys[bytes(row[0])]
            events = [frame for _, frame in sorted(frames.get(place, []), key=lambda one: one[0])]
            body = _json(row[6]) if kind == "adk" else {}
            value = {"app": body.get("app"), "state": body.get("state", {}), "events": events}
            part = Part("session", kind, value, _moment(row[4]), _moment(row[5]))
            if place not in found or kind == "adk":
                found[place] = part
        return found

    async def records(self, scope: Scope | None) -> AsyncIterator[UserRecord]:
        if scope is not None and scope.conversation is not None:
            return
        users = [scope.whole_user] if scope is not None else await self._users()
        for start in range(0, len(users), _USERS_AT_ONCE):
            async for record in self._of_users(users[start : start + _USERS_AT_ONCE]):
                yield record

    async def erase(self, scope: Scope) -> Erased:
        return await self._items.erase(scope)

    async def _of_users(self, users: Sequence[Scope]) -> AsyncIterator[UserRecord]:
        owned = {user: item_spaces(user) for user in users}
        dialect = self._database.dialect
        spaces, values = dialect.among("space", sorted({space for both in owned.values() for space in both}))
        states, more = dialect.among("place", [place_of(user) for user in users])
        names, whose = self._among_texts("user", [user.user for user in users])
        values |= more | whose | self._moments()
        where = f"i.user_id IN {names} AND (i.space IN {spaces} OR {_PLACE} IN {states}) AND {ALIVE}"
        columns = f"{_LISTED}, i.space, i.namespace, i.value, i.facts"
        after = "CAST(:after AS BYTEA)" if dialect.is_postgres else ":after"
        query = (
            f"SELECT {columns} FROM tk_store_items i WHERE {where} AND i.item_key > {after}"  # noqa: S608
            " ORDER BY i.item_key LIMIT :most"
        )
        last = b""
        while rows := await self._database.rows(query, values | {"after": last, "most": _AT_ONCE}):
            last = bytes(rows[-1][0])
            for row in rows:
                user = Scope(*_owner(row))
                if user in owned and (record := self._record(user, row)) is not None:
                    yield record

    def _record(self, user: Scope, row: Any) -> UserRecord | None:
        name, created, updated, space, namespace, value, facts = row[3:]
        key = bytes(name).decode("utf-8", "surrogatepass")
        times = {"created_at": _moment(created).isoformat(), "updated_at": _moment(updated).isoformat()}
        if bytes(space) in item_spaces(user):
            told = {"namespace": list(decoded_namespace(bytes(namespace))), "key": key}
            return UserRecord(user.tenant, user.user, "item", told | self._reader()(bytes(value), key) | times)
        if bytes(facts).startswith(place_of(user)):
            return UserRecord(user.tenant, user.user, "state", {"key": key, "value": _json(value)} | times)
        return None

    async def _states(self, scope: Scope | None) -> int:
        """Values of users' state: their owner key is the user's, where that of all other rows is a conversation's."""
        where, values = self._of(scope)
        grouped = f"i.tenant, i.user_id, {_PLACE}"
        query = (
            f"SELECT {grouped}, count(*) FROM tk_store_items i"  # noqa: S608
            f" WHERE {where} AND NOT {_SESSION} GROUP BY {grouped}"
        )
        rows = await self._database.rows(query, values)
        return sum(int(row[3]) for row in rows if bytes(row[2]) == place_of(Scope(*_owner([None, *row]))))

    async def _users_of_nothing_else(self, scope: Scope | None) -> int:
        where, values = self._of(scope)
        threads = (
            "NOT EXISTS (SELECT 1 FROM conversation_metadata m WHERE m.tenant = i.tenant AND m.user_id = i.user_id)"
        )
        query = (
            "SELECT count(*) FROM (SELECT DISTINCT i.tenant, i.user_id FROM tk_store_items i"  # noqa: S608
            f" WHERE {where} AND {without_messages('i')} AND {threads}) others"
        )
        return int((await self._database.rows(query, values))[0][0])

    async def _users(self) -> list[Scope]:
        where, values = self._of(None)
        query = f"SELECT DISTINCT i.tenant, i.user_id FROM tk_store_items i WHERE {where}"  # noqa: S608
        rows = await self._database.rows(query, values)
        return sorted((Scope(text_of(tenant), text_of(user)) for tenant, user in rows), key=_names)

    async def _by_key(self, columns: str, keys: Sequence[bytes]) -> list[Any]:
        rows: list[Any] = []
        for start in range(0, len(keys), _AT_ONCE):
            some, values = self._database.dialect.among("key", keys[start : start + _AT_ONCE])
            query = f"SELECT {columns} FROM tk_store_items i WHERE i.item_key IN {some} AND {ALIVE}"  # noqa: S608
            rows += await self._database.rows(query, values | self._moments())
        return rows

    async def _in_spaces(self, spaces: Sequence[bytes]) -> list[Any]:
        if not spaces:
            return []
        some, values = self._database.dialect.among("space", spaces)
        query = f"SELECT i.space, i.name, i.value FROM tk_store_items i WHERE i.space IN {some} AND {ALIVE}"  # noqa: S608
        return [*await self._database.rows(query, values | self._moments())]

    def _sessions_of(self, user: Scope) -> tuple[str, dict[str, Any]]:
        where, values = self._of(user)
        spaces, more = self._database.dialect.among("items", item_spaces(user))
        head = "CAST(:head AS BYTEA)" if self._database.dialect.is_postgres else ":head"
        more |= {"head": encoded_namespace([user.user])[:HEAD_BYTES]}
        return f"{where} AND i.head = {head} AND i.space NOT IN {spaces}", values | more

    def _of(self, scope: Scope | None) -> tuple[str, dict[str, Any]]:
        """Fixed SQL text and its values. What has no owner, since a tenant shares it, is no user's."""
        where, values = f"{ALIVE} AND length(i.user_id) > 0", self._moments()
        if scope is None:
            return where, values
        dialect = self._database.dialect
        values |= {"tenant": dialect.id(scope.tenant), "user": dialect.id(scope.user)}
        where += " AND i.tenant = :tenant AND i.user_id = :user"
        if scope.conversation is not None:
            some, keys = dialect.among("own", [key(scope) for _, key in _KINDS])
            where, values = f"{where} AND i.item_key IN {some}", values | keys
        return where, values

    def _among_texts(self, name: str, texts: Sequence[str]) -> tuple[str, dict[str, Any]]:
        names = [f"{name}{number}" for number in range(len(texts))]
        values = {one: self._database.dialect.id(text) for one, text in zip(names, texts, strict=True)}
        return f"({', '.join(f':{one}' for one in names)})", values

    def _moments(self) -> dict[str, Any]:
        now = self._clock()
        return {"now": _microseconds(now), "written": _microseconds(now - self._turns)}


def item_spaces(user: Scope) -> tuple[bytes, bytes]:
    """Where a user's items stand: in a store of the user's own, and in one that the tenant's users share."""
    return space_of(user.tenant, user.user), space_of(user.tenant, None)


def _conversation(row: Sequence[Any]) -> Conversation | None:
    """None for a row that is no session's."""
    key, name, created, updated = bytes(row[0]), bytes(row[3]), row[4], row[5]
    conversation = name.decode("utf-8", "surrogatepass")
    kind = _kind(key, Scope(*_owner(row)), conversation)
    if kind is None:
        return None
    times = _moment(created), _moment(updated)
    return Conversation(conversation, None, None, "active", 0, *times, kind, cursor=cursor_of(times[1], key))


def _kind(key: bytes, user: Scope, conversation: str) -> Kind | None:
    try:
        scope = user.with_conversation(conversation)
    except InvalidScope:  # a LangGraph item's name may be any text
        return None
    return next((kind for kind, own in _KINDS if own(scope) == key), None)


def _owner(row: Sequence[Any]) -> tuple[str, str]:
    return text_of(row[1]), text_of(row[2])


def _names(user: Scope) -> tuple[str, str]:
    return user.tenant, user.user


def _json(stored: Any) -> dict[str, Any]:
    return json.loads(bytes(stored).decode("utf-8", "surrogatepass"))


def _moment(microseconds: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=microseconds)


def _when(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else _moment(microseconds)


def _microseconds(moment: datetime) -> int:
    return (moment - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)
