"""A talk's language: of the first message that tells it. What is only the default is not kept."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.agent.conftest import Open
from tests.agent.recording import RecordingModel
from threadkeep.settings import TenantLanguage


async def test_a_first_message_that_tells_no_language_leaves_it_open(talk_with: Open) -> None:
    async with talk_with("pc_shop") as talk:
        assert (await talk.say("RTX 5060")).language == "vi"
        assert (await talk.memory.history(talk.scope)).language is None
        assert (await talk.say("How much is the RTX 5060?")).language == "en"
        asked_so_far = talk.detector.calls
        for text in ("ok", "RTX 5060 giá bao nhiêu vậy shop?", "RTX 5070"):
            assert (await talk.say(text)).language == "en"
        assert talk.detector.calls == asked_so_far
        assert (await talk.memory.history(talk.scope)).language == "en"


async def test_a_hello_is_answered_in_its_language_until_a_message_tells_more(talk_with: Open) -> None:
    async with talk_with("pc_shop") as talk:
        assert (await talk.say("hello")).language == "en"
        assert (await talk.say("RTX 5060")).language == "en"
        assert (await talk.say("Tư vấn cho tôi cấu hình chơi game")).language == "vi"
        assert (await talk.say("How much is the RTX 5060?")).language == "vi"


async def test_a_first_message_that_tells_is_the_only_one_the_detector_sees(talk_with: Open) -> None:
    async with talk_with("hotel_concierge") as talk:
        for text in ("Do you have wifi?", "ok", "Dziękuję bardzo", "hello", "Is there a sauna?"):
            assert (await talk.say(text)).language == "en"
    assert talk.detector.calls == 1


async def test_a_short_english_question_is_not_answered_in_vietnamese_for_the_whole_talk(talk_with: Open) -> None:
    async with talk_with("pc_shop") as talk:
        assert (await talk.say("Can I get a GPU?")).language == "vi"  # unsure: the shop's default, for this turn
        assert (await talk.memory.history(talk.scope)).language is None
        assert (await talk.say("Can I return a CPU?")).language == "en"
        assert (await talk.memory.history(talk.scope)).language == "en"


@pytest.mark.parametrize(
    ("first", "tag", "named"),
    [
        ("Guten Tag, haben Sie noch ein Zimmer für zwei Nächte frei?", "de", "German (de)"),
        ("Добрий день! Чи є у вас вільні номери?", "uk", "Ukrainian (uk)"),
        ("Habari, naomba chumba kwa usiku mbili na kifungua kinywa", "sw", "BCP 47 tag is sw"),
    ],
)
async def test_a_model_answers_in_the_guests_language_whatever_it_is(
    talk_with: Open, first: str, tag: str, named: str
) -> None:
    model = RecordingModel("Gerne.")
    async with talk_with("hotel_concierge", model=model) as talk:
        assert (await talk.say(first)).language == tag
        assert (await talk.say("ok")).language == tag
        assert (await talk.memory.history(talk.scope)).language == tag
    for request in model.requests:
        assert named in request.system
        assert "Odpowiadaj po polsku" not in request.system
    assert model.requests[-1].language == tag


async def test_offline_a_language_without_phrases_of_its_own_gets_english_ones(talk_with: Open) -> None:
    async with talk_with("hotel_concierge") as talk:
        answer = await talk.say("Welche Farbe hat die Lieblingskatze des Direktors?")
        assert answer.language == "de"
        assert "I have no information about that" in answer.text
        greeting = await talk.assistant.greet(talk.scope.with_conversation("talk-2"), "de-DE")
        assert greeting is not None
        assert greeting.text.startswith("Good day, this is the Concierge")


@pytest.mark.parametrize(
    ("first", "tag", "kept"),
    [
        ("wifi免费吗", "zh-Hans", None),
        ("有wifi嗎", "zh-Hant", None),
        ("check in几点", "zh-Hans", None),
        ("早餐", "zh-Hant", None),
        ("О котрій сніданок?", "uk", None),
        ("де паркінг", "uk", None),
        ("сколько стоит номер?", "ru", None),
        ("wifi?", "pl", None),
        ("hallo", "de", None),
        ("do u have a sauna", "en", "en"),
    ],
)
async def test_a_short_message_is_not_answered_in_a_language_of_another_script(
    talk_with: Open, first: str, tag: str, kept: str | None
) -> None:
    async with talk_with("hotel_concierge") as talk:
        assert (await talk.say(first)).language == tag
        assert (await talk.memory.history(talk.scope)).language == kept


async def test_the_shop_answers_in_vietnamese_or_english_only(talk_with: Open) -> None:
    model = RecordingModel("Dạ.")
    async with talk_with("pc_shop", model=model) as talk:
        assert (await talk.say("Guten Tag, ich suche eine günstige Grafikkarte")).language == "vi"
        assert (await talk.memory.history(talk.scope)).language is None
        await talk.memory.set_language(talk.scope, "de")  # as an application may have, or an older version
        assert (await talk.say("Was kostet die RTX 5060 bei Ihnen?", language="de-DE")).language == "vi"
        assert (await talk.say("How much is the RTX 5060?")).language == "en"
        assert (await talk.memory.history(talk.scope)).language == "en"
    assert all("German" not in request.system for request in model.requests)


async def test_of_three_lists_of_languages_the_nearest_holds(talk_with: Open, tmp_path: Path) -> None:
    german = "Guten Tag, haben Sie noch ein Zimmer für zwei Nächte frei?"
    one_tenant = {"default": TenantLanguage(languages=("de-AT", "en"))}
    for number, (folder, settings, tag) in enumerate(
        [
            ("hotel_concierge", {}, "de"),
            ("hotel_concierge", {"languages": ("pl-PL", "de-DE")}, "de-DE"),
            ("hotel_concierge", {"languages": ("pl-PL",), "tenant_languages": one_tenant}, "de-AT"),
            ("hotel_concierge", {"languages": ("pl-PL", "en")}, "pl"),  # no language of its list: its default
            ("pc_shop", {"languages": ("de",), "tenant_languages": one_tenant}, "vi"),
        ]
    ):
        url = f"sqlite:///{tmp_path}/{number}.db"
        async with talk_with(folder, url=url, model=RecordingModel("Ja."), **settings) as talk:
            assert (await talk.say(german)).language == tag


async def test_that_detection_was_skipped_is_logged(talk_with: Open, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "threadkeep.language")
    async with talk_with("hotel_concierge") as talk:
        await talk.say("Do you have wifi?")
        assert caplog.messages == []
        await talk.say("Is there a sauna?")
    assert [one for one in caplog.messages if "skipped" in one] == [
        "language detection skipped: the session is held in en"
    ]


class GeminiStub(BaseHTTPRequestHandler):
    """Answers `generateContent` as Gemini does: the server's tag where the model for languages is asked."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        model = self.path.rpartition("/")[2].partition(":")[0]
        self.server.asked.append((model, asked))  # type: ignore[attr-defined]
        text = self.server.tag if "lite" in model else "Sure."  # type: ignore[attr-defined]
        content = {"role": "model", "parts": [{"text": text}]}
        body = json.dumps({"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None: ...


@pytest.fixture
def gemini(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("GOOGLE_API_KEY", "not-a-key")
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), GeminiStub)
    server.asked, server.tag = [], "de-DE"
    server.settings = {
        "chat_model": "gemini:gemini-flash-latest",
        "chat_base_url": f"http://127.0.0.1:{server.server_address[1]}",
        "gemini_model_lang": "gemini-flash-lite-latest",
    }
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def asked_for_a_language(server: Any) -> list[Any]:
    return [body for model, body in server.asked if model == "gemini-flash-lite-latest"]


@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")
async def test_gemini_is_asked_once_for_the_language_where_the_offline_detector_is_unsure(
    talk_with: Open, gemini: Any
) -> None:
    async with talk_with("hotel_concierge", own_detector=False, **gemini.settings) as talk:
        assert (await talk.say("Wellness? jan@example.org")).language == "de-DE"
        for text in ("ok", "Do you have wifi?"):
            assert (await talk.say(text)).language == "de-DE"
        assert (await talk.memory.history(talk.scope)).language == "de-DE"
    (asked,) = asked_for_a_language(gemini)
    assert "Wellness?" in json.dumps(asked)
    assert "jan@example.org" not in json.dumps(asked)  # as memory keeps it
    answering = [json.dumps(body) for model, body in gemini.asked if model == "gemini-flash-latest"]
    assert len(answering) == 3
    assert all("German (de-DE)" in body for body in answering)


@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")
@pytest.mark.parametrize("tag", ["und", "I cannot tell.", "fr"])
async def test_gemini_is_not_asked_where_there_is_no_doubt_and_asked_again_where_it_settled_nothing(
    talk_with: Open, gemini: Any, tag: str
) -> None:
    gemini.tag = tag
    async with talk_with("pc_shop", own_detector=False, **gemini.settings) as talk:
        for _ in range(2):
            assert (await talk.say("RTX 5060")).language == "vi"
        assert len(asked_for_a_language(gemini)) == 2
        assert (await talk.say("How much is the RTX 5060?")).language == "en"
        assert len(asked_for_a_language(gemini)) == 2
