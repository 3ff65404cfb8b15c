"""Accept a user's message and have it answered, at once or after those before it.

The message is stored before it is acknowledged; the answer is a task of the process's own, which a client that
disconnects does not cancel. One conversation is answered one message at a time, in the order they came.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from starlette.requests import Request

from threadkeep.agent.window import answer_to
from threadkeep.errors import CapabilityMissing, Conflict, ScopeErased, StoreError, ThreadkeepError
from threadkeep.events import UserMessage
from threadkeep.http.streams import Streams, messages_after
from threadkeep.identity.principal import Principal
from threadkeep.memory import Memory
from threadkeep.model import History, Message, Receipt
from threadkeep.policy.admit import ANSWERS
from threadkeep.ports.chat import Answer, AnswerKind, Asked, OfLanguages, Responder
from threadkeep.ports.scratch import Claims
from threadkeep.scope import Scope

_log = logging.getLogger("threadkeep.http")
_PARTING_SECONDS = 8.0


@dataclass(frozen=True, slots=True)
class Taken:
    """A message that is in memory, and the question it asks."""

    asked: Asked
    receipt: Receipt | None  # None where memory could not take it

    @property
    def message_id(self) -> str | None:
        return self.asked.message_id

    @property
    def replayed(self) -> bool:
        return self.receipt is not None and self.receipt.replayed


def as_asked_by(who: Principal, asked: Asked, request: Request) -> Asked:
    """With what the caller brings: its token for tools, what it may read, and the request's name for logs."""
    return replace(asked, token=who.token, request_id=request.state.request_id, access=who.access(asked.scope))


