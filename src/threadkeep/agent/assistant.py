"""The assistant: a `Responder` that runs its graph once a turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from threadkeep.agent.graph import build_graph
from threadkeep.agent.parts import AssistantParts
from threadkeep.agent.post_turn import PostTurnWork
from threadkeep.agent.receiving import Receiving
from threadkeep.agent.turn import AgentState, Turn
from threadkeep.models.chat.untraced import untraced
from threadkeep.models.language import spoken_as
from threadkeep.ports.responder import Answer, Asked
from threadkeep.scope import Scope


class Assistant:
    """Many turns may run at once. Its history is in memory. The caller that opened memory and model closes them."""

    def __init__(self, parts: AssistantParts) -> None:
        self._parts = parts
        self._receiving = Receiving(parts)
        self._post_turn = PostTurnWork(parts)
        self._running: set[asyncio.Task[Answer]] = set()
        self._graph = build_graph(parts)

    @property
    def name(self) -> str:
        return self._parts.folder.config.name

    @property
    def documents_tenant(self) -> str:
        """The tenant that owns the documents it answers from, for every user."""
        return self._parts.folder.config.tenant

    @property
    def default_language(self) -> str:
        return self._parts.folder.config.default_language

    @property
    def languages(self) -> tuple[str, ...]:
        return self._parts.folder.config.languages

    def spoken(self, language: str) -> str | None:
        return spoken_as(language, self.languages)

    async def greet(self, scope: Scope, language: str | None = None) -> Answer | None:
        language = language or self._parts.folder.config.default_language
        if self._parts.greeting(language) is None:
            return None
        return await self._run(Turn(scope, "greet", language=language))

    async def respond(self, question: Asked) -> Answer:
        return await self._run(Turn(question.scope, "ask", question))

    async def stream(self, question: Asked) -> AsyncIterator[str | Answer]:
        """Yield the pieces of the reply, then the `Answer`. A client that disconnects does not stop the turn: it is
        answered and stored all the same."""
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        turn = Turn(question.scope, "ask", question, emit=pieces.put_nowait)
        running = asyncio.create_task(self._run(turn))
        self._running.add(running)
        running.add_done_callback(lambda task: self._ended(task, pieces))
        while (piece := await pieces.get()) is not None:
            yield piece
        yield await running

    async def end(self, scope: Scope) -> None:
        await self._receiving.end(Turn(scope))

    async def settled(self) -> None:
        """Once no turn is running any more, and all that follows them is done; for tests and for shutdown."""
        while self._running:
            await asyncio.wait(self._running)
        await self._post_turn.settled()

    def _ended(self, task: asyncio.Task[Answer], pieces: asyncio.Queue[str | None]) -> None:
        """Retrieve the task's exception: where the client has disconnected, no other code does."""
        self._running.discard(task)
        pieces.put_nowait(None)
        if not task.cancelled():
            task.exception()

    async def _run(self, turn: Turn) -> Answer:
        given = AgentState(conversation_id=turn.scope.require_conversation(), user_id=turn.scope.user)
        try:
            with untraced():
                state: Any = await self._graph.ainvoke(given, context=turn)
        finally:  # a turn that fails has cost something, too
            self._post_turn.begin(turn)
        return turn.answer(state.get("intent"))
