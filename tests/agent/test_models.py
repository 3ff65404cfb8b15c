"""Chat models through LangChain: native messages, streaming, tools, usage, patience, and errors that quote nothing."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from google import genai
from google.genai import types
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import Field

from tests.agent.conftest import EXAMPLES, Open
from threadkeep import Settings
from threadkeep.compat import AgentService
from threadkeep.errors import InvalidSetting, ModelError, ModelTimeout, ModelUnavailable
from threadkeep.models.chat import Patience
from threadkeep.models.chat.choice import ChatChoice, chat_model_for
from threadkeep.models.chat.langchain import LangChainModel
from threadkeep.models.chat.offline import OfflineModel
from threadkeep.ports.chat import ChatReply, ChatRequest, Said

QUICK = Patience(seconds=5, retries=2, first_pause=0.0)
REQUEST = ChatRequest("Be brief.", [Said("user", "Hi"), Said("assistant", "Hello"), Said("user", "my secret is 42")])


class Scripted(BaseChatModel):
    """Raises its failures first, then says its text."""

    failures: list[Any] = Field(default_factory=list)
    text: str = "one two three"
    seen: list[list[BaseMessage]] = Field(default_factory=list)
    after_words: int | None = None  # a failure in the middle of a stream

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        self.seen.append(messages)
        if self.failures:
            raise self.failures.pop(0)
        usage: Any = {"input_tokens": 11, "output_tokens": 3, "total_tokens": 14}
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.text, usage_metadata=usage))])

    def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Iterator[Any]:
        self.seen.append(messages)
        for number, word in enumerate(self.text.split()):
            if self.failures and self.after_words == number:
                raise self.failures.pop(0)
            yield ChatGenerationChunk(message=AIMessageChunk(word + " "))


class Status(Exception):
    def __init__(self, status_code: int) -> None:
        super().__init__("your text was: my secret is 42")
        self.status_code = status_code


async def test_the_talk_comes_in_native_messages_with_the_current_one_last() -> None:
    scripted = Scripted(seen=[])
    reply = await LangChainModel(scripted, "scripted", QUICK).reply(REQUEST)
    assert reply.text == "one two three"
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (11, 3)
    assert [(one.type, one.content) for one in scripted.seen[0]] == [
        ("system", "Be brief."),
        ("human", "Hi"),
        ("ai", "Hello"),
        ("human", "my secret is 42"),
    ]


async def test_a_reply_is_streamed_piece_by_piece() -> None:
    pieces = [piece async for piece in LangChainModel(Scripted(seen=[]), "scripted", QUICK).stream(REQUEST)]
    assert pieces[:-1] == ["one ", "two ", "three "]
    assert isinstance(pieces[-1], ChatReply)
    assert pieces[-1].text == "one two three "


async def test_what_fails_is_tried_again_and_what_is_refused_is_not() -> None:
    busy = Scripted(failures=[Status(503), ConnectionError("my secret is 42")], seen=[])
    assert (await LangChainModel(busy, "scripted", QUICK).reply(REQUEST)).text == "one two three"
    assert len(busy.seen) == 3
    refusing = Scripted(failures=[Status(401)], seen=[])
    with pytest.raises(ModelError) as refused:
        await LangChainModel(refusing, "scripted", QUICK).reply(REQUEST)
    assert not isinstance(refused.value, ModelUnavailable)
    assert len(refusing.seen) == 1
    gone = Scripted(failures=[Status(500)] * 9, seen=[])
    with pytest.raises(ModelUnavailable) as failed:
        await LangChainModel(gone, "scripted", QUICK).reply(REQUEST)
    for error in (refused, failed):
        assert "secret" not in str(error.value)
        assert error.value.__cause__ is None


async def test_a_stream_that_has_begun_is_not_begun_again() -> None:
    broken = Scripted(failures=[Status(500)], after_words=1, seen=[])
    stream = LangChainModel(broken, "scripted", QUICK).stream(REQUEST)
    assert await anext(stream) == "one "
    with pytest.raises(ModelUnavailable):
        await anext(stream)
    early = Scripted(failures=[Status(500)], after_words=0, seen=[])
    pieces = [piece async for piece in LangChainModel(early, "scripted", QUICK).stream(REQUEST)]
    assert pieces[:-1] == ["one ", "two ", "three "]


async def test_a_model_that_takes_too_long_is_told_so() -> None:
    class Slow(Scripted):
        async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
            await asyncio.Event().wait()
            raise AssertionError

        async def _astream(self, *args: Any, **kwargs: Any) -> Any:
            await asyncio.Event().wait()
            yield None

    slow = LangChainModel(Slow(seen=[]), "slow", Patience(seconds=0.05, retries=3, first_pause=0))
    with pytest.raises(ModelTimeout):
        await slow.reply(REQUEST)
    with pytest.raises(ModelTimeout):
        [piece async for piece in slow.stream(REQUEST)]


@pytest.mark.parametrize("name", ["poetry", "poetry:x", "openai:", ":x"])
def test_a_name_of_no_model_is_refused(name: str) -> None:
    with pytest.raises(InvalidSetting, match="THREADKEEP_CHAT_MODEL"):
        chat_model_for(ChatChoice(name), OfflineModel())


@pytest.mark.parametrize("name", [None, "", "offline"])
def test_no_name_is_the_offline_model(name: str | None) -> None:
    offline = OfflineModel()
    assert chat_model_for(ChatChoice(name), offline) is offline


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("openai:gpt-5", "OPENAI_API_KEY"),
        ("anthropic:claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("gemini:gemini-flash-latest", "GOOGLE_API_KEY"),
    ],
)
def test_every_provider_has_its_model_made(name: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "not-a-key")
    model = chat_model_for(ChatChoice(name), OfflineModel())
    assert model.generates
    assert model.name.endswith(name.partition(":")[2])


def test_a_key_that_is_not_set_is_told_without_a_traceback_of_the_vendor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelError, match="is its key set"):
        chat_model_for(ChatChoice("openai:gpt-5"), OfflineModel())


class RefusingStub(BaseHTTPRequestHandler):
    """Answers every request with the status that the server was told, in the form of Gemini and OpenAI errors."""

    def do_POST(self) -> None:
        if length := self.headers["Content-Length"]:
            self.rfile.read(int(length))
        else:  # in chunks
            while size := int(self.rfile.readline(), 16):
                self.rfile.read(size + 2)
            self.rfile.readline()
        self.server.asked += 1  # type: ignore[attr-defined]
        status = self.server.status  # type: ignore[attr-defined]
        body = json.dumps({"error": {"code": status, "message": "my secret is 42", "status": "INVALID_ARGUMENT"}})
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *args: Any) -> None: ...


@pytest.fixture
def refusing() -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), RefusingStub)
    server.asked, server.status = 0, 400
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("status", [400, 403, 404, 422])
@pytest.mark.parametrize(
    ("name", "variable", "path"),
    [("gemini:gemini-flash-latest", "GOOGLE_API_KEY", ""), ("openai:gpt-5", "OPENAI_API_KEY", "/v1")],
)
async def test_a_request_that_the_providers_server_refuses_is_sent_once(
    refusing: Any, monkeypatch: pytest.MonkeyPatch, name: str, variable: str, path: str, status: int, streamed: bool
) -> None:
    monkeypatch.setenv(variable, "not-a-key")
    refusing.status = status
    base_url = f"http://127.0.0.1:{refusing.server_address[1]}{path}"
    model = chat_model_for(ChatChoice(name, base_url=base_url), OfflineModel())
    with pytest.raises(ModelError) as refused:
        await (anext(aiter(model.stream(REQUEST))) if streamed else model.reply(REQUEST))
    assert refusing.asked == 1
    assert not isinstance(refused.value, ModelUnavailable)
    assert f"status {status}" in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")
async def test_what_geminis_server_refuses_the_concierges_service_sends_once(refusing: Any) -> None:
    client = genai.Client(
        api_key="not-a-key",
        http_options=types.HttpOptions(base_url=f"http://127.0.0.1:{refusing.server_address[1]}"),
    )
    with pytest.raises(ModelError) as refused:
        await AgentService(EXAMPLES / "hotel_concierge", client=client).chat("Dzień dobry", None, "pl")
    await client.aio.aclose()
    assert refusing.asked == 1
    assert not isinstance(refused.value, ModelUnavailable)


class OllamaStub(BaseHTTPRequestHandler):
    """What an Ollama server answers to `/api/chat`, in its own stream of JSON lines."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(asked)  # type: ignore[attr-defined]
        lines = [
            {"model": asked["model"], "message": {"role": "assistant", "content": word}, "done": False}
            for word in ("Dạ, ", "giá ", "8.990.000 ", "đồng ạ.")
        ]
        end = {"model": asked["model"], "message": {"role": "assistant", "content": ""}, "done": True}
        lines.append(end | {"done_reason": "stop", "prompt_eval_count": 21, "eval_count": 9})
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.end_headers()
        for line in lines:
            self.wfile.write(json.dumps(line).encode() + b"\n")

    def log_message(self, *args: Any) -> None: ...


