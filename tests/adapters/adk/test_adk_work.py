"""What an append and a read cost, counted: it must not grow with the session, nor with what others say beside it."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from google.adk.events.event import Event
from google.genai import types

from threadkeep import Memory, Scope, UserMessage, open_memory
from threadkeep.adapters.adk import ThreadkeepSessionService
from threadkeep.model import History
from threadkeep.settings import Settings

EVENTS = 400


@pytest.mark.parametrize("author", ["user", "guide"], ids=["one turn", "a turn each"])
async def test_an_append_takes_the_same_statements_at_the_end_of_a_long_session_and_one_connection_writes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, author: str
) -> None:
    ran: list[tuple[int, str]] = []
    connect = sqlite3.connect

    def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.set_trace_callback(lambda statement: ran.append((id(connection), statement.split(" SET ")[0][:40])))
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    url, settings = f"sqlite:///{tmp_path}/work.db", Settings(THREADKEEP_EMBEDDER="none")
    work: list[list[str]] = []
    writers: set[int] = set()
    async with ThreadkeepSessionService.from_url(url, settings=settings) as service:
        session = await service.create_session(app_name="bot", user_id="u", session_id="c")
        for number in range(EVENTS):
            content = types.Content(role="model", parts=[types.Part(text=f"Answer {number} about the room")])
            ran.clear()
            invocation = "i1" if author == "user" else f"i{number}"  # an agent's last word ends its turn
            await service.append_event(session, Event(author=author, invocation_id=invocation, content=content))
            # A connection is set up anew where a write in place follows one of the thread, whatever the length.
            work.append([statement for _, statement in ran if not statement.startswith("PRAGMA")])
            writers |= {connection for connection, statement in ran if statement.startswith(("INSERT", "UPDATE"))}
    assert work[50]
    assert work[50] == work[200] == work[EVENTS - 1]
    assert len(writers) == 1


async def test_what_others_said_since_does_not_make_a_session_longer_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages: list[int] = []
    history = Memory.history

    async def counted(memory: Memory, *given: Any) -> History:
        page = await history(memory, *given)
        pages.append(len(page.messages))
        return page

    monkeypatch.setattr(Memory, "history", counted)
    url, settings = f"sqlite:///{tmp_path}/work.db", Settings(THREADKEEP_EMBEDDER="none")
    reads: list[list[int]] = []
    async with ThreadkeepSessionService.from_url(url, settings=settings) as service:
        session = await service.create_session(app_name="bot", user_id="u", session_id="c")
        content = types.Content(role="user", parts=[types.Part(text="Is there a sauna?")])
        await service.append_event(session, Event(author="user", invocation_id="i1", content=content))
        async with open_memory(url, settings=settings) as memory:
            for _ in range(3):
                await memory.append(Scope("default", "u", "c"), [UserMessage(f"note {n}") for n in range(800)])
                pages.clear()
                found = await service.get_session(app_name="bot", user_id="u", session_id="c")
                assert found is not None
                assert [event.content for event in found.events] == [content]
                reads.append(pages.copy())
    assert reads[0] == reads[1] == reads[2]
