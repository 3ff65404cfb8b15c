"""Retention: threads that nobody used expire and go, turns go after their days; nothing that is in use does."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from tests.adapters.database import count, every_value, rows
from tests.adapters.verbs import thread, verbs_of
from threadkeep import ModelResponse, Origin, Reflection, Scope, UserMessage, open_memory
from threadkeep.adapters.langgraph import ThreadkeepSaver
from threadkeep.cli.app import run
from threadkeep.cli.upkeep import sweep_turns
from threadkeep.compose.upkeep import open_retention, retain_daily
from threadkeep.errors import InvalidSetting, MissingExtra
from threadkeep.ports.threads import Retained
from threadkeep.settings import Settings, load_settings
from threadkeep.worker.retention import seconds_until

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


@dataclass
class At:
    """A clock that is set by hand."""

    now: datetime = NOW

    def __call__(self) -> datetime:
        return self.now


@asynccontextmanager
async def saver_at(url: str, user: str) -> AsyncIterator[ThreadkeepSaver]:
    async with ThreadkeepSaver.from_url(url, user=user, settings=Settings()) as saver:
        yield saver


async def age(url: str, user: str, name: str, column: str, days: float) -> None:
    """Set a thread's time back."""
    when = (datetime.now(UTC) - timedelta(days=days)).timestamp()
    if url.startswith("sqlite"):
        value = str(int(when * 1_000_000))
    else:
        value = f"to_timestamp({when})" if url.startswith("postgres") else f"FROM_UNIXTIME({when})"
    where = f"user_id = '{user}' AND thread_id = '{name}'"
    await rows(url, f"UPDATE conversation_metadata SET {column} = {value} WHERE {where}")


async def test_an_idle_thread_expires_and_is_deleted_a_week_later(url: str, user: str) -> None:
    settings = Settings()
    async with saver_at(url, user) as saver:
        verbs = verbs_of(saver, "async")
        for name in ("used", "idle", "expired", "woken"):
            config = await verbs.put(thread(name), {"messages": [HumanMessage("hello " + "x" * 300)], "name": name})
            await verbs.call("put_writes", config, [("messages", "y")], "task")
        await age(url, user, "idle", "last_activity_at", 31)
        for name in ("expired", "woken"):
            await age(url, user, name, "expired_at", 8)
        async with open_retention(url, settings=settings) as retention:
            planned = await retention.run(dry_run=True)
            assert planned.expired >= 1
            assert planned.deleted >= 2
            assert await count(url, "conversation_checkpoints", user) == 4
    async with saver_at(url, user) as saver:  # of a process that has not seen the thread lately
        await verbs_of(saver, "async").put(thread("woken"), {"name": "woken again"})
        async with open_retention(url, settings=settings) as retention:
            done = await retention.run()
            assert done.expired >= 1
            assert done.deleted >= 1
            assert await retention.run(dry_run=True) == Retained(turns=(await retention.run(dry_run=True)).turns)
        for table, left in (("conversation_checkpoints", 4), ("tk_checkpoint_writes", 3), ("conversation_metadata", 3)):
            assert await count(url, table, user) == left
        assert await saver.aget_tuple(thread("expired")) is None
        told = await saver.aget_conversation_metadata("idle")
        assert told is not None
        assert told.expired_at is not None
        assert (await verbs_of(saver, "async").values(thread("idle")))["name"] == "idle"


async def test_a_run_that_goes_on_after_its_thread_was_let_go_tells_its_questions_again(url: str, user: str) -> None:
    asked = [HumanMessage(f"question {number} " * 10, id=str(number)) for number in range(2)]
    async with saver_at(url, user) as saver, open_retention(url, settings=Settings()) as retention:
        config = await verbs_of(saver, "async").put(thread("t"), {"messages": asked})
        await age(url, user, "t", "expired_at", 8)
        assert (await retention.run()).deleted >= 1
        await verbs_of(saver, "async").put(config, {"messages": [*asked, AIMessage("an answer " * 20)]})
        told = await saver.aget_conversation_metadata("t")
    assert told is not None
    assert (told.query_count, told.first_query) == (2, asked[0].content)