@pytest.fixture
def ollama() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), OllamaStub)
    server.asked = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:{port}", "http://127.0.0.1:{port}"])
async def test_the_shop_talks_to_gpt_oss_on_an_ollama_server(talk_with: Open, ollama: Any, host: str) -> None:
    port = ollama.server_address[1]
    where = {"ollama_host": host.format(port=port), "ollama_port": port if host == "127.0.0.1" else 11_434}
    async with talk_with("pc_shop", chat_model="ollama:gpt-oss", **where) as talk:
        answer = await talk.say("Card RTX 5060 giá bao nhiêu?")
        pieces = [p async for p in talk.assistant.stream(_asked(talk.scope, "Thế còn RTX 5070 giá bao nhiêu?"))]
    assert answer.text.startswith("Dạ, giá 8.990.000 đồng ạ.")
    assert len(pieces) >= 5
    assert {asked["model"] for asked in ollama.asked} == {"gpt-oss"}
    last = ollama.asked[-1]["messages"]
    assert [one["role"] for one in last] == ["system", "user", "assistant", "user"]
    assert last[-1]["content"] == "Thế còn RTX 5070 giá bao nhiêu?"
    assert answer.usage.input_tokens >= 21


async def test_the_concierges_service_asks_the_ollama_that_the_settings_name(ollama: Any) -> None:
    where = {"ollama_host": "127.0.0.1", "ollama_port": ollama.server_address[1]}
    settings = Settings().model_copy(update={"chat_model": "ollama:gpt-oss", **where})
    reply, _ = await AgentService(EXAMPLES / "hotel_concierge", settings=settings).chat("Dzień dobry", None, "pl")
    assert reply == "Dạ, giá 8.990.000 đồng ạ."
    assert [asked["model"] for asked in ollama.asked] == ["gpt-oss"]


def _asked(scope: Any, text: str) -> Any:
    from threadkeep.ports.chat import Asked

    return Asked(scope, text)
