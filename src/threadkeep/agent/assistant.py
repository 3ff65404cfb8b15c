"""The assistant: a `Responder` that runs its graph once a turn:

START ─┬─► greet ─► END
       └─► receive ─┬─► finish ─► END
                    └─► intent ─┬─► clarify ─► END
                                ├─► retrieve ─► answer ─► ask_on ─► END
                                └─────────────► answer

Without a model: receive ─► retrieve ─► intent ─┬─► clarify
                                                └─► answer ─► ask_on
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from langgraph.graph import END, START, StateGraph  # pyright: ignore[reportMissingTypeStubs]
from langgraph.runtime import Runtime

from threadkeep.agent.answering import Answering
from threadkeep.agent.intents import Understanding
from threadkeep.agent.post_turn import PostTurnWork
from threadkeep.agent.receiving import Receiving
from threadkeep.agent.turn import AgentState, AssistantParts, Turn
from threadkeep.errors import ThreadkeepError
from threadkeep.models.chat.langchain import untraced
from threadkeep.models.language import spoken_as
from threadkeep.ports.chat import Answer, Asked
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
        return self._parts.config.name

    @property
    def documents_tenant(self) -> str:
        """The tenant that owns the documents it answers from, for every user."""
        return self._parts.config.tenant

    @property
    def default_language(self) -> str:
        return self._parts.config.default_language

    @property
    def languages(self) -> tuple[str, ...]:
        return self._parts.config.languages

    def spoken(self, language: str) -> str | None:
        return spoken_as(language, self.languages)

    async def greet(self, scope: Scope, language: str | None = None) -> Answer | None:
        language = language or self._parts.config.default_language
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


Node = Callable[[AgentState, Runtime[Turn]], Awaitable[AgentState]]


class NodeFailed(ThreadkeepError):
    """A node raised an unexpected error. The error's text is left out: it may quote the user."""

    code = "node_failed"


def build_graph(parts: AssistantParts) -> Any:
    receiving, understanding, answering = Receiving(parts), Understanding(parts), Answering(parts)
    nodes: dict[str, Node] = {
        "greet": receiving.greet,
        "receive": receiving.receive,
        "intent": understanding.intent,
        "clarify": understanding.clarify,
        "retrieve": answering.retrieve,
        "answer": answering.answer,
        "ask_on": answering.ask_on,
        "finish": receiving.finish,
    }
    graph: Any = StateGraph(AgentState, context_schema=Turn)
    for name, node in nodes.items():
        graph.add_node(name, _quoting_nothing(name, node))
    graph.add_conditional_edges(START, _first, ["greet", "receive"])
    if parts.model.generates:
        graph.add_conditional_edges("receive", _after_receiving, {"continue": "intent", "finish": "finish"})
        graph.add_conditional_edges("intent", _after_intent, ["clarify", "retrieve", "answer"])
        graph.add_edge("retrieve", "answer")
    else:  # only documents can answer, and the passage that answers decides the intent
        graph.add_conditional_edges("receive", _after_receiving, {"continue": "retrieve", "finish": "finish"})
        graph.add_edge("retrieve", "intent")
        paths = {"clarify": "clarify", "retrieve": "answer", "answer": "answer"}
        graph.add_conditional_edges("intent", _after_intent, paths)
    graph.add_edge("answer", "ask_on")
    for last in ("greet", "clarify", "ask_on", "finish"):
        graph.add_edge(last, END)
    return graph.compile()


def _quoting_nothing(name: str, node: Node) -> Callable[..., Awaitable[AgentState]]:
    async def run(state: AgentState, runtime: Runtime[Turn]) -> AgentState:
        try:
            return await node(state, runtime)
        except ThreadkeepError:
            raise
        except Exception as error:
            raise NodeFailed(f"{name} failed ({type(error).__name__})") from error

    return run


async def _first(state: AgentState, runtime: Runtime[Turn]) -> str:
    return "greet" if runtime.context.kind == "greet" else "receive"


async def _after_receiving(state: AgentState, runtime: Runtime[Turn]) -> str:
    return "finish" if runtime.context.wants_to_stop else "continue"


async def _after_intent(state: AgentState, runtime: Runtime[Turn]) -> str:
    if state.get("clarify_questions"):
        return "clarify"
    return "retrieve" if state.get("need_retrieval_hint") else "answer"
