"""The retrieval graph on a real store: follow-ups, access, cache, bounded state, and parts that fail."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.mcp.library import ANN, BOB, RAG, SECRET, SETTINGS, document, fill, found_in, question
from tests.servers.server import Server
from threadkeep import open_memory
from threadkeep.adapters.langgraph import ThreadkeepSaver
from threadkeep.agent.retrieval import Retrieval
from threadkeep.agent.retrieval_steps import load_history, save_history
from threadkeep.agent.retrieval_turn import MOST_CONTEXTS, MOST_QUERIES, Turn
from threadkeep.checkpoints.store import DatabaseCheckpoints
from threadkeep.compose.knowledge import Knowledge, open_knowledge
from threadkeep.compose.retrieval import OwnParts, open_retrieval
from threadkeep.errors import EmbedderUnavailable, InvalidInput, ScopeErased, TooLarge
from threadkeep.ports.knowledge import Access
from threadkeep.recall.cache import SemanticCache
from threadkeep.recall.passages import Ranked
from threadkeep.scope import Scope

ME = Scope("default", ANN)


ON_EVERY_DATABASE = pytest.mark.parametrize("url", ["sqlite", "postgres", "mariadb"], indirect=True)


@pytest.fixture
async def url(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    where = f"sqlite:///{tmp_path}/tk.db"
    if (server := getattr(request, "param", "sqlite")) != "sqlite":
        running: Server = request.getfixturevalue(f"{server}_server")
        await asyncio.to_thread(running.wipe)
        where = running.url
    await fill(where)
    return where


@pytest.fixture
async def retrieval(url: str) -> AsyncIterator[Retrieval]:
    async with open_retrieval(url, SETTINGS) as opened:
        yield opened


@ON_EVERY_DATABASE
async def test_a_follow_up_is_answered_in_the_light_of_the_question_before(retrieval: Retrieval) -> None:
    first = await retrieval.ask(question("What is RAG?", conversation="c1", request_id="r1"))
    second = await retrieval.ask(question("How does it work?", conversation="c1", request_id="r2"))
    assert first.metrics["queryCount"] == 1
    assert first.metrics["enriched"] is False
    assert second.metrics["queryCount"] == 2
    assert second.metrics["enriched"] is True
    assert "rag" in second.metrics["enrichedWith"]
    assert found_in(second)[0] == "how.md"
    assert (second.metrics["conversationId"], second.metrics["requestId"]) == ("c1", "r2")
    assert second.as_dict().keys() == {"success", "query", "contexts", "metrics", "cached"}
    assert second.query == "How does it work?"


async def test_the_same_follow_up_without_its_conversation_is_not_enriched(retrieval: Retrieval) -> None:
    await retrieval.ask(question("What is RAG?", conversation="c1"))
    alone = await retrieval.ask(question("How does it work?", conversation="another"))
    assert alone.metrics["queryCount"] == 1
    assert alone.metrics["enriched"] is False


async def test_the_state_has_the_promised_shape_and_the_question_as_it_was_asked(retrieval: Retrieval) -> None:
    await retrieval.ask(question("What is RAG?", conversation="c1"))
    await retrieval.ask(question("How does it work?", conversation="c1", top_k=3))
    state: Any = await retrieval.state(ME, Access("default", ANN), "c1")
    assert [entry["query"] for entry in state["queries"]] == ["What is RAG?", "How does it work?"]
    assert [entry["topK"] for entry in state["queries"]] == [10, 3]
    assert {entry["queryIndex"] for entry in state["retrievedContexts"]} == {0, 1}
    one = state["retrievedContexts"][0]
    assert one.keys() >= {"parentChunkId", "documentId", "content", "score", "timestamp", "queryIndex"}
    assert (state["conversationId"], state["userId"], state["currentTopK"]) == ("c1", ANN, 3)
    assert "docs" in state["datasourceIds"]


async def test_it_remembers_after_a_restart(url: str) -> None:
    for expected in (1, 2):
        async with open_retrieval(url, SETTINGS) as opened:
            result = await opened.ask(question("What is RAG?", conversation="c1"))
            assert result.metrics["queryCount"] == expected


async def test_without_a_conversation_it_answers_and_keeps_nothing(retrieval: Retrieval) -> None:
    result = await retrieval.ask(question("What is RAG?"))
    assert "rag.md" in found_in(result)
    assert result.metrics["conversationId"] is None
    assert await retrieval.state(ME, Access("default", ANN), "None") is None


def everything_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file())


async def test_personal_data_in_a_question_reaches_no_file(url: str, tmp_path: Path) -> None:
    async with open_retrieval(url, SETTINGS) as opened:
        result = await opened.ask(question("What is RAG? Mail an.nguyen@example.com", conversation="c1"))
        assert result.query == "What is RAG? Mail an.nguyen@example.com"
        state: Any = await opened.state(ME, Access("default", ANN), "c1")
        assert state["queries"][0]["query"] == "What is RAG? Mail [REDACTED:EMAIL]"
    assert b"an.nguyen@example" not in everything_in(tmp_path)


async def test_a_long_conversation_stays_small_while_its_counts_go_on(retrieval: Retrieval) -> None:
    asked = MOST_QUERIES + 10
    returned, documents = 0, set[str]()
    for number in range(asked):
        result = await retrieval.ask(question(f"What is RAG, part {number}?", conversation="c1"))
        returned += len(result.contexts)
        documents |= set(found_in(result))
    state: Any = await retrieval.state(ME, Access("default", ANN), "c1")
    assert len(state["queries"]) == MOST_QUERIES
    assert len(state["retrievedContexts"]) <= MOST_CONTEXTS
    assert state["queries"][-1]["queryIndex"] == asked - 1
    assert state["retrievedContexts"][-1]["queryIndex"] == asked - 1
    assert (state["counts"]["queryCount"], state["counts"]["contextCount"]) == (asked, returned)
    assert state["counts"]["documents"] == len(documents)
    assert state["firstQuery"] == "What is RAG, part 0?"


async def test_questions_of_two_processes_to_one_conversation_all_count(url: str) -> None:
    async with open_retrieval(url, SETTINGS) as one, open_retrieval(url, SETTINGS) as other:
        asked = [
            who.ask(question(f"What is RAG {number}?", conversation="c1"))
            for number in range(6)
            for who in (one, other)
        ]
        results = await asyncio.gather(*asked)
        assert sorted(result.metrics["queryCount"] for result in results) == list(range(1, 13))
        state: Any = await one.state(ME, Access("default", ANN), "c1")
        assert [entry["queryIndex"] for entry in state["queries"]] == list(range(12))


async def test_the_same_conversation_id_under_two_users_is_two_conversations(retrieval: Retrieval) -> None:
    await retrieval.ask(question("What is RAG?", conversation="c1"))
    result = await retrieval.ask(question("How does it work?", user=BOB, conversation="c1"))
    assert result.metrics["queryCount"] == 1


async def test_nobody_finds_what_is_not_theirs_to_read(retrieval: Retrieval) -> None:
    asked = "salary budget of the astronomy club"
    assert {"salary.md", "budget.md"} <= set(found_in(await retrieval.ask(question(asked))))
    bobs = found_in(await retrieval.ask(question(asked, user=BOB)))
    assert "budget.md" in bobs
    assert "salary.md" not in bobs
    assert not {"salary.md", "budget.md"} & set(found_in(await retrieval.ask(question(asked, user="eve"))))


async def test_a_conversation_becomes_mixed_once_it_has_read_both_kinds(retrieval: Retrieval) -> None:
    await retrieval.ask(question("What is RAG?", conversation="c1", top_k=1))
    state: Any = await retrieval.state(ME, Access("default", ANN), "c1")
    assert state["accessLevel"] == "public"
    await retrieval.ask(question("director salary moon crowns", conversation="c1", top_k=1))
    state = await retrieval.state(ME, Access("default", ANN), "c1")
    assert state["accessLevel"] == "mixed"


async def test_a_document_that_is_closed_disappears_from_results_cache_and_what_was_stored(
    retrieval: Retrieval, url: str
) -> None:
    asked = question("telescope mirror budget", user=BOB, conversation="c1")
    before = await retrieval.ask(asked)
    await retrieval.ask(replace(asked, conversation=None))
    assert "budget.md" in found_in(before)
    await fill(url, document("budget.md", "The budget is closed.", "private", owner=ANN))
    state: Any = await retrieval.state(Scope("default", BOB), Access("default", BOB), "c1")
    assert [entry["documentId"] for entry in state["retrievedContexts"] if entry["documentId"] == "budget.md"] == []
    assert all(one["documentId"] != "budget.md" for one in state["contexts"])
    after = await retrieval.ask(replace(asked, conversation=None))
    assert "budget.md" not in found_in(after)
    assert after.cached is False


@ON_EVERY_DATABASE
async def test_a_deleted_document_leaves_nothing_in_the_checkpoints_of_those_who_read_it(
    retrieval: Retrieval, url: str
) -> None:
    words = "The telescope mirror has a budget of nine violet florins."
    await fill(url, document("budget.md", words, "shared", owner=ANN, readers=(BOB,)))
    reading, asked = Access("default", BOB), question("telescope mirror budget", user=BOB, conversation="c1")
    for again in (asked, asked, replace(asked, query="Which mirror?")):
        assert "budget.md" in found_in(await retrieval.ask(again))
    state: Any = await retrieval.state(Scope("default", BOB), reading, "c1")
    assert {one["content"] for one in state["contexts"] if one["documentId"] == "budget.md"} == {words}
    assert {one["content"] for one in state["retrievedContexts"] if one["documentId"] == "budget.md"} == {words}
    async with open_knowledge(url, SETTINGS) as knowledge:
        assert await knowledge.store.remove("default", "budget.md")
    state = await retrieval.state(Scope("default", BOB), reading, "c1")
    assert "budget.md" not in {one["documentId"] for one in (*state["contexts"], *state["retrievedContexts"])}
    async with ThreadkeepSaver.from_url(url, user=BOB) as saver:
        stored = [one async for one in saver.alist({"configurable": {"thread_id": "c1"}})]
    assert len(stored) == 3
    assert "florins" not in str(stored)
    assert "telescope mirror budget" in str(stored), "the question is theirs, and stays"


@ON_EVERY_DATABASE
async def test_a_question_in_nearly_the_same_words_is_answered_from_the_cache(retrieval: Retrieval) -> None:
    first = await retrieval.ask(question("What is retrieval-augmented generation?"))
    second = await retrieval.ask(question("What exactly is retrieval-augmented generation?", conversation="c1"))
    assert (first.cached, second.cached) == (False, True)
    assert found_in(second) == found_in(first)
    assert second.metrics["cacheHitRate"] == 1.0
    state: Any = await retrieval.state(ME, Access("default", ANN), "c1")
    assert len(state["queries"]) == 1, "a hit is history too"


@ON_EVERY_DATABASE
async def test_a_cached_answer_falls_when_its_document_changes_and_when_it_is_not_wanted(
    retrieval: Retrieval, url: str
) -> None:
    asked = question("What is retrieval-augmented generation?")
    await retrieval.ask(asked)
    assert (await retrieval.ask(asked)).cached is True
    assert (await retrieval.ask(replace(asked, use_cache=False))).cached is False
    await fill(url, document("rag.md", f"{RAG} It was improved."))
    assert (await retrieval.ask(asked)).cached is False


ALIKE_TO_THE_OFFLINE_EMBEDDER = pytest.mark.parametrize(
    ("early", "late", "asked"),
    [
        ("早餐", "晚餐", "請問在飯店的餐廳裡{}是幾點開始供應的？"),
        ("bữa sáng", "bữa tối", "Xin cho hỏi khách sạn có phục vụ {} miễn phí cho khách không?"),
    ],
    ids=["zh-Hant", "vi"],
)


@ALIKE_TO_THE_OFFLINE_EMBEDDER
async def test_another_question_is_not_answered_from_the_cache_in_a_language_the_embedder_does_not_know(
    url: str, early: str, late: str, asked: str
) -> None:
    await fill(url, document("early.md", f"{early}: 07:00–10:00"), document("late.md", f"{late}: 18:00–21:00"))
    async with open_retrieval(url, SETTINGS) as opened, open_knowledge(url, SETTINGS) as knowledge:
        for who in (opened, knowledge):
            answers = [await first_of(who, asked.format(meal)) for meal in (early, late)]
            assert answers == ["early.md", "late.md"]
        assert (await opened.ask(question(asked.format(late)))).cached, "the same again"


async def first_of(who: Retrieval | Knowledge, query: str) -> str:
    if isinstance(who, Retrieval):
        return found_in(await who.ask(question(query)))[0]
    return (await who.ask(Access("default", ANN), query)).hits[0].document_id


@ON_EVERY_DATABASE
async def test_an_answer_from_the_cache_has_the_order_that_the_reranker_gave_it(url: str) -> None:
    async def the_other_way_round(_: str, rows: Sequence[Ranked]) -> Sequence[Ranked]:
        return rows[::-1]

    asked = question("How does RAG combine search passages and a language model?")
    async with open_retrieval(url, SETTINGS, OwnParts(rerank=the_other_way_round)) as opened:
        first, again = await opened.ask(asked), await opened.ask(asked)
    assert again.cached
    assert found_in(again) == found_in(first) == ["how.md", "rag.md"]


class Broken:
    """Anybody's code: raises what it likes."""

    name, dimensions = "test:broken", 256

    async def embed(self, texts: Any) -> Any:
        raise EmbedderUnavailable("away")

    async def close(self) -> None: ...

    async def read(self, place: Any) -> Any:
        raise RuntimeError("the cache burns")

    async def __call__(self, *_: Any) -> Any:
        raise ZeroDivisionError("no")


