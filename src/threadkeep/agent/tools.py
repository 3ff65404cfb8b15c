"""What tools of an assistant are given, and how a call of one is run.

A tool is a plain function, `async` or not, with a docstring and annotated parameters. One with a parameter that is a
`ToolContext` is given the caller's own token, the conversation's language and the masked values that the user gave
earlier, from their encrypted slots. Arguments and results live in this process's memory for the turn, and nowhere else.

Plain functions run on threads of their own: one that never returns then costs a thread, and not one of the few that the
process has for everything else; nor does the process wait for it when it ends.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from threadkeep.errors import StoreError
from threadkeep.ports.chat import (
    CalledTools,
    ChatMessage,
    ChatModel,
    ChatReply,
    ChatRequest,
    ToolAnswer,
    ToolCall,
    ToolSpec,
    ToolTrace,
    Usage,
)
from threadkeep.ports.scratch import Slots
from threadkeep.scope import Scope

TOOL_SECONDS = 20.0
_LONGEST_RESULT = 20_000  # characters shown to the model
_MASKED = re.compile(r"\[REDACTED:([A-Z_]+)[^\]]*\]")
_JUST_A_MASK = re.compile(r"\s*\[REDACTED[^\]]*\]\s*")


@dataclass(frozen=True, slots=True)
class ToolContext:
    """`token` is the caller's own credential, to be handed on and not kept."""

    scope: Scope
    language: str
    token: str | None = field(default=None, repr=False)
    request_id: str | None = None
    slots: Slots | None = field(default=None, repr=False)

    async def slot(self, kind: str) -> str | None:
        """The latest value of this type (`PHONE`) that the user gave in this conversation; None once it has expired."""
        if self.slots is None:
            return None
        try:
            return await self.slots.get(self.scope, kind)
        except StoreError:
            return None


@dataclass(frozen=True, slots=True)
class Tool:
    spec: ToolSpec
    function: Callable[..., Any]
    arguments: type[BaseModel]
    context: str | None = None  # the parameter that takes the `ToolContext`


