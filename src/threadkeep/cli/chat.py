"""`threadkeep chat`: a conversation with an assistant in the terminal, remembered like any other."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from json import dumps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from threadkeep.agent.tools import on_own_thread
from threadkeep.cli.options import Json, Redis, Url
from threadkeep.cli.output import harmless, notes, screen
from threadkeep.compose.memory import open_memory
from threadkeep.errors import ThreadkeepError
from threadkeep.ports.chat import Answer, Asked
from threadkeep.scope import DEFAULT_TENANT, DEFAULT_USER, Scope
from threadkeep.settings import load_settings

if TYPE_CHECKING:
    from threadkeep.agent.assistant import Assistant

_INTERRUPTED = 130  # as shells report it
_HELP = "/end ends the conversation, /quit leaves it open, Ctrl-D does too."


def chat(
    assistant: Annotated[
        str | None, typer.Option(help="The assistant's folder. Otherwise THREADKEEP_ASSISTANT.")
    ] = None,
    conversation: Annotated[str, typer.Option(help="The conversation to continue, or to begin.")] = "terminal",
    user: Annotated[str, typer.Option(help="Whose memory.")] = DEFAULT_USER,
    tenant: Annotated[str, typer.Option(help="Whose user.")] = DEFAULT_TENANT,
    url: Url = None,
    redis: Redis = None,
    json: Json = False,
) -> None:
    """Chat with an assistant; what you said before is remembered. With --json: a message per input row, JSON out."""
    scope = Scope(tenant, user, conversation)
    try:
        asyncio.run(_converse(scope, assistant, url, redis, as_json=json))
    except KeyboardInterrupt:
        notes.print()
        sys.stdout.flush()
        os._exit(_INTERRUPTED)  # all is closed but the thread that reads stdin, and Python would wait for that


async def _converse(scope: Scope, folder: str | None, url: str | None, redis: str | None, *, as_json: bool) -> None:
    from threadkeep.compose.assistant import open_assistant

    settings = load_settings()
    async with (
        open_memory(url, redis=redis, settings=settings) as memory,
        open_assistant(memory, settings, folder, url=url) as assistant,
    ):
        known = await memory.history(scope, limit=1)
        if not as_json:
            told = f"{assistant.name} · {scope.user} · {scope.conversation} · {_HELP}"
            notes.print(harmless(told), style="dim", markup=False)
        if not known.messages and (greeting := await assistant.greet(scope)):
            _show(greeting, as_json=as_json)
        async for line in _lines(ask=not as_json):
            if line == "/quit":
                break
            if line == "/end":
                await assistant.end(scope)
                break
            await _answered(assistant, Asked(scope, line), as_json=as_json)


async def _answered(assistant: Assistant, asked: Asked, *, as_json: bool) -> None:
    """Piece by piece for people. What cannot be answered, or not be kept, does not end the conversation."""
    try:
        if as_json:
            _show(await assistant.respond(asked), as_json=True)
            return
        async for piece in assistant.stream(asked):
            if isinstance(piece, Answer):
                _print_summary(piece)
            else:
                screen().print(harmless(piece), end="", soft_wrap=True)
    except ThreadkeepError as error:
        if as_json:
            _line({"error": error.code, "message": str(error)})
        else:
            notes.print(f"\n{harmless(str(error))}", style="red", markup=False)


def _show(answer: Answer, *, as_json: bool) -> None:
    if not as_json:
        screen().print(harmless(answer.text), soft_wrap=True)
        screen().print()
        return
    told = {
        "reply": answer.text,
        "language": answer.language,
        "kind": answer.kind,
        "message_id": answer.message_id,
        "tools": [{"name": trace.name, "ok": trace.ok} for trace in answer.tools],
        "usage": {"input_tokens": answer.usage.input_tokens, "output_tokens": answer.usage.output_tokens},
    }
    _line(told)


def _line(value: dict[str, Any]) -> None:
    sys.stdout.write(dumps(value) + "\n")
    sys.stdout.flush()


def _print_summary(answer: Answer) -> None:
    screen().print("\n")
    notable = [f"{trace.name} {'✓' if trace.ok else '✗'} {trace.milliseconds} ms" for trace in answer.tools]
    if answer.usage.input_tokens or answer.usage.output_tokens:
        notable.append(f"{answer.usage.input_tokens} + {answer.usage.output_tokens} tokens")
    if notable:
        notes.print(harmless(" · ".join(notable)), style="dim", markup=False)


async def _lines(*, ask: bool) -> AsyncIterator[str]:
    """What is typed, until there is no more. Read on a thread: background work continues concurrently."""
    while True:
        if ask and sys.stdin.isatty():
            notes.print("[bold]> [/bold]", end="")
        line = await on_own_thread(sys.stdin.readline)
        if not line:
            return
        if line.strip():
            yield line.strip()
