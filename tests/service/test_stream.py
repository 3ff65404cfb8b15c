"""Listening to a conversation: in order, without gaps and doubles, also when the service is restarted meanwhile."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.service.listening import Client, Event, events_of
from tests.service.running import RunningService
from tests.service.scripted import Scripts
from tests.service.stores import Servers
from tests.service.talking import is_problem
from threadkeep import Scope, UserMessage, open_memory
from threadkeep.http.streams import Streams

FULL = os.environ.get("CHAOS") == "full"
CLIENTS, MESSAGES = (200, 20) if FULL else (20, 6)
TALKS = CLIENTS // 5
HOW = [pytest.param(signal.SIGTERM, id="stopped"), *([pytest.param(signal.SIGKILL, id="killed")] if FULL else [])]
ME = Scope("default", "default", "c1")


@asynccontextmanager
async def listening(streams: Streams, after: int = 0) -> AsyncIterator[AsyncIterator[Event]]:
    frames = streams.frames(ME, after)

    async def lines() -> AsyncIterator[str]:
        async for frame in frames:
            for line in frame.decode().split("\n")[:-1]:
                yield line

    events = events_of(lines())
    try:
        yield events
    finally:
        await events.aclose()  # pyright: ignore[reportAttributeAccessIssue]
        await frames.aclose()  # pyright: ignore[reportAttributeAccessIssue]


async def next_of(events: AsyncIterator[Event]) -> Event:
    async with asyncio.timeout(20):
        return await anext(events)


async def test_what_was_missed_comes_first_and_what_is_said_then_follows(database: Path) -> None:
    async with open_memory(f"sqlite:///{database}") as memory:
        streams = Streams(memory)
        await memory.append(ME, [UserMessage(f"message {number}") for number in range(250)])
        async with listening(streams, 3) as events:
            ready = await next_of(events)
            missed = [await next_of(events) for _ in range(247)]
            await memory.append(ME, [UserMessage("and one more")])
            streams.grown(ME)
            new = await next_of(events)

    assert (ready.name, ready.id) == ("ready", "3")
    assert [int(event.id or 0) for event in (*missed, new)] == list(range(4, 252))
    assert new.data["content"] == "and one more"


async def test_what_another_process_appends_is_heard_too(database: Path) -> None:
    url = f"sqlite:///{database}"
    async with (
        open_memory(url) as memory,
        open_memory(url) as other,
        listening(Streams(memory, poll_seconds=0.02)) as events,
    ):
        await next_of(events)
        await other.append(ME, [UserMessage("from elsewhere")])

        assert (await next_of(events)).data["content"] == "from elsewhere"


async def test_an_id_from_elsewhere_makes_nobody_deaf(database: Path) -> None:
    """One that this conversation never had, of another or of before it was erased: its listener hears what is new."""
    async with open_memory(f"sqlite:///{database}") as memory:
        streams = Streams(memory)
        await memory.append(ME, [UserMessage("known")])
        ahead, now = await streams.position(ME, 999_999), await streams.position(ME, None)
        async with listening(streams, ahead) as first, listening(streams, now) as second:
            assert [(await next_of(events)).id for events in (first, second)] == ["1", "1"]
            await memory.append(ME, [UserMessage("new")])
            streams.grown(ME)

            assert [(await next_of(events)).data["content"] for events in (first, second)] == ["new", "new"]


async def test_who_listens_is_told_of_an_erasure_by_others_and_hears_what_is_said_after_it(database: Path) -> None:
    url = f"sqlite:///{database}"
    async with open_memory(url) as memory, open_memory(url) as other:
        streams = Streams(memory, poll_seconds=0.02)
        await memory.append(ME, [UserMessage(f"message {number}") for number in range(5)])
        async with listening(streams, 5) as events:
            await next_of(events)
            await memory.append(ME, [UserMessage("heard, so the reader has read")])
            await next_of(events)
            await other.erase(ME)
            told = await next_of(events)
            with pytest.raises(StopAsyncIteration):
                await next_of(events)
        await other.append(ME, [UserMessage("said again")])
        async with listening(streams, await streams.position(ME, int(told.id or -1))) as events:
            await next_of(events)

            assert (told.name, (await next_of(events)).data["content"]) == ("erased", "said again")


async def test_one_reader_serves_all_who_listen_and_ends_with_the_last(database: Path) -> None:
    async with open_memory(f"sqlite:///{database}") as memory:
        streams = Streams(memory)
        async with listening(streams) as first, listening(streams) as second:
            await next_of(first), await next_of(second)
            assert len([task for task in asyncio.all_tasks() if task.get_name() == "threadkeep-stream"]) == 1
            await memory.append(ME, [UserMessage("hello")])
            streams.grown(ME)
            assert [(await next_of(one)).data["content"] for one in (first, second)] == ["hello", "hello"]
        assert not streams.listened_to(ME)


async def test_a_listener_that_falls_behind_is_cut_off_and_finds_its_place_again(database: Path) -> None:
    async with open_memory(f"sqlite:///{database}") as memory:
        streams = Streams(memory)
        async with listening(streams) as events:
            await next_of(events)
            for number in range(1_200):
                streams.send(ME, "delta", {"text": str(number)})
            await memory.append(ME, [UserMessage("hello")])
            async with asyncio.timeout(20):
                assert not [event async for event in events if event.name == "delta"]
        async with listening(streams) as events:
            assert [(await next_of(events)).id for _ in range(2)] == ["0", "1"]


async def test_a_quiet_stream_says_that_it_is_still_there(database: Path) -> None:
    async with open_memory(f"sqlite:///{database}") as memory:
        frames = Streams(memory, quiet_seconds=0.01).frames(ME, 0)
        assert (await anext(frames)).startswith(b"retry: 1000\nid: 0\nevent: ready\n")
        assert await anext(frames) == b": still here\n\n"
        await frames.aclose()  # pyright: ignore[reportAttributeAccessIssue]


async def test_an_answer_comes_in_pieces_then_whole_with_its_place(
    talking: httpx.AsyncClient, scripts: Scripts
) -> None:
    talk = (await talking.post("/conversations")).json()["conversation_id"]
    app = talking._transport.app  # pyright: ignore  # httpx's transport for ASGI cannot stream
    frames = app.state.streams.frames(Scope("default", "default", talk), 1)
    await anext(frames)
    scripts.latest.may_go_on.clear()
    await talking.post(f"/conversations/{talk}/messages", json={"content": "hello"})
    async with asyncio.timeout(20):
        told = await anext(frames)  # before there is an answer, which a late listener gets as a whole
        scripts.latest.may_go_on.set()
        while b"id: 3\n" not in told:
            told += await anext(frames)
    app.state.streams.end(Scope("default", "default", talk))
    rest = [frame async for frame in frames]

    assert told.index(b"id: 2\nevent: message") < told.index(b'event: delta\ndata: {"message_id":"')
    assert told.count(b"event: delta") == 3
    assert told.index(b'"text":"question. "') < told.index(b'id: 3\nevent: message\ndata: {"seq":3')
    assert rest == [b"id: 0\nevent: erased\ndata: {}\n\n"]


@pytest.mark.parametrize(
    ("said", "told_code"),
    [("please time out", b'"code":"model_timeout","retryable":true'), ("stumble", b'"code":"internal_error","retr')],
)
async def test_a_failed_answer_is_told_to_those_who_listen(
    talking: httpx.AsyncClient, said: str, told_code: bytes
) -> None:
    talk = (await talking.post("/conversations")).json()["conversation_id"]
    app = talking._transport.app  # pyright: ignore
    frames = app.state.streams.frames(Scope("default", "default", talk), 1)
    await anext(frames)
    await talking.post(f"/conversations/{talk}/messages", json={"content": said})
    told = b""
    async with asyncio.timeout(20):
        while b"event: failed" not in told:
            told += await anext(frames)
    await frames.aclose()

    assert told_code in told
    assert b"stumble" not in told.split(b"event: failed")[1]


@pytest.mark.parametrize("last", ["-1", "x", "1.5", "99999999999999999999"])
async def test_a_place_that_cannot_be_one_is_refused(client: httpx.AsyncClient, last: str) -> None:
    talk = (await client.post("/conversations")).json()["conversation_id"]
    answer = await client.get(f"/conversations/{talk}/stream", headers={"Last-Event-ID": last})

    assert is_problem(answer, 422, "invalid_input", "Last-Event-ID")


def test_a_client_that_goes_away_mid_stream_costs_nobody_anything(service: RunningService) -> None:
    with service.client() as client:
        talk = client.post("/conversations").json()["conversation_id"]
        with client.stream("GET", f"/conversations/{talk}/stream") as answer:
            next(answer.iter_lines())
        for number in range(3):
            assert client.post(f"/conversations/{talk}/messages", json={"content": f"m{number}"}).status_code == 202
        assert len(client.get(f"/conversations/{talk}/history").json()["messages"]) == 3
    assert service.stop() == 0
    assert not [line for line in service.logged() if line["event"] == "failure"]


@pytest.mark.parametrize("how", HOW)
async def test_everybody_resumes_without_a_gap_or_a_double_when_the_service_is_restarted(
    tmp_path: Path, on_postgres: Servers, how: signal.Signals
) -> None:
    arguments = (on_postgres.sql.url, "--redis", on_postgres.redis.url)
    without_vectors = {"THREADKEEP_EMBEDDER": "none"}
    with RunningService(tmp_path, *arguments, **without_vectors) as first:
        port = first.url.rsplit(":", 1)[-1]
        async with httpx.AsyncClient(timeout=60, trust_env=False, limits=httpx.Limits(max_connections=None)) as http:
            talks = [(await http.post(f"{first.url}/conversations")).json()["conversation_id"] for _ in range(TALKS)]
            clients = [Client(lambda: first.url, talks[n % TALKS], f"message {MESSAGES - 1}") for n in range(CLIENTS)]
            tasks = [asyncio.create_task(client.listen(http)) for client in clients]
            async with asyncio.timeout(60):
                await asyncio.gather(*(client.ready.wait() for client in clients))
            await said(http, lambda: first.url, talks, 0, MESSAGES // 2)
            await asyncio.to_thread(first.stop, how)
            again = partial(RunningService, tmp_path, *arguments, "--port", port, **without_vectors)
            with await asyncio.to_thread(again) as second:
                assert second.url == first.url
                await said(http, lambda: second.url, talks, MESSAGES // 2, MESSAGES)
                async with asyncio.timeout(120):
                    await asyncio.gather(*tasks)

    assert {tuple(text for _, text in client.heard) for client in clients} == {
        tuple(f"message {number}" for number in range(MESSAGES))
    }
    assert all(client.heard == sorted(set(client.heard)) for client in clients)
    assert {client.connections for client in clients} == {2}


async def said(http: httpx.AsyncClient, url: Callable[[], str], talks: list[str], begin: int, end: int) -> None:
    for number in range(begin, end):
        for talk in talks:
            answer = await http.post(f"{url()}/conversations/{talk}/messages", json={"content": f"message {number}"})
            assert answer.status_code == 202, answer.text
