"""The verbs as their users meet them: honest receipts, safe retries, one page at a time, gone when erased."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from threadkeep import Memory, ModelResponse, Scope, Settings, Thought, ToolResult, UserMessage, open_memory
from threadkeep.errors import (
    Conflict,
    InvalidEvent,
    InvalidInput,
    InvalidScope,
    InvalidSetting,
    MemoryClosed,
    NotFound,
    ScopeErased,
    TooLarge,
)
from threadkeep.testing.clock import FakeClock

ME = Scope("shop", "u1", "c1")
TURN = [UserMessage("I am allergic to peanuts"), Thought("hmm"), ModelResponse("Noted.")]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["file", "memory"])
async def memory(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Memory]:
    url = f"sqlite:///{tmp_path / 'test.db'}" if request.param == "file" else "sqlite://"
    async with open_memory(url, settings=Settings(session_max_messages=3), clock=clock) as memory:
        yield memory


async def _texts(memory: Memory, scope: Scope = ME) -> list[str]:
    return [message.content for message in (await memory.history(scope, limit=1_000)).messages]


async def test_a_receipt_tells_what_was_kept_and_what_was_not(memory: Memory) -> None:
    receipt = await memory.append(ME, [*TURN, ToolResult("search", "x"), UserMessage("ann@example.org"), Thought("x")])
    assert (receipt.status, receipt.seq, len(receipt.kept)) == ("stored", 3, 3)
    assert (receipt.refused, receipt.redacted) == ({"thought": 2, "tool_result": 1}, {"EMAIL": 1})
    assert [m.id for m in (await memory.history(ME)).messages] == list(receipt.kept)


async def test_the_same_key_twice_is_one_set_of_messages_and_one_receipt(memory: Memory, clock: FakeClock) -> None:
    first = await memory.append(ME, TURN, key="k1")
    clock.advance(3_600)
    again = await memory.append(ME, TURN, key="k1")
    assert again == first
    assert (first.replayed, again.replayed) == (False, True)
    assert await _texts(memory) == ["I am allergic to peanuts", "Noted."]


@pytest.mark.parametrize(
    "other",
    [
        [UserMessage("something else")],
        [],
        TURN[:1],
        [*TURN, Thought("one more")],
        [*TURN[:2], ModelResponse("Noted.", language="en")],
        [TURN[2], TURN[0], TURN[1]],
    ],
)
async def test_the_same_key_with_another_payload_is_a_conflict(memory: Memory, other: list[Any]) -> None:
    await memory.append(ME, TURN, key="k1")
    with pytest.raises(Conflict):
        await memory.append(ME, other, key="k1")
    assert await _texts(memory) == ["I am allergic to peanuts", "Noted."]


async def test_a_message_that_a_key_made_an_id_for_may_be_retried_by_that_id(memory: Memory) -> None:
    receipt = await memory.append(ME, [UserMessage("hello")], key="k1")
    await memory.append(ME, [UserMessage("hello", id=receipt.kept[0])])
    assert await _texts(memory) == ["hello"]


async def test_a_malformed_event_leaves_nothing_behind(memory: Memory) -> None:
    with pytest.raises(InvalidEvent):
        await memory.append(ME, [UserMessage("fine"), UserMessage(7)], key="k1")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TooLarge):
        await memory.append(ME, [UserMessage("fine"), UserMessage("x" * 10_000_000)])
    assert (await memory.stats()).conversations == 0


@pytest.mark.parametrize("key", ["", "x" * 256, 7, b"k", True], ids=lambda key: repr(key)[:12])
async def test_a_key_that_no_store_could_keep_is_refused(memory: Memory, key: Any) -> None:
    with pytest.raises(InvalidInput, match="key"):
        await memory.append(ME, TURN, key=key)


@pytest.mark.parametrize("key", ["\ud800", "a\0b", "😀", " "], ids=repr)
async def test_any_other_string_is_a_key(memory: Memory, key: str) -> None:
    assert await memory.append(ME, TURN, key=key) == await memory.append(ME, TURN, key=key)


async def test_without_a_limit_history_is_the_window_and_pages_back(memory: Memory) -> None:
    await memory.append(ME, [UserMessage(f"text {n}") for n in range(8)])
    page = await memory.history(ME)
    seen = [m.seq for m in page.messages]
    while page.before:
        page = await memory.history(ME, before=page.before)
        seen = [m.seq for m in page.messages] + seen
    assert seen == list(range(1, 9))
    assert len((await memory.history(ME, limit=2**70)).messages) == 8


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "3", float("nan")], ids=repr)
async def test_a_limit_or_a_cursor_that_is_no_positive_number_is_refused(memory: Memory, value: Any) -> None:
    for call in (
        memory.history(ME, limit=value),
        memory.history(ME, before=value),
        memory.conversations(ME, None, value),
    ):
        with pytest.raises(InvalidInput):
            await call


async def test_verbs_of_one_conversation_ask_for_it(memory: Memory) -> None:
    user = ME.whole_user
    calls = [
        memory.append(user, TURN),
        memory.history(user),
        memory.session(user),
        memory.touch(user),
        memory.set_language(user, "vi"),
        memory.rename(user, "x"),
        memory.close_conversation(user),
        memory.set_intent(user, "x"),
        memory.erase(user, "m1"),
    ]
    for call in calls:
        with pytest.raises(InvalidScope, match="conversation"):
            await call
    assert (await memory.stats()).users == 0


async def test_a_title_and_an_intent_are_redacted(memory: Memory) -> None:
    await memory.append(ME, TURN)
    await memory.rename(ME, "about ann@example.org")
    await memory.set_intent(ME, "write to ann@example.org")
    (record,) = [record async for record in memory.export(ME)]
    assert (record.title, record.intent) == ("about [REDACTED:EMAIL]", "write to [REDACTED:EMAIL]")


@pytest.mark.parametrize("title", [None, 7, b"x", "x" * 1_025], ids=lambda title: repr(title)[:12])
async def test_a_title_is_a_short_string(memory: Memory, title: Any) -> None:
    await memory.append(ME, TURN)
    with pytest.raises(InvalidInput, match="title"):
        await memory.rename(ME, title)


async def test_an_unknown_conversation_cannot_be_renamed_or_closed(memory: Memory) -> None:
    with pytest.raises(NotFound):
        await memory.rename(ME, "x")
    with pytest.raises(NotFound):
        await memory.close_conversation(ME)


@pytest.mark.parametrize("message_id", ["", 7, b"m", "\ud800", "a\nb", "x" * 256], ids=lambda one: repr(one)[:12])
async def test_a_message_id_that_cannot_be_is_refused(memory: Memory, message_id: Any) -> None:
    with pytest.raises(InvalidInput):
        await memory.erase(ME, message_id)


async def test_erasing_a_user_takes_the_session_the_scratch_and_the_archive(memory: Memory) -> None:
    await memory.append(ME, TURN)
    await memory.scratch.put(ME, "tool.temp.x", "y", 60)
    proof = await memory.erase(ME.whole_user)
    assert {name: proof.stores[name].removed for name in ("archive", "sessions", "scratch")} == {
        "archive": 2,
        "sessions": 1,
        "scratch": 1,
    }
    assert proof.complete
    assert await memory.session(ME) is None
    assert await memory.scratch.get(ME, "tool.temp.x") is None
    assert (await memory.recall(ME, "peanuts")).hits == ()


async def test_work_that_read_before_an_erasure_cannot_write_after_it(memory: Memory) -> None:
    await memory.append(ME, TURN)
    stamped = (await memory.history(ME)).scope
    await memory.erase(ME.whole_user)
    for call in (
        memory.append(stamped, TURN),
        memory.touch(stamped),
        memory.set_language(stamped, "vi"),
        memory.rename(stamped, "x"),
        memory.set_intent(stamped, "x"),
        memory.close_conversation(stamped),
    ):
        with pytest.raises(ScopeErased):
            await call
    assert (await memory.stats()).users == 0


async def test_a_session_scope_is_stamped_too(memory: Memory) -> None:
    session = await memory.touch(ME)
    await memory.erase(ME)
    with pytest.raises(ScopeErased):
        await memory.append(session.scope, TURN)


async def test_times_far_from_now_come_back(memory: Memory) -> None:
    times = [datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)]
    await memory.append(ME, [UserMessage(f"peanuts {ts.year}", ts=ts) for ts in times])
    assert [m.ts for m in (await memory.history(ME)).messages] == times
    assert len((await memory.recall(ME, "peanuts")).hits) == 2


async def test_a_cancelled_append_is_whole_or_absent_and_memory_goes_on(memory: Memory) -> None:
    tasks = [asyncio.create_task(memory.append(ME, [UserMessage(f"{n} a"), UserMessage(f"{n} b")])) for n in range(40)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    texts = await _texts(memory)
    assert all(f"{n} {half}" in texts for n in range(1, 40, 2) for half in "ab")
    assert texts[::2] == [text.replace("b", "a") for text in texts[1::2]]


async def test_what_is_closed_says_so(tmp_path: Path) -> None:
    async with open_memory(f"sqlite:///{tmp_path / 'test.db'}", settings=Settings()) as memory:
        await memory.append(ME, TURN)
        await memory.close()
        await memory.close()
        with pytest.raises(MemoryClosed):
            await memory.append(ME, TURN)
        with pytest.raises(MemoryClosed):
            await memory.history(ME)


async def test_what_was_accepted_before_close_is_there_when_opened_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'test.db'}"
    async with open_memory(url, settings=Settings()) as memory:
        work = [asyncio.create_task(memory.append(ME, [UserMessage(f"text {n}")])) for n in range(100)]
        await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
    outcomes = await asyncio.gather(*work, return_exceptions=True)
    stored = [outcome for outcome in outcomes if not isinstance(outcome, MemoryClosed)]
    async with open_memory(url, settings=Settings()) as memory:
        assert len(await _texts(memory)) == len(stored) > 0


async def test_two_memories_on_one_file_see_each_others_writes(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'test.db'}"
    async with open_memory(url, settings=Settings()) as one, open_memory(url, settings=Settings()) as other:
        await asyncio.gather(*(m.append(ME, [UserMessage("x")]) for m in (one, other) for _ in range(20)))
        seqs = [m.seq for m in (await other.history(ME, limit=100)).messages]
    assert seqs == list(range(1, 41))


async def test_two_memories_in_memory_do_not_meet() -> None:
    async with (
        open_memory("sqlite://", settings=Settings()) as one,
        open_memory("sqlite://", settings=Settings()) as other,
    ):
        await one.append(ME, TURN)
        assert await _texts(other) == []


@pytest.mark.parametrize("url", ["threadkeep.db", "file:///x.db", "http://localhost/x", " sqlite:///x.db"])
async def test_a_url_that_names_no_database_is_refused(url: str) -> None:
    with pytest.raises(InvalidSetting, match="DATABASE_URL"):
        async with open_memory(url, settings=Settings()):
            pass


async def test_each_form_of_erasure_says_that_the_outward_log_keeps_what_it_was_given(tmp_path: Path) -> None:
    me = Scope("shop", "u42", "c1")
    async with open_memory("sqlite://", settings=Settings(outward_log=str(tmp_path / "log"))) as memory:
        kept = (await memory.append(me, [UserMessage("the quokka sleeps"), UserMessage("and wakes")])).kept
        proofs = [await memory.forget(me, "and wakes"), await memory.erase(me, kept[0]), await memory.erase(me)]
    async with open_memory("sqlite://", settings=Settings()) as memory:
        without = await memory.erase(me)
    assert all(any("outward log" in note for note in proof.notes) for proof in proofs)
    assert not any("outward log" in note for note in without.notes)


async def test_the_outward_log_repeats_nothing_that_was_refused_or_erased(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "outward.jsonl"
    async with open_memory("sqlite://", settings=Settings(outward_log=str(log))) as memory:
        await memory.append(ME, [UserMessage("kept", id="m1"), Thought("canary")], key="k1")
        await memory.append(ME, [UserMessage("kept", id="m1"), Thought("canary")], key="k1")
        await memory.erase(ME, "m2")
        await memory.append(ME, [UserMessage("erased canary", id="m2")])
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["UserMessage", "append", "append"]
    assert lines[0]["text"] == "kept"
    assert "canary" not in log.read_text()