async def test_old_turns_go_and_the_conversations_own_row_stays(url: str, user: str) -> None:
    me = Scope("t", user, "c")
    clock = At(datetime.now(UTC) - timedelta(days=100))
    settings = Settings(THREADKEEP_EMBEDDER="none")  # type: ignore[call-arg]
    async with open_memory(url, settings=settings, clock=clock) as memory:
        await memory.append(me, [UserMessage("the zebracanary of long ago"), ModelResponse("Indeed.")])
        await memory.set_intent(me, "zoology")
        clock.now = datetime.now(UTC) - timedelta(days=80)
        await memory.append(me, [UserMessage("the giraffe of late")])
        async with open_retention(url, settings=settings) as retention:
            assert (await retention.run(dry_run=True)).turns >= 2
            assert (await memory.stats(me)).messages == 3
            assert (await retention.run()).turns >= 2
            assert (await retention.run()).turns == 0
        kept = await memory.history(me, limit=10)
        assert [one.content for one in kept.messages] == ["the giraffe of late"]
        assert [hit.content for hit in (await memory.recall(me, "zebracanary")).hits] == []
        assert [hit.content for hit in (await memory.recall(me, "giraffe")).hits] == ["the giraffe of late"]
        assert (await memory.stats(me)).messages == 1
        assert [one.conversation for one in await memory.conversations(Scope("t", user))] == ["c"]
        intents = await rows(url, "SELECT intent FROM tk_conversations WHERE conversation = 'c'")
        assert ("zoology",) in [tuple(row) for row in intents]
        await memory.append(me, [UserMessage("and on")])
        assert [one.seq for one in (await memory.history(me, limit=10)).messages] == [3, 4]
    assert not [one for one in await every_value(url) if b"zebracanary" in one]


async def test_turns_that_were_imported_go_by_their_own_age(url: str, user: str) -> None:
    """Their talk is only as old as the import."""
    me, now = Scope("t", user, "imported"), datetime.now(UTC)
    settings = Settings(THREADKEEP_EMBEDDER="none")  # type: ignore[call-arg]
    async with open_memory(url, settings=settings) as memory:
        took = Origin("import", "cli")
        said = [
            UserMessage("long ago", ts=now - timedelta(days=400), origin=took),
            UserMessage("lately", ts=now, origin=took),
        ]
        await memory.append(me, said)
        async with open_retention(url, settings=settings) as retention:
            assert (await retention.run(dry_run=True)).turns >= 1
            assert (await retention.run()).turns >= 1
        assert [message.content for message in (await memory.history(me)).messages] == ["lately"]


async def test_turns_go_by_when_they_arrived_not_by_the_time_a_caller_gives(url: str, user: str) -> None:
    me, now = Scope("t", user, "clocks"), datetime.now(UTC)
    clock = At(now - timedelta(days=100))
    settings = Settings(THREADKEEP_EMBEDDER="none")  # type: ignore[call-arg]
    async with open_memory(url, settings=settings, clock=clock) as memory:
        await memory.append(me, [UserMessage("arrived long ago", ts=now + timedelta(days=3650))])
        clock.now = now
        await memory.append(me, [UserMessage("arrived today", ts=now - timedelta(days=3650))])
        async with open_retention(url, settings=settings) as retention:
            await retention.run()
        assert [one.content for one in (await memory.history(me)).messages] == ["arrived today"]


async def test_rows_from_before_arrival_was_recorded_go_by_their_own_time(url: str, user: str) -> None:
    me = Scope("t", user, "older")
    clock = At(datetime.now(UTC) - timedelta(days=100))
    settings = Settings(THREADKEEP_EMBEDDER="none")  # type: ignore[call-arg]
    async with open_memory(url, settings=settings, clock=clock) as memory:
        await memory.append(me, [UserMessage("of an earlier version")])
        cids = "SELECT cid FROM tk_conversations WHERE conversation = 'older'"
        await rows(url, f"UPDATE tk_messages SET stored_at = NULL, origin = NULL WHERE cid IN ({cids})")
        (told,) = (await memory.history(me)).messages
        assert (told.stored_at, told.origin) == (None, None)
        async with open_retention(url, settings=settings) as retention:
            await retention.run()
        assert (await memory.history(me)).messages == ()


async def test_only_summary_and_intent_outlive_the_turns_for_as_long_as_is_set(url: str, user: str) -> None:
    me, later = Scope("t", user, "long-ago"), Scope("t", user, "later")
    clock = At(datetime.now(UTC) - timedelta(days=200))
    settings = Settings(THREADKEEP_EMBEDDER="none")  # type: ignore[call-arg]
    async with open_memory(url, settings=settings, clock=clock) as memory:
        said = [UserMessage(f"the questioncanary {user}"), ModelResponse(f"the answercanary {user}")]
        receipt = await memory.append(me, said)
        await memory.set_intent(me, f"intentcanary {user}")
        await memory.reflect(me, Reflection(f"summarycanary {user}"), [receipt.kept[0]])
        clock.now = datetime.now(UTC) - timedelta(days=120)
        await memory.append(later, [UserMessage("another talk")])
        await memory.set_intent(later, f"lateintent {user}")
        async with open_retention(url, settings=settings) as retention:
            assert (await retention.run()).memories == 0
        assert await kept_of(url, user) == {"intentcanary", "summarycanary", "lateintent"}
        assert [one.reflection.summary for one in await memory.reflections(me)] == [f"summarycanary {user}"]
        settings = Settings(THREADKEEP_MEMORY_RETENTION_DAYS=150)  # type: ignore[call-arg]
        async with open_retention(url, settings=settings) as retention:
            assert (await retention.run(dry_run=True)).memories >= 2
            assert (await retention.run()).memories >= 2
            assert (await retention.run()).memories == 0
        assert await kept_of(url, user) == {"lateintent"}
        await memory.append(me, [UserMessage("and on")])
        assert [one.seq for one in (await memory.history(me, limit=10)).messages] == [3]