async def test_a_failing_reranker_and_rewriter_cost_no_answer(url: str) -> None:
    async with open_retrieval(url, SETTINGS, OwnParts(rerank=Broken(), complete=Broken())) as opened:
        await opened.ask(question("What is RAG?", conversation="c1"))
        result = await opened.ask(question("How does it work?", conversation="c1"))
    assert found_in(result)[0] == "how.md"
    assert result.metrics["doneWithout"] == ["rewriter", "reranker"]
    assert result.metrics["enriched"] is True, "by rule"


async def test_a_failing_cache_costs_no_answer(url: str) -> None:
    async with open_retrieval(url, SETTINGS) as opened:
        opened._parts = replace(opened._parts, cache=SemanticCache(Broken()))  # type: ignore[arg-type]
        result = await opened.ask(question("What is RAG?"))
    assert "rag.md" in found_in(result)
    assert set(result.metrics["doneWithout"]) == {"cache"}


ERASED = pytest.mark.parametrize("erased", [ME, ME.with_conversation("c1")], ids=["user", "conversation"])


@ON_EVERY_DATABASE
@ERASED
async def test_a_first_question_that_is_erased_while_it_is_answered_stays_erased(url: str, erased: Scope) -> None:
    async with open_memory(url) as memory:

        async def erasing(_: str, rows: Sequence[Ranked]) -> Sequence[Ranked]:
            await memory.erase(erased)
            return rows

        async with open_retrieval(url, SETTINGS, OwnParts(rerank=erasing)) as opened:
            with pytest.raises(ScopeErased):
                await opened.ask(question("What is RAG?", conversation="c1"))
            assert await opened.state(ME, Access("default", ANN), "c1") is None
        assert (await memory.erase(ME)).stores["checkpoints"].found == 0
        async with open_retrieval(url, SETTINGS) as opened:
            after = await opened.ask(question("What is RAG?", conversation="c1"))
    assert after.metrics["queryCount"] == 1, "whoever asks from now on begins anew"


