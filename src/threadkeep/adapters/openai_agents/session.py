"""The Agents SDK's session on Threadkeep: policy decides what is kept, which can be recalled and erased."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self
from uuid import uuid4

from agents.memory.session_settings import SessionSettings, coerce_session_settings, resolve_session_limit

from threadkeep.adapters.openai_agents.items import Item, in_pairs, split
from threadkeep.adapters.openai_agents.session_items import SessionItems, ToolRules
from threadkeep.adapters.sealing import Seal
from threadkeep.adapters.stores_thread import StoresThread, borrowed, last_of
from threadkeep.compose.adapters import AgentStores
from threadkeep.errors import InvalidSetting, MemoryClosed
from threadkeep.model import Receipt
from threadkeep.scope import DEFAULT_TENANT, Scope
from threadkeep.settings import Settings, load_settings

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
