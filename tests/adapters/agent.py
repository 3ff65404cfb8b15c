"""A prebuilt ReAct agent whose model follows a script: it calls as many tools as it is told, then answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.types import interrupt


class Scripted(BaseChatModel):
    """`use 3 look: x` calls the tool `look` three times, one after the other, then tells how many results it saw.

    `all 3 look: x` calls it three times at once.
    """

    made: list[str] = []  # noqa: RUF012
    """What stood in the arguments of calls, in order: numbers that nobody else has."""
    width: int = 1
    """How many of them one call has."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        asked = next(place for place in range(len(messages) - 1, -1, -1) if isinstance(messages[place], HumanMessage))
        results = [one for one in messages[asked:] if isinstance(one, ToolMessage)]
        wanted, at_once, name = _order(str(messages[asked].content))
        if len(results) < wanted:
            calls = [self._call(name) for _ in range(wanted if at_once else 1)]
            message = AIMessage(f"Looking up {len(results)}.", tool_calls=calls)
        else:
            message = AIMessage(f"Done after {len(results)} result(s).")
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _call(self, name: str) -> Any:
        fresh = [f"arg{uuid4().hex}" for _ in range(self.width)]
        self.made += fresh
        return {"name": name, "args": {"what": " ".join(fresh)}, "id": f"call{uuid4().hex}", "type": "tool_call"}


def _order(text: str) -> tuple[int, bool, str]:
    """How many calls, whether at once, of which tool."""
    if not text.startswith(("use ", "all ")):
        return 0, False, ""
    how, count, name, *_ = text.split(" ")
    return int(count), how == "all", name.rstrip(":")


def look(what: str) -> str:
    """Look something up."""
    return f"result-of-{what}"


def confirm(what: str) -> str:
    """Ask the person."""
    return f"{what} was {interrupt({'question': what})}"


def agent(
    saver: Any,
    tools: Sequence[Callable[..., Any]] = (look, confirm),
    made: list[str] | None = None,
    width: int = 1,
    **options: Any,
) -> Any:
    made = [] if made is None else made
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it has moved to another package, which we do without
        from langgraph.prebuilt import create_react_agent

        model = Scripted(width=width)
        model.made = made  # the very list: given to the constructor it would be copied
        return create_react_agent(model, list(tools), checkpointer=saver, **options)


def unpaired(messages: Sequence[BaseMessage]) -> list[str]:
    """Ids of calls without a result, and of results without a call."""
    called = {call["id"] for one in messages if isinstance(one, AIMessage) for call in one.tool_calls}
    answered = {one.tool_call_id for one in messages if isinstance(one, ToolMessage)}
    return sorted(called ^ answered)