@pytest.mark.parametrize("url", ["postgres", "mariadb"], indirect=True)
@ERASED
async def test_a_first_question_that_is_erased_while_a_server_stores_it_stays_erased(
    url: str, erased: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_memory(url) as memory, open_retrieval(url, SETTINGS) as opened:
        put = DatabaseCheckpoints._put

        async def erased_meanwhile(store: DatabaseCheckpoints, putting: Any) -> None:
            await memory.erase(erased)
            await put(store, putting)

        monkeypatch.setattr(DatabaseCheckpoints, "_put", erased_meanwhile)
        with pytest.raises(ScopeErased):
            await opened.ask(question("What is RAG?", conversation="c1"))
        assert (await memory.erase(ME)).stores["checkpoints"].found == 0


@ERASED
async def test_a_question_that_lost_a_race_is_not_asked_again_once_it_is_erased(
    url: str, erased: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_memory(url) as memory, open_retrieval(url, SETTINGS) as winner:
        tries = 0

        async def overtaken(_: str, rows: Sequence[Ranked]) -> Sequence[Ranked]:
            await winner.ask(question("What is bread?", conversation="c1"))
            return rows

        async with open_retrieval(url, SETTINGS, OwnParts(rerank=overtaken)) as opened:
            run = opened._run

            async def erasing_before_the_second_try(*given: Any) -> Any:
                nonlocal tries
                tries += 1
                if tries == 2:
                    await memory.erase(erased)
                    opened._parts = replace(opened._parts, rerank=None)
                return await run(*given)

            monkeypatch.setattr(opened, "_run", erasing_before_the_second_try)
            with pytest.raises(ScopeErased):
                await opened.ask(question("What is RAG?", conversation="c1"))
        assert tries == 2
        assert (await memory.erase(ME)).stores["checkpoints"].found == 0


async def test_a_model_rewrites_the_follow_up_where_there_is_one(url: str) -> None:
    prompts: list[str] = []

    async def complete(prompt: str) -> str:
        prompts.append(prompt)
        return " In which two steps does RAG work? "

    async with open_retrieval(url, SETTINGS, OwnParts(complete=complete)) as opened:
        await opened.ask(question("What is RAG?", conversation="c1"))
        assert prompts == [], "the first question is not rewritten"
        result = await opened.ask(question("How does it work? I am an@example.com", conversation="c1"))
        state: Any = await opened.state(ME, Access("default", ANN), "c1")
    assert result.metrics["rewritten"] is True
    assert found_in(result)[0] == "how.md"
    assert "Current query: How does it work? I am [REDACTED:EMAIL]" in prompts[0]
    assert state["queries"][1]["query"] == "How does it work? I am [REDACTED:EMAIL]"


@pytest.mark.parametrize("top_k", [0, 51, -1, True, 1.5, "10"], ids=repr)
async def test_a_top_k_out_of_bounds_is_told(retrieval: Retrieval, top_k: Any) -> None:
    with pytest.raises(InvalidInput) as told:
        await retrieval.ask(question("What is RAG?", top_k=top_k))
    assert told.value.field == "topK"


async def test_an_empty_question_and_an_endless_one_are_told(retrieval: Retrieval) -> None:
    with pytest.raises(InvalidInput, match="query: is empty"):
        await retrieval.ask(question("  "))
    with pytest.raises(TooLarge, match="query"):
        await retrieval.ask(question("x" * 100_000))
    with pytest.raises(InvalidInput, match="conversation"):
        await retrieval.ask(question("What is RAG?", conversation="a\x00b"))


async def test_a_secret_stays_with_its_owner_even_in_words_of_the_conversation(retrieval: Retrieval) -> None:
    await retrieval.ask(question("director salary", conversation="c1"))
    state: Any = await retrieval.state(ME, Access("default", "eve"), "c1")
    assert SECRET not in str(state["retrievedContexts"]) + str(state["contexts"])


async def test_the_conversations_row_tells_what_was_asked_and_read(url: str, tmp_path: Path) -> None:
    async with open_retrieval(url, SETTINGS) as opened:
        await opened.ask(question("What is RAG?", conversation="c1", top_k=1))
        await opened.ask(question("director salary moon crowns", conversation="c1", top_k=1))
    row = "SELECT thread_id, user_id, first_query, query_count, context_count, datasource_ids, access_level"
    (told,) = rows_of(tmp_path / "tk.db", f"{row} FROM conversation_metadata")
    assert told[:5] == ("c1", ANN, "What is RAG?", 2, 2)
    assert set(json.loads(told[5])) == {"docs", "club"}
    assert told[6] == "mixed"


def rows_of(path: Path, statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement).fetchall()


async def test_loading_history_changes_nothing_and_logs_how_much_there_was(
    retrieval: Retrieval, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "threadkeep.retrieval")
    await retrieval.ask(question("What is RAG?", conversation="c1"))
    await retrieval.ask(question("How does it work?", conversation="c1"))
    runtime: Any = SimpleNamespace(context=Turn(retrieval._parts, question("x", conversation="c1")))
    assert await load_history({}, runtime) == {}
    assert "loaded 0 earlier queries of conversation c1" in caplog.text
    assert "loaded 1 earlier queries of conversation c1" in caplog.text
    assert "RAG" not in caplog.text


async def test_nothing_is_saved_where_nothing_was_asked(retrieval: Retrieval) -> None:
    runtime: Any = SimpleNamespace(context=Turn(retrieval._parts, question("  ", conversation="c1")))
    assert await save_history({}, runtime) == {}


async def test_a_follow_up_looks_at_no_more_than_three_contexts_cut_short(url: str) -> None:
    long = [document(f"long{number}.md", f"Comet number {number}. " + "Dust and ice. " * 40) for number in range(6)]
    await fill(url, *long)
    prompts: list[str] = []

    async def complete(prompt: str) -> str:
        prompts.append(prompt)
        return "What are comets made of?"

    async with open_retrieval(url, SETTINGS, OwnParts(complete=complete)) as opened:
        await opened.ask(question("Which comet is made of dust and ice?", conversation="c1"))
        await opened.ask(question("What else?", conversation="c1"))
    recent = prompts[0].split("Recent context:\n")[1].split("\n\nCurrent query")[0].splitlines()
    assert len(recent) == 3
    assert all(len(line) <= len("- ") + 150 + len("...") for line in recent)
