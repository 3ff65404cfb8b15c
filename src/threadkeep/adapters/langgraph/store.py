"""LangGraph's store on the databases Threadkeep knows: values that outlive a thread, found by name or by meaning."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterable, Sequence
from concurrent.futures import Future, wait
from contextlib import asynccontextmanager, suppress
from functools import partial
from types import TracebackType
from typing import Any, Self, cast

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.base import BaseStore, IndexConfig, Op, Result, TTLConfig, ensure_embeddings

from threadkeep.adapters.langgraph.codec import Codec
from threadkeep.adapters.langgraph.store_items import Batch, ItemVectors, Shelf
from threadkeep.adapters.langgraph.store_router import StoreRouter
from threadkeep.compose.memory import admission_rules, embedder_named, is_server_url, open_items
from threadkeep.errors import InvalidInput, InvalidSetting, MissingExtra, StoreError
from threadkeep.ports.agent_rows import ItemStore
from threadkeep.ports.models import Embedder
from threadkeep.scope import DEFAULT_TENANT, Scope
from threadkeep.settings import Settings, load_settings

_MAX_VALUE_BYTES = 4 << 20
_DEFAULT_SWEEP_MINUTES = 5.0


class ThreadkeepStore(BaseStore):
    """Open one with `async with ThreadkeepStore.from_url(url, user=…)` or `with ThreadkeepStore.from_url_sync(url)`.

    Every method may be called from many threads and tasks at once, the synchronous ones also inside a running loop.
    """

    supports_ttl = True

    def __init__(
        self,
        router: StoreRouter[ItemStore],
        shelf: Shelf,
        ttl: TTLConfig | None = None,
        index: IndexConfig | None = None,
    ) -> None:
        self._router = router
        self._shelf = shelf
        self._sweeper: Future[None] | None = None
        self._swept_enough = asyncio.Event()
        self.ttl_config = ttl
        self.index_config = index

    @classmethod
    @asynccontextmanager
    async def from_url(cls, url: str, **options: Any) -> AsyncGenerator[AsyncThreadkeepStore]:
        """A store on `sqlite:///path.db`, `postgresql://…` or `mysql://…`; the options are those of `from_url_sync`."""
        store = AsyncThreadkeepStore._closed(url, **options)
        await store._router.open()
        try:
            yield store
        finally:
            await store.aclose()

    @classmethod
    def from_url_sync(cls, url: str, **options: Any) -> Self:
        """The same, open already: close it, or use it in a `with` statement.

        With `user` every item is that user's. Without, a tenant's users share the store: then `user_label=1` says that
        the second label of a namespace names the user whose item it is, and whom `erase` frees of it. `embedder` is a
        name as in `THREADKEEP_EMBEDDER`, an `Embedder`, or LangChain's `Embeddings`; `fields` are the paths that are
        embedded. `index` takes LangGraph's own form of both. `ttl` is LangGraph's `TTLConfig`.
        """
        store = cls._closed(url, **options)
        try:
            store._router.wait(store._router.open())
        except BaseException:
            store._router.close_and_wait()
            raise
        return store

    @classmethod
    def _closed(
        cls,
        url: str,
        *,
        tenant: str | None = None,
        user: str | None = None,
        user_label: int | None = None,
        embedder: Any = None,
        fields: Sequence[str] | None = None,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        serde: SerializerProtocol | None = None,
        max_value_bytes: int = _MAX_VALUE_BYTES,
        settings: Settings | None = None,
    ) -> Self:
        settings = settings or load_settings()
        if user_label is not None and (user is not None or user_label < 0):
            raise InvalidSetting("user_label", "does not go with this", "give it alone: the index of a label, from 0")
        owner = Scope(tenant or DEFAULT_TENANT, user or "-")  # both are checked there
        if index is not None:
            embedder, fields = _from_langgraph(index)
        vectors = _vectors(embedder, fields or ("$",), owner, settings)
        codec = Codec(serde or JsonPlusSerializer(allowed_msgpack_modules=None))
        shelf = Shelf(owner.tenant, user, user_label, codec, vectors, max_value_bytes)
        router: StoreRouter[ItemStore] = StoreRouter(partial(_opened, url, settings), bound_to_loop=is_server_url(url))
        return cls(router, shelf, ttl, index)

    async def aclose(self) -> None:
        """Closing twice is allowed."""
        await asyncio.to_thread(self._stop_sweeping)
        await self._router.close()
        if self._shelf.vectors is not None:
            await self._shelf.vectors.close()

    def close(self) -> None:
        self._stop_sweeping()
        if self._shelf.vectors is not None:
            self._router.start(self._shelf.vectors.close()).result()
        self._router.close_and_wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Reads see what was there before the batch; what it puts and deletes is stored together or not at all."""
        given = list(ops)
        return await self._router.use(lambda store: Batch(self._shelf, store).run(given))

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return self._router.wait(self.abatch(ops))

    async def asweep_ttl(self) -> int:
        """Delete what has expired, of every user; return how many items. No search returns them before, either."""
        return await self._router.use(lambda store: store.sweep())

    def sweep_ttl(self) -> int:
        return self._router.wait(self.asweep_ttl())

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        """Sweep now and then, on a thread of the store's own, until it is stopped or the store is closed."""
        if self._sweeper is None or self._sweeper.done():
            configured = (self.ttl_config or {}).get("sweep_interval_minutes")
            minutes = sweep_interval_minutes or configured or _DEFAULT_SWEEP_MINUTES
            if minutes <= 0:
                raise InvalidInput("sweep_interval_minutes", "is not above zero", "give minutes")
            self._swept_enough = enough = asyncio.Event()
            self._sweeper = self._router.start(self._sweep_now_and_then(minutes * 60, enough))
        return self._sweeper

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Whether none runs any more. A sweep under way is finished first, in at most `timeout` seconds."""
        return self._stop_sweeping(timeout)

    def _stop_sweeping(self, timeout: float | None = None) -> bool:
        if self._sweeper is None or self._sweeper.done():
            return True
        self._router.start(_set(self._swept_enough))
        return not wait((self._sweeper,), timeout).not_done

    async def _sweep_now_and_then(self, seconds: float, enough: asyncio.Event) -> None:
        while not enough.is_set():
            with suppress(StoreError):  # unavailable: what has expired is not read, and the next sweep finds it
                await self.asweep_ttl()
            with suppress(TimeoutError):
                await asyncio.wait_for(enough.wait(), seconds)


class AsyncThreadkeepStore(ThreadkeepStore):
    """What `ThreadkeepStore.from_url` opens: the sweeper's verbs are coroutines, as in LangGraph's own such stores."""

    async def sweep_ttl(self) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        return await self.asweep_ttl()

    async def start_ttl_sweeper(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, sweep_interval_minutes: float | None = None
    ) -> asyncio.Future[None]:
        return asyncio.wrap_future(super().start_ttl_sweeper(sweep_interval_minutes))

    async def stop_ttl_sweeper(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        timeout: float | None = None,  # noqa: ASYNC109  LangGraph's name for it
    ) -> bool:
        return await asyncio.to_thread(self._stop_sweeping, timeout)


async def _set(event: asyncio.Event) -> None:
    event.set()


def _opened(url: str, settings: Settings) -> Coroutine[Any, Any, ItemStore]:
    return open_items(url, settings)


def _from_langgraph(index: IndexConfig) -> tuple[Any, Sequence[str] | None]:
    embed: Any = index.get("embed")
    if not isinstance(embed, str) and not hasattr(embed, "embed"):
        name = getattr(embed, "__name__", type(embed).__name__)
        embed = _adapted(ensure_embeddings(embed), name, dimensions=index.get("dims"))
    return embed, index.get("fields")


def _vectors(given: Any, fields: Sequence[str], owner: Scope, settings: Settings) -> ItemVectors | None:
    embedder = _embedder(given, settings)
    if embedder is None:
        return None
    rules = admission_rules(settings)
    redactor = rules.redactor_for(owner) if rules.redactor_for else rules.redactor
    return ItemVectors(embedder, fields, lambda text: redactor(text).text)


def _embedder(given: Any, settings: Settings) -> Embedder | None:
    if given is None:
        return None
    if isinstance(given, str):
        found = embedder_named(given, settings)
        if found is None and given != "none":
            raise MissingExtra("embeddings", "a store that is searched by meaning")
        return found
    if hasattr(given, "aembed_documents"):
        return _adapted(given, type(given).__name__)
    if not hasattr(given, "embed"):
        raise InvalidSetting("embedder", f"is a {type(given).__name__}", "give a name, an Embedder or Embeddings")
    return cast("Embedder", given)


def _adapted(embeddings: Any, name: str, *, dimensions: int | None = None) -> Embedder:
    """Imported only now: vectors need numpy, which comes with another extra."""
    try:
        from threadkeep.models.embedders.langchain import langchain_embedder
    except ModuleNotFoundError:
        raise MissingExtra("embeddings", "a store that is searched by meaning") from None
    return langchain_embedder(embeddings, name, dimensions=dimensions)