class Answering:
    def __init__(self, memory: Memory, responder: Responder | None, streams: Streams) -> None:
        self._memory = memory
        self._responder = responder
        self._speaking = responder if isinstance(responder, OfLanguages) else None
        self._default_language = self._speaking.default_language if self._speaking else "und"
        self._languages = self._speaking.languages if self._speaking else None
        self._streams = streams
        self._running: dict[tuple[bytes, str], asyncio.Task[Answer]] = {}
        self._turns: dict[bytes, tuple[asyncio.Lock, int]] = {}

    @property
    def possible(self) -> bool:
        return self._responder is not None

    def spoken(self, language: str | None) -> str | None:
        """The tag by which the assistant names the language; None for one that it does not speak."""
        return language if language is None or self._speaking is None else self._speaking.spoken(language)

    async def greet(self, scope: Scope, language: str | None) -> Answer | None:
        return await self._responder.greet(scope, language) if self._responder else None

    def greeting_of(self, history: History) -> Answer | None:
        """The greeting, if the conversation was opened with one and it is still there."""
        first = history.messages[0] if history.messages and history.before is None else None
        return _answer_of(first, self._default_language) if first is not None and first.role == "assistant" else None

    async def language_of(self, scope: Scope) -> str | None:
        """The conversation's language, or None: it has none, or no store answers."""
        try:
            return (await self._memory.history(scope, 1)).language
        except StoreError:
            return None

    async def take(self, asked: Asked, key: str | None) -> Taken:
        """Raises what `Memory.append` raises."""
        receipt = await self._memory.append(asked.scope, [_said_by(asked)], key, languages=self._languages)
        self._streams.grown(asked.scope)
        once = None if key is None else asked.scope.digest("answer", key).hex()
        return Taken(replace(asked, message_id=receipt.kept[0] if receipt.kept else None, answer_key=once), receipt)

    async def take_if_possible(self, asked: Asked, key: str | None) -> Taken:
        """The same, but the conversation continues without memory while no store answers."""
        try:
            return await self.take(asked, key)
        except StoreError as error:
            _log.error(json.dumps({"event": "without_memory", "error": error.code, "request_id": asked.request_id}))
            return Taken(replace(asked, history=()), None)

    async def answer(self, taken: Taken) -> Answer:
        """Raises `CapabilityMissing` where there is no assistant, and what the responder raises."""
        if taken.replayed and (said := await self._said_before(taken)):
            return said
        answer = await asyncio.shield(self.begin(taken))
        if answer.message_id is None and taken.asked.answer_key is not None:  # another process may have been first
            with suppress(StoreError):
                return await self._said_before(taken) or answer
        return answer

    def begin(self, taken: Taken) -> asyncio.Task[Answer]:
        """Start the answer, once for each message however often this is called."""
        if self._responder is None:
            raise CapabilityMissing("no assistant is configured: the message is kept and stays unanswered")
        name = (taken.asked.scope.digest(), taken.message_id or f"unkept {id(taken)}")
        running = self._running.get(name)
        if running is None:
            work = self._in_turn(name[0], taken)
            running = asyncio.create_task(work, name="threadkeep-answer")
            self._running[name] = running
            running.add_done_callback(lambda done: self._finished(name, done))
        return running

    def is_under_way(self, scope: Scope, message_id: str) -> bool:
        """Whether this process is making the answer to it."""
        return (scope.digest(), message_id) in self._running

    async def begin_if_unanswered(self, taken: Taken) -> None:
        """For an acknowledged message; a replay of one that was answered has nothing left to do."""
        if self.possible and not (taken.replayed and await self._said_before(taken)):
            self.begin(taken)

    async def _in_turn(self, key: bytes, taken: Taken) -> Answer:
        """Answer in the order of calls: the place in the queue is taken before anything else is awaited."""
        lock, waiting = self._turns.get(key, (asyncio.Lock(), 0))
        self._turns[key] = lock, waiting + 1
        looking = asyncio.create_task(self._as_of_now(taken)) if waiting else None
        try:
            async with lock:
                return await self._answered_once(await self._unless_erased(await looking) if looking else taken)
        finally:
            if looking:
                looking.cancel()
            lock, waiting = self._turns[key]
            self._turns[key] = lock, waiting - 1
            if waiting == 1:
                del self._turns[key]

    async def _as_of_now(self, taken: Taken) -> Taken:
        """Pin the generation, so that what is erased while it waits is not answered afterwards."""
        asked = taken.asked
        if asked.scope.generation is None and taken.receipt is not None:
            with suppress(StoreError):
                asked = replace(asked, scope=(await self._memory.history(asked.scope, 1)).scope)
        return replace(taken, asked=asked)

    async def _unless_erased(self, taken: Taken) -> Taken:
        """Raise `ScopeErased` where the message was erased, even if its conversation continues.

        Appending it again under its id shows that: what is still there is not stored twice.
        """
        if taken.message_id is not None:
            with suppress(Conflict, StoreError):
                again = replace(_said_by(taken.asked), id=taken.message_id)
                receipt = await self._memory.append(taken.asked.scope, [again], languages=self._languages)
                if "erased" in receipt.refused:
                    raise ScopeErased("what was asked was erased before it was answered")
        return taken

    async def _answered_once(self, taken: Taken) -> Answer:
        """A message with a key may have reached another process too."""
        key = taken.asked.answer_key
        if key is None or self._memory.claims is None:
            return await self._answered(taken)
        alone = OneProcess(self._memory.claims)
        async with alone.at_work(taken.asked.scope, key, lambda: self._as_of_now(taken)) as before_waiting:
            with suppress(StoreError):
                if said := await self._said_before(before_waiting or taken):
                    return said
            return await self._answered(await self._unless_erased(before_waiting) if before_waiting else taken)

    async def _answered(self, taken: Taken) -> Answer:
        asked = taken.asked
        assert self._responder is not None
        try:
            if self._streams.listened_to(asked.scope):
                return await self._streamed(self._responder, asked)
            return await self._responder.respond(asked)
        except Exception as error:  # an application's own agent raises what it likes, and may quote the user
            code, retryable = "internal_error", False
            if isinstance(error, ThreadkeepError):
                code, retryable = error.code, error.retryable
            failure = {"message_id": asked.message_id, "code": code, "retryable": retryable}
            self._streams.send(asked.scope, "failed", failure)
            raise
        finally:
            self._streams.grown(asked.scope)

    async def _streamed(self, responder: Responder, asked: Asked) -> Answer:
        answer: Answer | None = None
        async for piece in responder.stream(asked):
            if isinstance(piece, Answer):
                answer = piece
            else:
                self._streams.send(asked.scope, "delta", {"message_id": asked.message_id, "text": piece})
        assert answer is not None, "a stream ends with its answer"
        return answer

    async def _said_before(self, taken: Taken) -> Answer | None:
        """The answer the message had when it first came, if any.

        What an application appends unasked names no message, and is no answer to one that has just come.
        """
        assert taken.receipt is not None
        later = await messages_after(self._memory, taken.asked.scope, taken.receipt.seq)
        found = answer_to(taken.message_id, later)
        if found is None or not (taken.replayed or ANSWERS in found.meta):
            return None
        return _answer_of(found, self._default_language)

    def _finished(self, name: tuple[bytes, str], done: asyncio.Task[Answer]) -> None:
        self._running.pop(name, None)
        if done.cancelled():
            return
        error = done.exception()  # read, so that asyncio does not warn of an exception that was never retrieved
        if error is not None:
            code = error.code if isinstance(error, ThreadkeepError) else type(error).__qualname__
            _log.error(json.dumps({"event": "unanswered", "error": code}))

    async def close(self) -> None:
        """Give running answers a few seconds to finish; the messages of those cancelled stay unanswered."""
        running = [*self._running.values()]
        if not running:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(_PARTING_SECONDS):
                await asyncio.gather(*running, return_exceptions=True)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def _said_by(asked: Asked) -> UserMessage:
    return asked.event or UserMessage(asked.text, language=asked.language)


