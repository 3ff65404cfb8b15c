"""Somebody who answers as a script says, and keeps turns as a responder must."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from threadkeep import Memory, ModelResponse, Scope, UserMessage
from threadkeep.errors import ModelTimeout, ModelUnavailable, StoreError
from threadkeep.ports.chat import Answer, Asked, ToolTrace


class Scripted:
    """Says how many messages it was shown, and what the first one was. Some words make it fail."""

    def __init__(self, memory: Memory, greeting: str | None = "Good day!") -> None:
        self._memory = memory
        self._greeting = greeting
        self.asked: list[Asked] = []
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    async def greet(self, scope: Scope, language: str | None = None) -> Answer | None:
        if self._greeting is None:
            return None
        receipt = await self._memory.append(scope, [ModelResponse(self._greeting)])
        return Answer(self._greeting, language or "en", "greeting", receipt.kept[0])

    async def respond(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        await self.may_go_on.wait()
        if "time out" in asked.text:
            raise ModelTimeout("60 s")
        if "be away" in asked.text:
            raise ModelUnavailable("nobody there")
        if "stumble" in asked.text:
            raise RuntimeError(asked.text)
        reply = await self._reply(asked)
        tools = (ToolTrace("rooms", True, 3),) if "room" in asked.text else ()
        return Answer(reply, asked.language or "en", message_id=await self._keep(asked, reply), tools=tools)

    async def _reply(self, asked: Asked) -> str:
        try:
            known = asked.history if asked.history is not None else (await self._memory.history(asked.scope)).messages
        except StoreError:
            known = ()
        earlier = [one for one in known if one.id != asked.message_id and one.role == "user"]
        return f"After {len(earlier)} questions, first {earlier[0].content!r}." if earlier else "Your first question."

    async def _keep(self, asked: Asked, reply: str) -> str | None:
        said = [UserMessage(asked.text)] if asked.message_id is None else []
        try:
            return (await self._memory.append(asked.scope, [*said, ModelResponse(reply)])).kept[-1]
        except StoreError:
            return None

    async def stream(self, asked: Asked) -> AsyncIterator[str | Answer]:
        answer = await self.respond(asked)
        for word in answer.text.split():
            yield f"{word} "
        yield answer

    async def end(self, scope: Scope) -> None:
        await self._memory.close_conversation(scope)


class Scripts:
    """Makes one for each memory that is opened, and remembers the latest."""

    def __init__(self, greeting: str | None = "Good day!") -> None:
        self._greeting = greeting
        self.latest: Scripted

    @property
    def opener(self) -> Callable[[Memory], AbstractAsyncContextManager[Scripted]]:
        @asynccontextmanager
        async def opened(memory: Memory) -> AsyncIterator[Scripted]:
            self.latest = Scripted(memory, self._greeting)
            yield self.latest

        return opened
