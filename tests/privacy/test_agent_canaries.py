"""The assistant's path leaves no trace either: of what was said, of what tools were given, of what they answered."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.conftest import EXAMPLES, SETTINGS
from tests.agent.recording import RecordingModel, calls
from tests.privacy.canaries import personal_canaries
from tests.privacy.in_servers import in_redis
from tests.privacy.test_canaries import everything_logged, exported
from tests.privacy.token_readers import every_encoding
from tests.servers.redis import RedisServer, client
from threadkeep import Scope, UserMessage, open_memory
from threadkeep.compose.assistant import open_assistant
from threadkeep.errors import ModelError, ModelUnavailable
from threadkeep.ports.chat import Asked, ChatReply, ChatRequest
from threadkeep.testing.traces import Traces

__all__ = ["everything_logged"]

SCOPE = Scope("default", "u1", "c1")
PERSONAL = personal_canaries()
TOOLS = '''
def look_up(what: str) -> str:
    """Looks something up."""
    if what.endswith("9"):
        raise ValueError(what)
    return "canarytoolresult " + what
'''


def text_of(event: object) -> str:
    assert isinstance(event, UserMessage)
    return event.text or ""


def says_it_back(request: ChatRequest) -> ChatReply | str:
    """Calls a tool with what it was told, then repeats both to the user."""
    last = request.messages[-1].content
    if last.startswith("canarytoolresult") or "error" in last:
        return f"I was told: {request.messages[-3].content}"
    return calls("look_up", what=last)


def folder_with_a_tool(tmp_path: Path) -> Path:
    folder = tmp_path / "assistant"
    folder.mkdir()
    (folder / "assistant.toml").write_text(
        'name = "probe"\nlanguages = ["en", "pl"]\ndefault_language = "en"\n'
        '[slots]\ntypes = ["PHONE", "EMAIL", "CREDIT_CARD"]\n'
        "[reflection]\nafter_each_turn = true\nrolling_summary = true\n",
        encoding="utf-8",
    )
    (folder / "persona.md").write_text("You help.", encoding="utf-8")
    (folder / "prompt.txt").write_text("Answer.", encoding="utf-8")
    (folder / "tools.py").write_text(TOOLS, encoding="utf-8")
    return folder


@pytest.mark.usefixtures("everything_logged")
async def test_what_the_assistant_is_told_leaves_no_trace_in_any_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    settings = SETTINGS.model_copy(update={"outward_log": f"{tmp_path}/out.jsonl"})
    folder = folder_with_a_tool(tmp_path)
    model = RecordingModel(says_it_back)
    async with (
        open_memory(url, settings=settings) as memory,
        open_assistant(memory, settings, folder, url=url, model=model) as assistant,
    ):
        for canary in PERSONAL:
            answer = await assistant.respond(Asked(SCOPE, text_of(canary.event), token="canaryjwt0001quill"))
            assert canary.needle in answer.text  # the model and the user saw it
        assert {trace.ok for trace in answer.tools} <= {True, False}
        (tmp_path / "export.jsonl").write_text(await exported(memory))
        await assistant.settled()
        needles = [*(canary.needle for canary in PERSONAL), "canaryjwt0001quill", "canarytoolresult"]
        scan = Traces(needles, every_encoding())
        assert {one for one in scan.in_folder(tmp_path) if one.file != "tools.py"} == set()
        assert (await memory.stats()).messages == 2 * len(PERSONAL)
    assert (tmp_path / "debug.log").exists()
    assert "please use" in (tmp_path / "out.jsonl").read_text()


@pytest.mark.usefixtures("everything_logged")
async def test_nor_does_a_turn_that_fails(tmp_path: Path) -> None:
    """LangGraph keeps the error of a run that failed: it must not quote the user."""

    def broken(request: ChatRequest) -> str:
        raise KeyError(request.messages[-1].content)

    url, folder = f"sqlite:///{tmp_path}/memory.db", EXAMPLES / "hotel_concierge"
    secret = "canaryfails0001quill@example.com"
    for model in (RecordingModel(broken), RecordingModel(ModelUnavailable("away"))):
        async with (
            open_memory(url, settings=SETTINGS) as memory,
            open_assistant(memory, SETTINGS, folder, url=url, model=model) as assistant,
        ):
            with pytest.raises((ModelError, Exception)) as failed:
                await assistant.respond(Asked(SCOPE, f"please write to {secret}"))
            logging.getLogger("someone").error("a turn failed: %s", failed.value)
    assert Traces(["canaryfails0001quill"]).in_folder(tmp_path) == set()


@pytest.mark.usefixtures("everything_logged")
async def test_a_model_that_sorts_and_reflects_leaves_no_trace_of_what_it_read(tmp_path: Path) -> None:
    secret = "canarysorted0001quill@example.com"
    decision = {"intent": "shopping", "confidence": 0.9, "need_retrieval": True, "rationale": f"wants {secret}"}
    unsure = {"intent": "unknown", "confidence": 0.1, "clarify_questions": [f"Is {secret} yours?"], "rationale": secret}
    model = RecordingModel(json.dumps(decision), f"I wrote to {secret}.", json.dumps(unsure))
    url = f"sqlite:///{tmp_path}/memory.db"
    async with (
        open_memory(url, settings=SETTINGS) as memory,
        open_assistant(memory, SETTINGS, EXAMPLES / "pc_shop", url=url, model=model) as assistant,
    ):
        await assistant.respond(Asked(SCOPE, f"My address is {secret}, what does it cost?"))
        await assistant.respond(Asked(SCOPE, f"and {secret}?"))
        await assistant.settled()
        assert Traces(["canarysorted0001quill"]).in_folder(tmp_path) == set()


@pytest.mark.usefixtures("everything_logged")
async def test_what_another_application_left_in_a_session_goes_on_without_its_canaries(
    tmp_path: Path, new_redis: Callable[..., RedisServer]
) -> None:
    url, redis = f"sqlite:///{tmp_path}/memory.db", new_redis().url
    settings = SETTINGS.model_copy(update={"session_max_messages": len(PERSONAL) + 10})
    talk = Scope("default", "default", "old-session")
    roles = ("user", "assistant")
    old = [{"role": roles[place % 2], "content": text_of(one.event)} for place, one in enumerate(PERSONAL)]
    with client(redis) as server:
        document = {"messages": old, "language": "canarylanguage0001quill@example.com"}
        server.set("sessions:old-session", json.dumps(document))
    model = RecordingModel("Od siódmej.")
    async with (
        open_memory(url, redis=redis, settings=settings) as memory,
        open_assistant(memory, settings, EXAMPLES / "hotel_concierge", url=url, model=model) as assistant,
    ):
        needles = [*(canary.needle for canary in PERSONAL), "canarylanguage0001quill"]
        scan = Traces(needles, every_encoding())
        assert in_redis(scan, redis)  # it is there, and the scan finds it
        await assistant.respond(Asked(talk, "O której jest śniadanie?"))
        await assistant.settled()
        history = await memory.history(talk, limit=500)
        assert sum("[REDACTED:" in message.content for message in history.messages) == len(PERSONAL)
        (tmp_path / "history.txt").write_text("\n".join(one.content for one in history.messages))
        (tmp_path / "model.txt").write_text("\n".join(text for _, text in model.turns))
        await memory.flushed()
        assert in_redis(scan, redis) == set()
        assert scan.in_folder(tmp_path) == set()
