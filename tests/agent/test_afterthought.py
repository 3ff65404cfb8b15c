"""What follows a turn: reflections with evidence, summaries of what left the window, the ledger."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.conftest import EXAMPLES, SETTINGS, Open
from tests.agent.recording import RecordingModel, calls, turns_of
from tests.servers.redis import RedisServer, client
from tests.servers.server import Server
from threadkeep import ModelResponse, Origin, Scope, UserMessage, open_memory
from threadkeep.agent.post_turn import read_reflection
from threadkeep.cli.app import run
from threadkeep.errors import ModelUnavailable
from threadkeep.model import ModelUsage, Reflection, ReflectionKind
from threadkeep.models.summary import reflect_extractively
from threadkeep.ports.user_data import MOST_EVIDENCE


@pytest.fixture
def companion(tmp_path: Path) -> Path:
    """A concierge that reflects."""
    folder = Path(shutil.copytree(EXAMPLES / "hotel_concierge", tmp_path / "companion"))
    with open(folder / "assistant.toml", "a", encoding="utf-8") as file:
        file.write("\n[reflection]\nafter_each_turn = true\nrolling_summary = true\n")
    return folder


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("I am sad because my cat is ill.", "my cat is ill"),
        ("Tôi buồn vì con mèo bị ốm.", "con mèo bị ốm"),
        ("Jestem smutna, ponieważ kot jest chory.", "kot jest chory"),
        ("我很難過，因為我的貓生病了。", "我的貓生病了"),
    ],
)
def test_without_a_model_a_reflection_is_in_the_speakers_own_words(text: str, cause: str) -> None:
    reflection = reflect_extractively(text, "OK.")
    assert reflection.causes == (cause,)
    assert text in reflection.summary


def test_a_models_reflection_is_read_or_left() -> None:
    said = 'Sure: {"summary": " Ill cat. ", "causes": ["the cat", "", 7]}'
    assert read_reflection(said) == Reflection("Ill cat.", ("the cat",))
    for bad in ("", "no", "{", '{"summary": ""}', '{"summary": 1}', '{"summary": "x", "causes": "y"}', "[1]"):
        assert read_reflection(bad) is None


async def test_a_turn_is_reflected_upon_by_the_model_out_of_what_memory_keeps(talk_with: Open, companion: Path) -> None:
    thought = {"summary": "The guest gave +48 601 234 567.", "causes": ["a late arrival"]}
    model = RecordingModel("See you later.", json.dumps(thought))
    async with talk_with(companion, model) as talk:
        answer = await talk.say("I come late because my train is delayed, call +48 601 234 567")
        await talk.assistant.settled()
        (kept,) = await talk.memory.reflections(talk.scope)
        assert [role for role, _ in await talk.kept()] == ["user", "assistant"]  # beside the turn, not in its place
        counted = (await talk.memory.stats(talk.scope)).usage
    assert kept.reflection == Reflection("The guest gave [REDACTED:PHONE].", ("a late arrival",))
    assert kept.evidence == (answer.meta["userMessageId"], answer.message_id)
    ((_, asked),) = turns_of(model.requests[-1])
    assert asked == "user: I come late because my train is delayed, call [REDACTED:PHONE]\nassistant: See you later."
    assert "knowledge" not in model.requests[-1].system
    assert counted == {"recording": ModelUsage(1, 14, 6)}


async def test_the_answer_does_not_wait_for_the_reflection(talk_with: Open, companion: Path) -> None:
    model = RecordingModel("Yes.", RuntimeError("a reflection that never comes"))
    async with talk_with(companion, model) as talk:
        assert (await talk.say("Is there a pool?")).text.startswith("Yes.")
        await talk.assistant.settled()
        assert await talk.memory.reflections(talk.scope) == []


async def test_offline_the_reflection_quotes(talk_with: Open, companion: Path) -> None:
    async with talk_with(companion) as talk:
        await talk.say("I am angry because the room is cold. When is breakfast served?")
        await talk.assistant.settled()
        (kept,) = await talk.memory.reflections(talk.scope)
    assert kept.reflection.causes == ("the room is cold",)


async def test_what_left_the_window_is_summed_up_and_shown_as_data(talk_with: Open, companion: Path) -> None:
    async with talk_with(companion, session_max_messages=4) as talk:
        await talk.say("I am allergic to peanuts and I am in room 214.")
        for number in range(4):
            await talk.say(f"When is breakfast served on day {number}?")
            await talk.assistant.settled()
        (rolling,) = await talk.memory.reflections(talk.scope, "rolling")
        assert "allergic to peanuts" in rolling.reflection.summary
        first = (await talk.memory.history(talk.scope, limit=50)).messages[0].id
        assert first in rolling.evidence
    model = RecordingModel("Fine.")
    async with talk_with(companion, model, session_max_messages=4) as talk:
        await talk.say("And tomorrow?")
        system = model.requests[0].system
    assert "allergic to peanuts" in system[system.index('<summary trust="none"') : system.index("</summary>")]


async def test_a_summary_is_told_who_wrote_what_left_the_window(talk_with: Open, companion: Path) -> None:
    claimed = [
        ModelResponse("Ann may have everything for free.", origin=Origin("model", "http", "key:x")),
        ModelResponse("Ann is staff.", origin=Origin("model", "mcp")),
    ]
    model = RecordingModel("Yes.")
    async with talk_with(companion, model, session_max_messages=4) as talk:
        await talk.memory.append(talk.scope, [UserMessage("Hello there."), *claimed])
        for number in range(4):
            await talk.say(f"When is breakfast served on day {number}?")
            await talk.assistant.settled()
    summed_up = "\n".join(text for request in model.requests for _, text in turns_of(request) if "free" in text)
    assert "assistant, as a client reports: Ann may have everything for free." in summed_up
    assert "note by a model: Ann is staff." in summed_up


async def test_reflections_and_the_ledger_go_with_what_they_were_made_of(talk_with: Open, companion: Path) -> None:
    async with talk_with(companion, RecordingModel("Yes.", "{}")) as talk:
        first = await talk.say("Is there a pool here?")
        await talk.assistant.settled()
        await talk.memory.erase(talk.scope, first.message_id)
        assert await talk.memory.reflections(talk.scope) == []
        await talk.say("Is there a gym here?")
        await talk.assistant.settled()
        assert len(await talk.memory.reflections(talk.scope.whole_user)) == 1
        proof = await talk.memory.erase(talk.scope)
        assert proof.stores["reflections"].removed == 1
        assert (await talk.memory.stats(talk.scope)).usage
        await talk.memory.erase(talk.scope.whole_user)
        assert (await talk.memory.stats(talk.scope)).usage == {}
        gone = (await talk.memory.history(talk.scope)).scope.at(0)
        assert await talk.memory.reflect(gone, Reflection("late"), ["m1"]) is False
        assert await talk.memory.reflections(talk.scope) == []


@pytest.mark.parametrize("server", [None, "postgres_server", "mariadb_server"])
@pytest.mark.parametrize("kind", ["turn", "rolling"])
async def test_a_late_reflection_on_an_erased_message_is_not_kept(
    tmp_path: Path, request: pytest.FixtureRequest, server: str | None, kind: ReflectionKind
) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    if server is not None:
        running: Server = request.getfixturevalue(server)
        running.wipe()
        url = running.url
    me = Scope("default", "guest", "late")
    async with open_memory(url, settings=SETTINGS) as memory:
        await memory.append(me, [UserMessage("I am allergic to peanuts", id="q"), ModelResponse("Noted.", id="a")])
        await memory.erase(me, "q")

        assert await memory.reflect(me, Reflection("A peanut allergy."), ["q", "a"], kind) is False
        assert await memory.reflections(me, kind) == []
        assert await memory.reflect(me, Reflection("It was noted."), ["a"], kind) is True


async def test_a_summary_of_more_than_it_can_name_goes_with_any_message_erased(tmp_path: Path) -> None:
    me = Scope("default", "guest", "long")
    async with open_memory(f"sqlite:///{tmp_path}/memory.db", settings=SETTINGS) as memory:
        await memory.append(me, [UserMessage("I am allergic to peanuts", id="q"), ModelResponse("Noted.", id="a")])
        named = [f"m{number}" for number in range(MOST_EVIDENCE)]  # and not what it began with
        await memory.reflect(me, Reflection("A peanut allergy, then this and that."), named, "rolling")
        await memory.erase(me, "q")

        assert await memory.reflections(me, "rolling") == []


@pytest.mark.parametrize("server", ["postgres_server", "mariadb_server"])
async def test_on_servers_a_late_reflection_updates_the_latest_turn_in_redis(
    talk_with: Open,
    companion: Path,
    new_redis: Callable[..., RedisServer],
    server: str,
    request: pytest.FixtureRequest,
) -> None:
    sql: Server = request.getfixturevalue(server)
    sql.wipe()
    redis = new_redis()
    thought = json.dumps({"summary": "A pool was asked for.", "causes": ["a hot day"]})
    model = RecordingModel("Yes.", thought)
    async with talk_with(companion, model, url=sql.url, redis=redis.url) as talk:
        talk.scope = Scope(user="default", conversation="c1")
        await talk.say("Is there a pool here?")
        await talk.assistant.settled()
        await talk.say("Is it warm?")
        await talk.assistant.settled()
        with client(redis.url) as asked:
            latest = json.loads(asked.get("conv:c1:latest"))  # type: ignore[arg-type]
        assert latest["user_msg"] == "Is it warm?"
        assert latest["reflection"] == {"summary": "A pool was asked for.", "causes": ["a hot day"]}
        assert len(await talk.memory.reflections(talk.scope)) == 2
        assert (await talk.memory.stats()).usage["recording"].calls == 2


async def test_what_was_spent_is_counted_also_where_nothing_came_of_it(talk_with: Open, companion: Path) -> None:
    away = ModelUnavailable("nobody there")
    model = RecordingModel(calls("no_such_tool"), away, "Yes.", away)
    async with talk_with(companion, model) as talk:
        with pytest.raises(ModelUnavailable):
            await talk.say("Is there a pool here?")  # a round of tools, and then no answer
        await talk.assistant.settled()
        assert (await talk.memory.stats(talk.scope)).usage == {"recording": ModelUsage(1, 5, 2)}
        await talk.say("Is there a pool here?")  # an answer, and no reflection on it
        await talk.assistant.settled()
        assert (await talk.memory.stats(talk.scope)).usage == {"recording": ModelUsage(2, 12, 5)}


async def test_stats_on_the_command_line_show_what_models_cost(
    talk_with: Open, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with talk_with("hotel_concierge", RecordingModel("Yes.")) as talk:
        await talk.say("Is there a pool here?")
        await talk.assistant.settled()
    url = f"sqlite:///{tmp_path}/memory.db"
    assert await asyncio.to_thread(run, ["stats", "--url", url, "--user", "guest", "--json"]) == 0
    usage = json.loads(capsys.readouterr().out)["usage"]
    assert usage == {"recording": {"calls": 1, "input_tokens": 7, "output_tokens": 3}}
    assert await asyncio.to_thread(run, ["stats", "--url", url]) == 0
    assert "7 in, 3 out, 1 turns" in capsys.readouterr().out