def _answer_of(message: Message, default: str) -> Answer:
    kind = message.meta.get("type", "answer")
    known: AnswerKind = kind if kind in ("clarify", "greeting") else "answer"
    return Answer(message.content, message.language or default, known, message.id)


T = TypeVar("T")
_SECONDS = 10.0  # how long others wait for a process that died, or whose claim the store has lost
_RENEWED_AFTER = 3.0
_LOOK_AGAIN_AFTER, _LONGEST_PAUSE = 0.1, 1.0
_PAUSE_OF_THE_WAIT = 0.1  # a share: the longer the wait, the rarer the checks


class OneProcess:
    def __init__(self, claims: Claims, seconds: float = _SECONDS) -> None:
        self._claims = claims
        self._seconds = seconds
        self._renewed_after = min(_RENEWED_AFTER, seconds / 3)

    @asynccontextmanager
    async def at_work(self, scope: Scope, name: str, look: Callable[[], Awaitable[T]]) -> AsyncGenerator[T | None]:
        """Enter once no other process holds the claim, or the store is down; yield what `look` saw before the wait."""
        holder = secrets.token_hex(8)
        seen = await self._waited(scope, name, holder, look)
        holding = asyncio.create_task(self._hold_on(scope, name, holder), name="threadkeep-claim")
        try:
            yield seen
        finally:
            holding.cancel()
            with suppress(StoreError):  # it goes by itself
                await self._claims.give_back(scope, name, holder)

    async def _waited(self, scope: Scope, name: str, holder: str, look: Callable[[], Awaitable[T]]) -> T | None:
        """While the store is down, wait as long for another process as for one that died: it may still be running."""
        seen, others_until, now = None, 0.0, asyncio.get_running_loop().time
        began = now()
        while True:
            try:
                if await self._claims.take(scope, name, holder, self._seconds):
                    return seen
                others_until, waited = now() + self._seconds, now() - began
                pause = min(max(_LOOK_AGAIN_AFTER, waited * _PAUSE_OF_THE_WAIT), _LONGEST_PAUSE)
            except StoreError as error:
                if now() >= others_until:
                    _log.warning(json.dumps({"event": "unclaimed", "error": error.code}))
                    return seen
                pause = min(self._renewed_after, others_until - now())
            seen = seen or await look()
            await asyncio.sleep(pause)

    async def _hold_on(self, scope: Scope, name: str, holder: str) -> None:
        pause = self._renewed_after
        while True:
            await asyncio.sleep(pause)
            try:
                await self._claims.take(scope, name, holder, self._seconds)
                pause = self._renewed_after
            except StoreError:
                pause = _LOOK_AGAIN_AFTER  # restore a claim that the store has lost before others check again
