"""Follow-up questions in the light of their talk: by rule, by the configured chat model, and handed to a reranker."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.library import SETTINGS, document, fill, found_in, question
from threadkeep.compose.retrieval import OwnParts, open_retrieval, query_rewriter
from threadkeep.errors import InvalidSetting
from threadkeep.settings import Settings

SAID = "In which two steps does RAG work?"


class ScriptedModel(BaseHTTPRequestHandler):
    """An Ollama server that says the next line of its script; at the end of the script it fails."""

    def do_POST(self) -> None:
        server: Any = self.server
        server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        if not server.script:
            self.send_error(503)
            return
        said = {"role": "assistant", "content": server.script.pop(0)}
        end = {"model": "scripted", "message": said, "done": True, "done_reason": "stop"}
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.end_headers()
        self.wfile.write(json.dumps(end).encode() + b"\n")

    def log_message(self, *args: Any) -> None: ...


@pytest.fixture
def model() -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), ScriptedModel)
    server.asked, server.script = [], []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def talking_to(model: Any, **more: Any) -> Settings:
    where = {"OLLAMA_HOST": "127.0.0.1", "OLLAMA_PORT": model.server_address[1]}
    return Settings(**({"THREADKEEP_CHAT_MODEL": "ollama:scripted"} | where | more))


async def test_the_configured_chat_model_rewrites_follow_ups(url: str, model: Any) -> None:
    model.script = [f"  {SAID}\n"]
    async with open_retrieval(url, talking_to(model)) as retrieval:
        first = await retrieval.ask(question("What is RAG?", conversation="c1"))
        second = await retrieval.ask(question("How does it work? I am an@example.com", conversation="c1"))
    assert (first.metrics["rewritten"], second.metrics["rewritten"]) == (False, True)
    assert found_in(second)[0] == "how.md"
    (asked,) = model.asked
    prompt = asked["messages"][-1]["content"]
    assert "Previous queries:\n- What is RAG?" in prompt
    assert "Current query: How does it work? I am [REDACTED:EMAIL]" in prompt, "it is sent what may be kept"


async def test_a_model_that_fails_costs_no_answer_and_is_soon_asked_no_more(url: str, model: Any) -> None:
    async with open_retrieval(url, talking_to(model)) as retrieval:
        await retrieval.ask(question("What is RAG?", conversation="c1"))
        answers = [await retrieval.ask(question("How does it work?", conversation="c1")) for _ in range(4)]
    for answer in answers:
        assert found_in(answer)[0] == "how.md"
        assert answer.metrics.items() >= {"enriched": True, "rewritten": False, "doneWithout": ["rewriter"]}.items()
    assert len(model.asked) == 2


@pytest.mark.parametrize(
    "named", [{"THREADKEEP_CHAT_MODEL": "offline"}, {"THREADKEEP_REWRITER": "none"}, {"THREADKEEP_CHAT_MODEL": ""}]
)
def test_without_a_model_that_writes_questions_are_enriched_by_rule(model: Any, named: dict[str, str]) -> None:
    assert query_rewriter(talking_to(model, **named)) is None


def test_a_rewriter_of_its_own_may_be_named_and_a_name_of_none_is_told(model: Any) -> None:
    own = talking_to(model, THREADKEEP_CHAT_MODEL="offline", THREADKEEP_REWRITER="ollama:small")
    assert query_rewriter(own) is not None
    with pytest.raises(InvalidSetting, match="names no chat model"):
        query_rewriter(talking_to(model, THREADKEEP_REWRITER="nonsense"))


def long_document(name: str, opening: str, late: str) -> Any:
    """`late` stands behind the two hundredth character."""
    return document(name, f"{opening} comet garden {'filler ' * 30}{late}")


@pytest.fixture
async def garden(tmp_path: Path) -> str:
    """Four documents about the same, told apart by a word at the beginning and one far behind."""
    url = f"sqlite:///{tmp_path}/garden.db"
    words = ("amber", "basalt", "copper", "dahlia")
    await fill(url, *(long_document(f"{word}.md", word * 2, f"late{word}") for word in words))
    return url


async def test_the_last_query_lends_three_contexts_of_two_hundred_characters_each(garden: str) -> None:
    told: list[str] = []

    async def rerank(text: str, rows: Sequence[Any]) -> Sequence[Any]:
        told.append(text)
        return rows

    async with open_retrieval(garden, SETTINGS, OwnParts(rerank=rerank)) as retrieval:
        await retrieval.ask(question("filler of old", conversation="c1"))
        last = await retrieval.ask(question("comet garden", conversation="c1"))
        answer = await retrieval.ask(question("and what about it?", conversation="c1"))
    assert len(last.contexts) == 4
    best = [context["content"][:200] for context in last.contexts[:3]]
    assert told[2] == (
        "Previous queries in this conversation:\n- filler of old\n- comet garden\n\n"
        "Recent retrieved context:\n" + "".join(f"- {text.strip()}...\n" for text in best) + "\n"
        "Current query: and what about it?"
    )
    assert told[0] == "filler of old", "a first question stands for itself"
    lent = set(answer.metrics["enrichedWith"])
    openings = [context["content"].split()[0] for context in last.contexts]
    assert not any(term.startswith("late") for term in lent), "what stands behind is not lent"
    assert openings[3] not in lent, "nor is the fourth"


async def test_a_reranker_gets_the_rewritten_question_where_there_is_one(url: str, model: Any) -> None:
    told: list[str] = []

    async def rerank(text: str, rows: Sequence[Any]) -> Sequence[Any]:
        told.append(text)
        return rows

    model.script = [SAID]
    async with open_retrieval(url, talking_to(model), OwnParts(rerank=rerank)) as retrieval:
        await retrieval.ask(question("What is RAG?", conversation="c1"))
        await retrieval.ask(question("How does it work?", conversation="c1"))
    assert told == ["What is RAG?", SAID]
