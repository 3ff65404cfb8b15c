"""Asking a model, running the tools it calls, and asking again with their answers, until it has said what it has to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from threadkeep.agent.tools import ToolBench, ToolContext
from threadkeep.ports.chat import CalledTools, ChatMessage, ChatModel, ChatReply, ChatRequest
from threadkeep.ports.responder import ToolTrace, Usage

MOST_ROUNDS = 6  # of tool calls in one turn


@dataclass(slots=True, repr=False)
class Looped:
    text: str = ""
    traces: list[ToolTrace] = field(default_factory=list[ToolTrace])


def _uncounted(usage: Usage) -> None:
    """By whoever keeps no ledger."""


async def answered(
    model: ChatModel,
    bench: ToolBench,
    request: ChatRequest,
    context: ToolContext,
    say: Callable[[str], None] | None = None,
    count: Callable[[Usage], None] = _uncounted,
) -> Looped:
    """`say` gets the text piece by piece, `count` what each round has cost: a later one may fail. After the last round
    the model is asked once more, without tools.

    Raises `ModelTimeout` and `ModelUnavailable`; a tool that fails raises nothing.
    """
    messages: list[ChatMessage] = list(request.messages)
    looped = Looped()
    for left in range(MOST_ROUNDS, -1, -1):
        asked = replace(request, messages=tuple(messages), tools=request.tools if left else ())
        reply = await _said(model, asked, say)
        count(reply.usage)
        looped.text = reply.text
        if not reply.calls or not asked.tools:
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
