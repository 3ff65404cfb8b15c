"""Embedding: from stored messages to their vectors, newest first, in the process that opened the memory.

What is missing is read from the stores, so a worker that is killed leaves nothing to repair: the next one finds the
same messages, and an upsert does not double any. An embedder that is down, or refuses everything, is waited for and
nothing is given up. A message that it refuses while it takes others is tried again after 1, 2 and 4 seconds, and then
marked `embed_failed` with the reason; its words still find it.

Nothing is imported or loaded before it is wanted: numpy and a model's weights take longer than most commands live.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from threadkeep.errors import EmbedderError, StoreError, StoreUnavailable, ThreadkeepError
from threadkeep.model import Draft, Erased
from threadkeep.ports.index import MessageKey, MessageVectors, Span, VectorIndex, VectorStores, Waiting
from threadkeep.ports.models import Embedder, EmbeddingModel, model_of
from threadkeep.resilience.breaker import Breaker
from threadkeep.scope import Scope

_log = logging.getLogger("threadkeep.worker")
_random = random.Random()  # of our own: an application's is seeded, and read, by itself
_PROBE = "Are you there?"
_MOST_ON_THE_LOOP = 20_000  # characters
Cut = Callable[[str], Sequence[str]]  # a text into chunks, one for most


@dataclass(frozen=True, slots=True)
class EmbedLimits:
    batch: int = 64
    quiet_seconds: float = 0.05  # appends come first: wait until there was none for so long,
    latest_seconds: float = 1.0  # but no longer than this
    poll_seconds: float = 2.0  # for what other processes have stored
    retry_seconds: tuple[float, ...] = (1.0, 2.0, 4.0)
    longest_pause: float = 5.0
    sweep_seconds: float = 3_600.0
    documents_seconds: float = 60.0  # between looks for documents that lack vectors


@dataclass(frozen=True, slots=True)
class EmbedParts:
    embedder: Embedder
    stores: VectorStores
    cut: Cut
    documents: Callable[[EmbeddingModel], Awaitable[object]] | None = None  # embeds those that lack vectors
    shown: Callable[[Scope, int], Awaitable[None]] | None = None  # the message of that `seq`, anew, where it is hot


async def show_marks(parts: EmbedParts, messages: Sequence[MessageKey]) -> None:
    """After their marks have changed. A hot store that is unavailable shows them as they were until it reads anew."""
    if parts.shown is None:
        return
    for key, seq in zip(messages, await parts.stores.backlog.seqs(messages), strict=True):
        try:
            if seq is not None:
                await parts.shown(key.scope, seq)
        except ThreadkeepError as error:
            _log.info("a mark is not shown in a window yet (%s)", type(error).__name__)


class EmbedWorker:
    """Several may work on one store: they may do the same work twice, never harm."""

    def __init__(self, parts: EmbedParts, limits: EmbedLimits | None = None) -> None:
        self._parts = parts
        self._limits = limits or EmbedLimits()
        self._spans = Spans(parts.stores.late_seconds)
        self._health = Breaker(f"The embedder {parts.embedder.name} or its index")  # for the log alone
        self._woken, self._hurry, self._stopping = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._last_woken = 0.0
        self._next_sweep = 0.0
        self._asked: list[asyncio.Future[None]] = []
        self._retried: dict[int, asyncio.Task[None]] = {}

    def wake(self) -> None:
        """Note that something was stored."""
        self._last_woken = _now()
        self._woken.set()

    def erased(self) -> None:
        """Look at everything again where row numbers are reused: a number may be another message's by now."""
        if self._parts.stores.numbers_return:
            self._next_sweep = 0.0

    def stop(self) -> None:
        for event in (self._stopping, self._woken, self._hurry):
            event.set()

    async def run(self) -> None:
        """Until `stop`; a batch of messages that was begun is finished."""
        documents = asyncio.create_task(self._embed_documents())
        try:
            await self._embed_messages()
        finally:
            for task in (documents, *self._retried.values()):
                task.cancel()
            await asyncio.gather(documents, *self._retried.values(), return_exceptions=True)

    async def _embed_messages(self) -> None:
        pause = 0.1
        while not self._stopping.is_set():
            try:
                await self._pass()
                self._health.succeeded()
                pause = 0.1
                if not (self._asked or self._stopping.is_set()):
                    self._hurry.clear()
                    await _until(self._woken, self._limits.poll_seconds * _random.uniform(0.9, 1.1))
            except Exception as error:  # nothing may end a worker but a stop
                self._health.failed(error)
                await _until(self._stopping, pause)
                pause = min(pause * 2, self._limits.longest_pause)

    async def _embed_documents(self) -> None:
        """Embed documents concurrently with messages: few and long. Until then they are found by their words."""
        while self._parts.documents is not None and not self._stopping.is_set():
            try:
                await self._parts.documents(await model_of(self._parts.embedder))
            except Exception as error:  # nothing may end a worker but a stop
                _log.info("documents will be embedded later (%s)", type(error).__name__)
            await _until(self._stopping, self._limits.documents_seconds)

    async def caught_up(self) -> None:
        """Return once everything that is stored by now has its vector, or was given up on."""
        asked = asyncio.get_running_loop().create_future()
        self._asked.append(asked)
        self._woken.set()
        self._hurry.set()
        await asked

    async def _pass(self) -> None:
        """Everything that is missing by now."""
        asked, self._asked = self._asked, []
        try:
            if not asked:
                await self._quiet()
            model = await model_of(self._parts.embedder)
            await self._look()
            while not self._stopping.is_set() and (span := self._spans.newest()) is not None:
                began = _now()
                found = await self._parts.stores.backlog.waiting(model, span, self._limits.batch)
                await self._handled(model, [one for one in found if one.number not in self._retried])
                self._spans.done(span, found[-1].number - 1 if len(found) == self._limits.batch else span.after)
                took = _now() - began
                if not asked and _now() - self._last_woken < self._limits.quiet_seconds:
                    await _until(self._hurry, 3 * took)  # while there are appends, work a quarter of the time only
                if self._woken.is_set():
                    await self._look()
            await self._swept(model)
            if asked and self._retried:
                await asyncio.wait(set(self._retried.values()))
        except BaseException:
            self._asked = asked + self._asked  # they are still waited for
            raise
        for one in asked:
            if not one.done():
                one.set_result(None)

    async def _look(self) -> None:
        """Note what was stored since the last look; now and then, everything."""
        self._woken.clear()
        if _now() >= self._next_sweep:
            if self._parts.stores.tidy is not None:
                await self._parts.stores.tidy()
            self._next_sweep = _now() + self._limits.sweep_seconds
            look = self._spans.everything
        else:
            look = self._spans.upto
        look(await self._parts.stores.backlog.newest(), _now())

    async def _swept(self, model: EmbeddingModel) -> None:
        """All messages have vectors of this model: those of earlier ones have served."""
        if self._stopping.is_set() or not self._spans.all_seen():
            return
        for other in await self._parts.stores.index.models():
            if other != model:
                count = await self._parts.stores.index.forget_model(other)
                _log.info("%s vectors of %s were replaced by those of %s", count, other.name, model.name)

    async def _handled(self, model: EmbeddingModel, waiting: Sequence[Waiting]) -> None:
        if not waiting:
            return
        try:
            await embed(self._parts, model, waiting)
        except StoreError:
            raise
        except Exception as error:  # whatever it is about a message, it must not hold up the others
            await self._answers_at_all(model, error)
            if len(waiting) == 1:
                self._retry_later(model, waiting[0])
                return
            for half in (waiting[: len(waiting) // 2], waiting[len(waiting) // 2 :]):
                await self._handled(model, half)

    async def _answers_at_all(self, model: EmbeddingModel, error: Exception) -> None:
        """Raises the error unless the embedder does well with another text: then it is about what it was given."""
        try:
            (vector,) = await self._parts.embedder.embed([_PROBE])
        except EmbedderError:
            raise error from None
        if len(vector) != model.dimensions:
            raise error

    def _retry_later(self, model: EmbeddingModel, one: Waiting) -> None:
        task = asyncio.create_task(self._retry(model, one))
        self._retried[one.number] = task
        task.add_done_callback(lambda _: self._retried.pop(one.number, None))

    async def _retry(self, model: EmbeddingModel, one: Waiting) -> None:
        """An outage proves nothing about the message: it is found again when that is over."""
        reason = ""
        try:
            for seconds in self._limits.retry_seconds:
                await asyncio.sleep(seconds)
                try:
                    await embed(self._parts, model, [one])
                    return
                except StoreError:
                    raise
                except Exception as error:
                    await self._answers_at_all(model, error)
                    reason = _reason(error)
            await self._parts.stores.backlog.give_up(model, {one.key: reason})
            await show_marks(self._parts, [one.key])
            _log.error("a message was given up on (embed_failed): %s", reason)
        except Exception as error:
            self._spans.again(one.number)
            _log.info("a message that was refused will be tried anew (%s)", type(error).__name__)

    async def _quiet(self) -> None:
        """Until nothing was stored for a moment: an append must not wait for the work it caused."""
        began = _now()
        while not self._hurry.is_set() and _now() - began < self._limits.latest_seconds:
            left = self._last_woken + self._limits.quiet_seconds - _now()
            if left <= 0:
                return
            await _until(self._hurry, left)  # a stop, or a caller that waits for all to be done, ends it


async def embed(parts: EmbedParts, model: EmbeddingModel, waiting: Sequence[Waiting]) -> None:
    """Of stored messages only. Raises what keeps it from being done."""
    chunks = await _cut(parts.cut, [one.content for one in waiting])
    vectors = await parts.embedder.embed([chunk for some in chunks for chunk in some])
    rows: list[MessageVectors] = []
    start = 0
    for one, some in zip(waiting, chunks, strict=True):
        rows.append(MessageVectors(one.scope, one.message_id, vectors[start : start + len(some)]))
        start += len(some)
    await parts.stores.index.upsert(model, rows)


async def _cut(cut: Cut, texts: Sequence[str]) -> list[list[str]]:
    """Long texts in a thread: others should not wait for them."""

    def work() -> list[list[str]]:
        return [list(cut(text)) or [text] for text in texts]

    return await asyncio.to_thread(work) if sum(map(len, texts)) > _MOST_ON_THE_LOOP else work()


async def _until(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return


def _reason(error: Exception) -> str:
    """Threadkeep's own errors quote nothing that was sent; others might."""
    return f"{type(error).__name__}: {error}" if isinstance(error, ThreadkeepError) else type(error).__name__


def _now() -> float:
    return asyncio.get_running_loop().time()


_STEP = 10_000  # numbers looked through at once
_APART_SECONDS = 1.0  # between notes of how far it was


class Spans:
    """The newest comes first, however much older work there is.

    A number may be seen up to `late_seconds` after a higher one: its transaction took long.
    """

    def __init__(self, late_seconds: float) -> None:
        self._late_seconds = late_seconds
        self._open: list[Span] = []  # the newest last
        self._highest: deque[tuple[float, int]] = deque([(float("-inf"), 0)])
        self._sweeping = False

    def everything(self, newest: int, now: float) -> None:
        """Look through all there is."""
        self._open = _steps(0, newest)
        self._sweeping = True
        self._note(newest, now)

    def upto(self, newest: int, now: float) -> None:
        """Look through what is new, and through what may have come late."""
        while len(self._highest) > 1 and now - self._highest[1][0] >= self._late_seconds:
            self._highest.popleft()
        settled = min(self._highest[0][1], newest)
        self._open = [span for span in self._open if span.after < settled] + _steps(settled, newest)
        self._note(newest, now)

    def again(self, number: int) -> None:
        self._open.append(Span(number - 1, number))

    def newest(self) -> Span | None:
        return self._open[-1] if self._open else None

    def done(self, span: Span, upto: int) -> None:
        """Of this span only what lies at or below `upto` is left."""
        self._open.remove(span)
        if upto > span.after:
            self._open.append(Span(span.after, upto))

    def all_seen(self) -> bool:
        """Return once whether a look through everything has come to its end."""
        seen = self._sweeping and not self._open
        if seen:
            self._sweeping = False
        return seen

    def _note(self, newest: int, now: float) -> None:
        """Rows at the end may have been erased, and their numbers be given again."""
        self._highest = deque((at, min(number, newest)) for at, number in self._highest)
        last_at, last = self._highest[-1]
        if newest > last and now - last_at >= min(_APART_SECONDS, self._late_seconds):
            self._highest.append((now, newest))


def _steps(after: int, upto: int) -> list[Span]:
    return [Span(start, min(start + _STEP, upto)) for start in range(after, upto, _STEP)]


_FIRST_LOOK_SECONDS = 1.0  # for what was left over, where nothing else is stored
_LONGEST_PAUSE = 30.0
_CLOSE_SECONDS = 10.0
_AT_ONCE_SECONDS = 10.0


async def _erased_from(opened: Awaitable[VectorIndex | None], scope: Scope, message_id: str | None) -> Erased:
    """Report a store that cannot be opened or does not answer as failed: the archive must be erased all the same."""
    try:
        index = await opened
        if index is None:
            return Erased()
        if message_id is None:
            return await index.erase(scope)
        count = await index.delete(scope, message_id)
    except ThreadkeepError as error:
        _log.warning("vectors could not be erased (%s: %s)", type(error).__name__, error)
        return Erased(found=1, failed=1)
    return Erased(count, count)


class InProcessEmbedding:
    """`make` opens the parts, `let_go` closes them. With `worker=False` others embed: nothing runs here by itself."""

    def __init__(
        self,
        make: Callable[[], Awaitable[EmbedParts]],
        let_go: Callable[[], Awaitable[None]],
        limits: EmbedLimits | None = None,
        *,
        worker: bool = True,
    ) -> None:
        self._make = make
        self._let_go = let_go
        self._limits = limits or EmbedLimits()
        self._woken = asyncio.Event()
        self._worker: EmbedWorker | None = None
        self._opened: asyncio.Future[EmbedWorker] = asyncio.get_running_loop().create_future()
        self._running = asyncio.create_task(self._run(), name="threadkeep-embed") if worker else None

    def wake(self) -> None:
        if self._worker is not None:
            self._worker.wake()
        else:
            self._woken.set()

    async def at_once(self, scope: Scope, drafts: Sequence[Draft]) -> bool:
        try:
            async with asyncio.timeout(_AT_ONCE_SECONDS):
                parts = await self._make()
                model = await model_of(parts.embedder)
                await embed(parts, model, [Waiting(0, scope, draft.id, draft.content) for draft in drafts])
        except Exception as error:  # they are stored: whatever keeps them from a vector must not say otherwise
            _log.info("messages will be embedded later (%s)", type(error).__name__)
            return False
        return True

    async def erase(self, scope: Scope, message_id: str | None = None) -> Erased:
        if self._worker is not None:
            self._worker.erased()

        async def opened() -> VectorIndex:
            return (await self._make()).stores.index

        return await _erased_from(opened(), scope, message_id)

    async def flushed(self, timeout: float) -> None:  # noqa: ASYNC109
        if self._running is None:
            return
        self._woken.set()
        try:
            async with asyncio.timeout(timeout):
                await (await asyncio.shield(self._opened)).caught_up()
        except TimeoutError:
            raise StoreUnavailable(
                f"messages were not embedded within {timeout} s; does the embedder answer? Their words find them"
            ) from None

    async def close(self) -> None:
        if self._running is not None:
            if self._worker is not None:
                self._worker.stop()
                await asyncio.wait({self._running}, timeout=_CLOSE_SECONDS)
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        await self._let_go()

    async def _run(self) -> None:
        await _until(self._woken, _FIRST_LOOK_SECONDS)
        self._worker = EmbedWorker(await self._parts(), self._limits)
        self._worker.wake()
        self._opened.set_result(self._worker)
        await self._worker.run()

    async def _parts(self) -> EmbedParts:
        """What cannot be opened now (a folder in use, a disk that is full) may be later."""
        health, pause = Breaker("The embedder or its index"), _FIRST_LOOK_SECONDS
        while True:
            try:
                parts = await self._make()
            except Exception as error:
                health.failed(error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                health.succeeded()
                return parts


class VectorsLeft:
    """An `Embedding` that embeds nothing: what an earlier run put into a store apart from the archive is erased there.

    `opened` returns that store when something is first erased; None where there is nothing to open.
    """

    def __init__(self, opened: Callable[[], VectorIndex | None]) -> None:
        self._opened = opened
        self._index: VectorIndex | None = None

    def wake(self) -> None:
        """Do nothing: there is no embedder."""

    async def at_once(self, scope: Scope, drafts: Sequence[Draft]) -> bool:
        return False

    async def erase(self, scope: Scope, message_id: str | None = None) -> Erased:
        async def opened() -> VectorIndex | None:
            self._index = self._index or await asyncio.to_thread(self._opened)
            return self._index

        return await _erased_from(opened(), scope, message_id)

    async def flushed(self, timeout: float) -> None:  # noqa: ASYNC109
        """At once."""

    async def close(self) -> None:
        if self._index is not None:
            await self._index.close()