async def kept_of(url: str, user: str) -> set[str]:
    """Which of the words that stand before the user's name are still in the database."""
    words = ("questioncanary", "answercanary", "intentcanary", "summarycanary", "lateintent")
    values = await every_value(url)
    return {word for word in words if any(f"{word} {user}".encode() in value for value in values)}


async def test_the_days_are_settings(url: str, user: str) -> None:
    days = {"THREAD_IDLE_DAYS": 2, "THREAD_GRACE_DAYS": 1, "TURN_RETENTION_DAYS": 36_000}
    settings = Settings(**{f"THREADKEEP_{name}": value for name, value in days.items()})  # type: ignore[arg-type]
    async with saver_at(url, user) as saver:
        verbs = verbs_of(saver, "async")
        for name in ("one", "three", "gone"):
            await verbs.put(thread(name), {"n": 1})
        await age(url, user, "one", "last_activity_at", 1)
        await age(url, user, "three", "last_activity_at", 3)
        await age(url, user, "gone", "expired_at", 2)
        async with open_retention(url, settings=settings) as retention:
            await retention.run()
        marks = await rows(url, f"SELECT thread_id, expired_at FROM conversation_metadata WHERE user_id = '{user}'")
    assert {str(name): mark is not None for name, mark in marks} == {"one": False, "three": True}


def test_it_runs_at_the_next_midnight_or_whenever_it_is_told() -> None:
    assert seconds_until("00:00", NOW) == 12 * 3_600
    assert seconds_until("12:30", NOW) == 1_800
    assert seconds_until("12:00", NOW) == 24 * 3_600
    assert seconds_until("11:59", NOW) == 24 * 3_600 - 60


async def test_the_worker_runs_it_daily(tmp_path: object, user: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "threadkeep.retention")
    url = f"sqlite:///{tmp_path}/daily.db"
    async with saver_at(url, user) as saver:
        await verbs_of(saver, "async").put(thread("t"), {"n": 1})
        await age(url, user, "t", "last_activity_at", 31)
        clock = At(datetime.now().astimezone().replace(hour=23, minute=59, second=59, microsecond=999_000))
        running = asyncio.create_task(retain_daily(url, Settings(), clock))
        async with asyncio.timeout(20):
            while (told := await saver.aget_conversation_metadata("t")) is None or told.expired_at is None:
                await asyncio.sleep(0.01)
            while "retention: 1 expired, 0 deleted, 0 turns" not in caplog.messages:
                await asyncio.sleep(0.01)
        running.cancel()


async def test_a_service_answers_while_langgraph_is_imported_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()

    def slowly(_: str) -> None:
        assert answered.wait(10)
        raise MissingExtra("langgraph", "a graph")

    monkeypatch.setattr("threadkeep.cli.upkeep.import_module", slowly)
    asyncio.get_running_loop().call_soon(answered.set)
    assert await sweep_turns("sqlite://", Settings()) == 0


def test_the_command_says_what_would_go_and_what_went(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/cli.db"
    assert run(["retention", "run", "--url", url]) == 1
    assert "there is no store here" in capsys.readouterr().err
    with ThreadkeepSaver.from_url_sync(url, user="u", settings=Settings()) as saver:
        asyncio.run(verbs_of(saver, "async").put(thread("t"), {"n": 1}))
    asyncio.run(age(url, "u", "t", "last_activity_at", 31))
    for options, expired in ((["--dry-run"], 1), ([], 1), ([], 0)):
        assert run(["retention", "run", "--url", url, "--json", *options]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told == {
            "expired": expired,
            "deleted": 0,
            "turns": 0,
            "memories": 0,
            "rows": 0,
            "abandoned": 0,
            "dry_run": bool(options),
        }
    assert run(["retention", "run", "--url", url]) == 0
    assert "threads deleted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "value"), [("THREAD_IDLE_DAYS", "0"), ("MEMORY_RETENTION_DAYS", "0"), ("RETENTION_TIME", "25:00")]
)
def test_settings_that_make_no_sense_are_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"THREADKEEP_{name}", value)
    with pytest.raises(InvalidSetting, match=name):
        load_settings()


def test_a_dry_run_counts_the_turns_that_would_be_ended(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/turns.db"
    with ThreadkeepSaver.from_url_sync(url, user="u", tool_traffic="turn", settings=Settings()) as saver:
        for name in ("one", "two"):
            asyncio.run(verbs_of(saver, "async").put(thread(name), {"n": 1}))
    asyncio.run(rows(url, "UPDATE tk_turn_keys SET began_at = 1"))
    for options, abandoned in ((["--dry-run"], 2), (["--dry-run"], 2), ([], 2), (["--dry-run"], 0)):
        assert run(["retention", "run", "--url", url, "--json", *options]) == 0
        assert json.loads(capsys.readouterr().out)["abandoned"] == abandoned
