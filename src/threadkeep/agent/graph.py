"""The graph of an assistant:

START ─┬─► greet ─► END
       └─► receive ─┬─► finish ─► END
                    └─► intent ─┬─► clarify ─► END
                                ├─► retrieve ─► answer ─► ask_on ─► END
                                └─────────────► answer

Without a model: receive ─► retrieve ─► intent ─┬─► clarify
                                                └─► answer ─► ask_on
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langgraph.graph import END, START, StateGraph  # pyright: ignore[reportMissingTypeStubs]
from langgraph.runtime import Runtime

from threadkeep.agent.answering import Answering
from threadkeep.agent.parts import AssistantParts
from threadkeep.agent.receiving import Receiving
from threadkeep.agent.turn import AgentState, Turn
from threadkeep.agent.understanding import Understanding
from threadkeep.errors import ThreadkeepError

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
        graph.add_conditional_edges("receive", _after_receiving, ["intent", "finish"])
        graph.add_conditional_edges("intent", _after_intent, ["clarify", "retrieve", "answer"])
        graph.add_edge("retrieve", "answer")
    else:  # only documents can answer, and the passage that answers decides the intent
        graph.add_conditional_edges("receive", _after_receiving_offline, ["retrieve", "finish"])
        graph.add_edge("retrieve", "intent")
        graph.add_conditional_edges("intent", _after_intent_offline, ["clarify", "answer"])
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
    return "finish" if runtime.context.wants_to_stop else "intent"


async def _after_receiving_offline(state: AgentState, runtime: Runtime[Turn]) -> str:
    return "finish" if runtime.context.wants_to_stop else "retrieve"


async def _after_intent(state: AgentState, runtime: Runtime[Turn]) -> str:
    if state.get("clarify_questions"):
        return "clarify"
    return "retrieve" if state.get("need_retrieval_hint") else "answer"


async def _after_intent_offline(state: AgentState, runtime: Runtime[Turn]) -> str:
    return "clarify" if state.get("clarify_questions") else "answer"