class ToolBench:
    """The tools of one assistant."""

    def __init__(self, tools: Sequence[Tool], seconds: float = TOOL_SECONDS) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}
        self._seconds = seconds

    @property
    def specs(self) -> list[ToolSpec]:
        return [tool.spec for tool in self._tools.values()]

    async def run(self, call: ToolCall, context: ToolContext) -> tuple[ToolAnswer, ToolTrace]:
        """Run a call. A tool that fails returns the error to the model, and the turn continues."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._seconds):
                content, ok = await self._result(call, context)
        except asyncio.CancelledError as error:
            if (turn := asyncio.current_task()) is not None and turn.cancelling():
                raise
            content, ok = _failed(error), False  # of something that the tool itself waited for
        except (Exception, SystemExit) as error:  # it raises what it likes, and what that says may quote the user
            content, ok = _failed(error), False
        took = round((time.monotonic() - began) * 1_000)
        return ToolAnswer(call.id, call.name, content[:_LONGEST_RESULT]), ToolTrace(call.name, ok, took)

    async def _result(self, call: ToolCall, context: ToolContext) -> tuple[str, bool]:
        """The text for the model, and whether it is no error: many tools return `{"error": …}` and raise nothing."""
        tool = self._tools.get(call.name)
        if tool is None:
            raise LookupError("no such tool")
        filled = await _filled(call.arguments, context)
        given = tool.arguments.model_validate(filled)
        values = {name: getattr(given, name) for name in type(given).model_fields}
        values |= {tool.context: context} if tool.context else {}
        call_it = partial(tool.function, **values)
        result = call_it() if inspect.iscoroutinefunction(tool.function) else await on_own_thread(call_it)
        if inspect.isawaitable(result):  # also of a function that a decorator has made plain
            result = await result
        text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
        told = text.encode("utf-8", "replace").decode()  # or no model could be sent it
        return told, not (isinstance(result, Mapping) and cast("Mapping[str, Any]", result).get("error"))


async def _filled(value: Any, context: ToolContext) -> Any:
    """Replace the masks that a model copied from the history (`[REDACTED:PHONE]`) by the values in their slots. An
    argument that is only a mask becomes None once its slot has expired: a tool must not call that as a number."""
    if isinstance(value, Mapping):
        given: Mapping[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
        return {name: await _filled(one, context) for name, one in given.items()}
    if isinstance(value, list | tuple):
        return [await _filled(one, context) for one in value]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, str):
        return value
    for kind in {*_MASKED.findall(value)}:
        if (kept := await context.slot(kind)) is not None:
            value = re.sub(rf"\[REDACTED:{kind}[^\]]*\]", lambda _, kept=kept: kept, value)
    return None if _JUST_A_MASK.fullmatch(value) else value


def _failed(error: BaseException) -> str:
    if isinstance(error, LeftItsThread):
        text = f"the tool failed ({error})"
    elif isinstance(error, TimeoutError):
        text = "the tool took too long"
    elif isinstance(error, ValidationError):
        names = sorted({str(one["loc"][0]) for one in error.errors(include_input=False) if one["loc"]})
        text = f"these arguments do not fit: {', '.join(names)}"
    else:
        text = f"the tool failed ({type(error).__name__})"
    return json.dumps({"error": text})


MOST_ROUNDS = 6  # of tool calls in one turn


@dataclass(slots=True, repr=False)
class Looped:
    text: str = ""
    traces: list[ToolTrace] = field(default_factory=list[ToolTrace])


async def answered(
    model: ChatModel,
    bench: ToolBench,
    request: ChatRequest,
    context: ToolContext,
    say: Callable[[str], None] | None = None,
    count: Callable[[Usage], None] | None = None,
) -> Looped:
    """`say` gets the text piece by piece, `count` what each round has cost: a later one may fail. After the last round
    the model is called once more, without tools.

    Raises `ModelTimeout` and `ModelUnavailable`; a tool that fails raises nothing.
    """
    messages: list[ChatMessage] = list(request.messages)
    looped = Looped()
    for left in range(MOST_ROUNDS, -1, -1):
        call_request = replace(request, messages=tuple(messages), tools=request.tools if left else ())
        reply = await _said(model, call_request, say)
        if count is not None:
            count(reply.usage)
        looped.text = reply.text
        if not reply.calls or not call_request.tools:
            break
        done = await asyncio.gather(*(bench.run(call, context) for call in reply.calls))
        looped.traces += [trace for _, trace in done]
        messages += [CalledTools(reply.text, reply.calls, reply.native), *(answer for answer, _ in done)]
    return looped


async def _said(model: ChatModel, request: ChatRequest, say: Callable[[str], None] | None) -> ChatReply:
    if say is None:
        return await model.reply(request)
    reply = ChatReply("")
    async for piece in model.stream(request):
        if isinstance(piece, ChatReply):
            reply = piece
        else:
            say(piece)
    return reply


_log = logging.getLogger("threadkeep.assistant")


async def fill_slots(slots: Slots, scope: Scope, text: str, redacted: Any, types: Collection[str], ttl: float) -> None:
    """Store the last value of each type in the message. An unavailable store is logged: the tool then has no value."""
    values = {kind: text[start:end] for start, end, kind in getattr(redacted, "spans", ()) if kind in types}
    for kind, value in values.items():
        try:
            await slots.put(scope, kind, value, ttl)
        except StoreError as error:
            _log.warning("a value for tools was not kept (%s)", type(error).__name__)


class LeftItsThread(Exception):
    """It raised what would end a process or a loop. Named by that."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(type(error).__name__)


async def on_own_thread(work: Callable[[], Any]) -> Any:
    """Raises what `work` raises, `LeftItsThread` for what must reach no loop. Cancelling does not stop the work."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    context = copy_context()

    def settle(value: Any, failure: Exception | None) -> None:
        if done.done():
            return
        if failure is None:
            done.set_result(value)
        else:
            done.set_exception(failure)

    def run() -> None:
        value, failure = None, None
        try:
            value = context.run(work)
        except Exception as error:
            failure = LeftItsThread(error) if isinstance(error, StopIteration) else error
        except BaseException as error:
            failure = LeftItsThread(error)
        with suppress(RuntimeError):  # the loop was closed while the call ran
            loop.call_soon_threadsafe(settle, value, failure)

    threading.Thread(target=run, name="threadkeep-tool", daemon=True).start()
    return await done
