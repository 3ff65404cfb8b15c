"""The Agents SDK's session on Threadkeep: policy decides what is kept, which can be recalled and erased.

A message comes first into the archive, then its shape: one without a shape is a plain item, so nothing is lost between.
Kept whole are items of tools and what the application encrypted; they say after which `seq` they came.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Literal, Self
from uuid import uuid4

from agents.memory.session_settings import SessionSettings, coerce_session_settings, resolve_session_limit

from threadkeep.adapters.openai_agents.items import Item, Split, in_pairs, rebuilt, split, unpacked
from threadkeep.adapters.sealing import Seal, TurnKey
from threadkeep.adapters.stores_thread import StoresThread, borrowed, last_of
from threadkeep.compose.memory import AgentStores
from threadkeep.errors import InvalidSetting, MemoryClosed, StoreUnavailable
from threadkeep.model import Message, Receipt
from threadkeep.ports.agent_rows import Row, StoredRow, place_of
from threadkeep.rows.agent_sessions import openai_mark, session_row
from threadkeep.scope import DEFAULT_TENANT, Scope
from threadkeep.settings import Settings, load_settings

_PAGE = 500
_SEQ_BYTES = 8


@dataclass(frozen=True, slots=True)
class ToolRules:
    ttl_seconds: float


@dataclass(frozen=True, slots=True)
class _Placed:
    seq: int
    order: bytes  # after the message of that seq: nothing sorts before it
    item: Item
    message_id: str | None = None
    row: bytes | None = None


class SessionItems:
    def __init__(self, stores: AgentStores, scope: Scope, seal: Seal, tools: ToolRules | None) -> None:
        self._stores = stores
        self._scope = scope
        self._seal = seal
        self._tools = tools
        self._head = scope.digest("openai head")
        self._tool_space = scope.digest("openai tools")
        self._encrypted_space = scope.digest("openai encrypted")

    async def add(self, given: Sequence[Split]) -> Receipt:
        await self._stores.rows.put([self._mark()])  # first: an erasure in between takes it along
        events = [one.event for one in given if one.event is not None]
        receipt = await self._stores.memory.append(self._scope, events)
        seqs = dict(zip(receipt.kept, range(receipt.seq - len(receipt.kept) + 1, receipt.seq + 1), strict=True))
        rows: list[Row] = []
        last = receipt.seq - len(receipt.kept)
        turn = await self._next_turn() if any(one.encrypted for one in given) else 0
        key = await self._key() if turn or (self._tools and any(one.tool for one in given)) else None
        for number, one in enumerate(given):
            id_ = getattr(one.event, "id", None)
            if id_ in seqs and one.shape is not None:
                last = seqs[id_]
                rows.append(self._row(self._shape_key(id_), self._shape_space, id_.encode(), one.shape))
            elif key and one.encrypted:
                rows.append(self._whole_row(key, self._encrypted_space, (last, turn, number), one.encrypted))
            elif key and one.tool and self._tools:
                row = self._whole_row(key, self._tool_space, (last, self._moment(), number), one.tool)
                rows.append(replace(row, ttl_seconds=self._tools.ttl_seconds))
        await self._stores.rows.put(rows)
        return receipt

    async def items(self, limit: int | None) -> list[Item]:
        return [one.item for one in await self._placed(limit)]

    async def pop(self) -> Item | None:
        """Raises `StoreUnavailable` while the latest message may be in a Redis that does not answer."""
        if (await self._stores.memory.history(self._scope, 1)).degraded:
            raise StoreUnavailable("Redis does not answer, so the latest item is unknown; nothing was erased")
        while found := await self._placed(1):
            last = found[-1]
            if last.row is not None:
                removed = await self._stores.rows.remove([last.row])
            else:
                assert last.message_id is not None
                proof = await self._stores.memory.erase(self._scope, last.message_id)
                removed = sum(part.removed for part in proof.stores.values())
                await self._stores.rows.remove([self._shape_key(last.message_id)])
            if removed:
                return last.item
        return None

    async def clear(self) -> None:
        await self._stores.memory.erase(self._scope)
        lists = [self._tool_space, self._encrypted_space, self._shape_space]
        await self._stores.rows.remove([self._head, openai_mark(self._scope)], lists)

    async def leave_out_all_but(self, kept: int) -> None:
        """The window begins with something said, so no call is cut from its result."""
        said = [one.seq for one in (await self._placed(None))[-kept:] if one.message_id is not None]
        if said:
            await self._change_head(lambda head: {"from": said[0]})

    async def _placed(self, limit: int | None) -> list[_Placed]:
        head = await self._read_head()
        messages = await self._messages(limit, int(head.get("from", 0)))
        keys = {self._shape_key(one.id): one.id for one in messages}
        shapes = {keys[row.key]: row.value for row in await self._stores.rows.get([*keys])}
        found = [_Placed(one.seq, b"", rebuilt(one, shapes.get(one.id)), one.id) for one in messages]
        found += await self._whole_items(head, messages[0].seq if messages and len(messages) == limit else 0)
        found.sort(key=lambda one: (one.seq, one.order))
        return found if limit is None else found[-limit:]

    async def _messages(self, limit: int | None, first: int) -> list[Message]:
        found: list[Message] = []
        before: int | None = None
        while limit is None or len(found) < limit:
            most = _PAGE if limit is None else min(_PAGE, limit - len(found))
            page = await self._stores.memory.history(self._scope, most, before)
            found[:0] = page.messages
            before = page.before
            if before is None or not page.messages or page.messages[0].seq <= first:
                break
        return [one for one in found if one.seq >= first]

    async def _whole_items(self, head: dict[str, Any], first: int) -> list[_Placed]:
        spaces = [self._tool_space] if self._tools is not None else []
        spaces += [self._encrypted_space] if "turn" in head else []
        key = self._opened_key(head)
        if key is None or not spaces:
            return []
        rows = await self._stores.rows.all_of(spaces)
        since = max(first, int(head.get("from", 0)))
        return [one for row in rows if (one := self._whole_item(row, key)) is not None and one.seq >= since]

    def _whole_item(self, row: StoredRow, key: TurnKey) -> _Placed | None:
        plain = key.opened(row.value, row.name)
        seq = int.from_bytes(row.name[:_SEQ_BYTES], "big")
        return None if plain is None else _Placed(seq, row.name, json.loads(plain), row=row.key)

    def _whole_row(self, key: TurnKey, space: bytes, order: tuple[int, int, int], item: Item) -> Row:
        after, then, number = order
        name = max(0, after).to_bytes(_SEQ_BYTES, "big") + then.to_bytes(8, "big") + number.to_bytes(4, "big")
        sealed = key.sealed(json.dumps(item).encode(), name)
        return self._row(self._scope.digest("openai tool", uuid4().hex), space, name, sealed)

    def _moment(self) -> int:
        return int(self._stores.clock().timestamp() * 1_000_000)

    async def _next_turn(self) -> int:
        """The number of this add of encrypted items: in a session that has no messages nothing else orders them."""
        return (await self._change_head(lambda head: {"turn": head.get("turn", 0) + 1}))["turn"]

    async def _key(self) -> TurnKey:
        found = self._opened_key(await self._read_head())
        if found is not None:
            return found
        key = self._seal.new()
        at_rest = self._seal.at_rest(key, self._head)
        head = await self._change_head(lambda head: {} if self._opened_key(head) else {"key": at_rest})
        return self._opened_key(head) or key

    def _opened_key(self, head: dict[str, Any]) -> TurnKey | None:
        return self._seal.opened(head["key"], self._head) if "key" in head else None

    async def _read_head(self) -> dict[str, Any]:
        found = await self._stores.rows.get([self._head])
        return unpacked(found[0].value) if found else {}

    async def _change_head(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
        """The head as it is then; `change` may be called again, with what another writer left."""
        while True:
            found = await self._stores.rows.get([self._head])
            old = unpacked(found[0].value) if found else {}
            new = old | change(old)
            row = self._row(self._head, self._head, b"", json.dumps(new).encode())
            if not found and await self._stores.rows.create(row):
                return new
            if found:
                newer = replace(row, version=found[0].version + 1)
                if await self._stores.rows.swap(found[0], newer):
                    return new

    @property
    def _shape_space(self) -> bytes:
        return self._scope.digest("openai shapes")

    def _shape_key(self, id_: str) -> bytes:
        return self._scope.digest("openai shape", id_)

    def _mark(self) -> Row:
        """By it lists and exports know what the conversation is; it goes with the messages."""
        directory = Scope(self._scope.tenant, "-").digest("openai sessions")
        keep = self._stores.keep_seconds
        return session_row(openai_mark(self._scope), directory, self._scope, b"{}", ttl_seconds=keep)

    def _row(self, key: bytes, space: bytes, name: bytes, value: bytes) -> Row:
        """The head has no message of its own to age with, and stays until it is erased."""
        keep = None if key == self._head else self._stores.keep_seconds
        place = place_of(self._scope)
        return Row(key, space, name, self._scope.tenant, self._scope.user, place, value, ttl_seconds=keep)


ToolItems = Literal["never", "ttl"]
DEFAULT_TOOL_TTL_SECONDS = 30 * 60
_KEPT_WHEN_COMPACTED = 10


class SessionClosed(MemoryClosed, RuntimeError):
    """A `RuntimeError` too, which is what the SDK's own sessions raise."""


class ThreadkeepSession:
    """Nothing is opened before the first call, and calls may come from any event loop: `Runner.run_sync` too.

    Sessions of one process on the same `url` share what is open. `user` is who can have it erased; a session that names
    none is a user of its own. Calls and results of tools are kept only with `tool_items="ttl"`: encrypted, for
    `tool_ttl_seconds`, and given out only in pairs, unless `pairs` is turned off: the SDK's own runner mends a list
    that a limit cut between them, and another caller may not. What the SDK's `EncryptedSession` makes of an item is
    kept as it is: policy cannot look into it, and nothing recalls it. Past `compact_after` items, `run_compaction`
    leaves the older ones out of `get_items`; they stay in the archive, where they can be recalled. A write whose caller
    is cancelled is done, or has failed, before the caller continues.
    """

    session_settings: SessionSettings | None

    def __init__(
        self,
        session_id: str,
        url: str | None = None,
        *,
        tenant: str | None = None,
        user: str | None = None,
        redis: str | None = None,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        tool_items: ToolItems = "never",
        tool_ttl_seconds: float = DEFAULT_TOOL_TTL_SECONDS,
        pairs: bool = True,
        compact_after: int | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = (
            SessionSettings() if session_settings is None else coerce_session_settings(session_settings)
        )
        if tool_items not in ("never", "ttl"):
            raise InvalidSetting("tool_items", "is not a way to treat them", "use never or ttl")
        self.scope = Scope(tenant or DEFAULT_TENANT, user or session_id, session_id)
        self.last_receipt: Receipt | None = None  # of the latest `add_items`: what was refused, and why
        self._where = (url, redis, settings)
        self._seal = Seal((settings or load_settings()).slot_key)
        self._tools = ToolRules(tool_ttl_seconds) if tool_items == "ttl" else None
        self._pairs = pairs
        self._compact_after = compact_after
        self._stores: StoresThread | None = None
        self._closed = False

    async def get_items(self, limit: int | None = None, *, wrapper: Any = None) -> list[Any]:
        """The latest `limit`, oldest first; all of them without one, or with a negative one."""
        wanted = resolve_session_limit(limit, self.session_settings)
        if wanted == 0:
            return []
        items = await self._read(wanted if wanted is None or wanted > 0 else None)
        return in_pairs(items) if self._pairs else items

    async def add_items(self, items: Sequence[Any], *, wrapper: Any = None) -> None:
        """Add all items or none; `last_receipt` counts what policy refused. Raises `InvalidEvent` and `StoreError`."""
        stores = self._thread()
        if not items:
            return
        given = [split(item, uuid4().hex) for item in items]
        self.last_receipt = await stores.settled(self.scope, lambda stores: self._items(stores).add(given))

    async def pop_item(self, *, wrapper: Any = None) -> Any | None:
        """The latest item, which is erased."""
        return await self._thread().settled(self.scope, lambda stores: self._items(stores).pop())

    async def clear_session(self, *, wrapper: Any = None) -> None:
        """Erase the conversation everywhere: archive, index, caches."""
        await self._thread().settled(self.scope, lambda stores: self._items(stores).clear())

    async def run_compaction(self, args: Mapping[str, Any] | None = None, *, wrapper: Any = None) -> None:
        """Leave all but the last items out of what `get_items` returns; nothing is erased, and no model is called."""
        forced = bool(args and args.get("force"))
        if self._compact_after is None and not forced:
            return
        items = await self._read(None)
        if forced or len(items) > (self._compact_after or 0):
            kept = min(_KEPT_WHEN_COMPACTED, self._compact_after or _KEPT_WHEN_COMPACTED)
            await self._thread().settled(self.scope, lambda stores: self._items(stores).leave_out_all_but(kept))

    async def aclose(self) -> None:
        """Closing twice is allowed; other sessions on the same stores stay open."""
        if (last := self._release()) is not None:
            await last.close()

    def close(self) -> None:
        if (last := self._release()) is not None:
            last.close_and_wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _read(self, limit: int | None) -> list[Item]:
        return await self._thread().use(lambda stores: self._items(stores).items(limit))

    def _items(self, stores: AgentStores) -> SessionItems:
        return SessionItems(stores, self.scope, self._seal, self._tools)

    def _thread(self) -> StoresThread:
        if self._closed:
            raise SessionClosed(f"{type(self).__name__} is closed")
        if self._stores is None:
            self._stores = borrowed(*self._where)
        return self._stores

    def _release(self) -> StoresThread | None:
        """Give the stores back; returns them where no other session uses them."""
        self._closed = True
        stores, self._stores = self._stores, None
        return stores if stores is not None and last_of(stores) else None
