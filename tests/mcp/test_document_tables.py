"""Tables that an application made by the retrieval design's own migration: Threadkeep goes on with them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.adapters.database import every_value, rows, tables
from tests.contract.sql_statements import execute
from tests.mcp.document_tables import MIGRATION, checkpoint, conversation, enriched, state
from tests.mcp.library import RAG, SETTINGS, document, fill, found_in, question
from tests.servers.server import Server
from threadkeep.adapters.langgraph import ThreadkeepSaver
from threadkeep.archive.sql import taking_over
from threadkeep.compose.retrieval import open_retrieval
from threadkeep.errors import StoreRefused

TALK = "ba971ddd-9344-437e-b846-3ea1de5cbcd8"
PHONE = "+48 601 234 567"


@pytest.fixture
async def url(mariadb_server: Server) -> str:
    await asyncio.to_thread(mariadb_server.wipe)
    for table in await tables(mariadb_server.url):
        await execute(mariadb_server.url, "SET foreign_key_checks = 0", f"DROP TABLE IF EXISTS {table}")
    await execute(mariadb_server.url, *MIGRATION)
    return mariadb_server.url


async def asked(url: str, query: str, conversation: str, user: str = "ann") -> Any:
    await fill(url)
    async with open_retrieval(url, SETTINGS) as retrieval:
        return await retrieval.ask(question(query, user, conversation=conversation))


async def values_of(url: str, thread: str, user: str) -> dict[str, Any]:
    async with ThreadkeepSaver.from_url(url, user=user, settings=SETTINGS) as saver:
        found = await saver.aget_tuple({"configurable": {"thread_id": thread}})
    return dict(found.checkpoint["channel_values"]) if found else {}


async def test_a_follow_up_goes_on_from_what_was_asked_before(url: str) -> None:
    """Ids as LangGraph's JavaScript makes them; a follow-up was stored with all that it had been searched with."""
    queries = ["What is RAG?", enriched("How does it help accuracy?", "What is RAG?")]
    await execute(
        url,
        conversation(TALK, "ann", queries[0], 2),
        checkpoint(TALK, "1f0c1401-7a3c-6a10-8000-5b3c2d1e0f00", state(queries[0])),
        checkpoint(TALK, "1f0c1402-7a3c-6a10-8001-5b3c2d1e0f00", state(*queries), at="2025-11-14 10:02:30"),
    )
    answer = await asked(url, "How does it work?", TALK)
    assert answer.metrics["queryCount"] == 3
    assert answer.metrics["uniqueDocuments"] == 2 + len({*found_in(answer)})
    assert "rag" in answer.metrics["enrichedWith"]
    assert found_in(answer)[0] == "how.md"

    values = await values_of(url, TALK, "ann")
    assert [one["query"] for one in values["queries"]] == [
        "What is RAG?",
        "How does it help accuracy?",
        "How does it work?",
    ]
    assert {"doc-0", "doc-1", "how.md"} <= {one["documentId"] for one in values["retrievedContexts"]}
    assert (await asked(url, "Does it name them?", TALK)).metrics["queryCount"] == 4


async def test_what_a_conversation_has_read_stays_noted_after_its_next_turn(url: str) -> None:
    """A conversation that read private documents must not be labelled public by one more question."""
    noted = """UPDATE conversation_metadata SET datasource_ids = '["ds-1", "ds-2"]', access_level = 'mixed'"""
    made = checkpoint(TALK, "1f0c1401-7a3c-6a10-8000-5b3c2d1e0f00", state("What is RAG?"))
    await execute(url, conversation(TALK, "ann", "What is RAG?", 1), noted, made)
    await asked(url, "How does it work?", TALK)
    values = await values_of(url, TALK, "ann")
    assert {"ds-1", "ds-2"} < {*values["datasourceIds"]}
    assert values["accessLevel"] == "mixed"
    assert await rows(url, "SELECT access_level FROM conversation_metadata") == [("mixed",)]


async def test_queries_and_contexts_are_read_and_the_rest_is_ignored(url: str) -> None:
    await execute(url, conversation(TALK, "ann", "What is RAG?", 1), checkpoint(TALK, "cp", state("What is RAG?")))
    values = await values_of(url, TALK, "ann")
    assert [(one["query"], one["topK"], one["timestamp"]) for one in values["queries"]] == [
        ("What is RAG?", 10, "2025-11-14T10:00:00Z")
    ]
    assert [(one["documentId"], one["parentChunkId"], one["queryIndex"]) for one in values["retrievedContexts"]] == [
        ("doc-0", "chunk-0", 0)
    ]
    assert values["retrievedContexts"][0]["content"] == "RAG combines retrieval with generation..."
    assert not [value for value in await every_value(url) if b"anything" in value]


async def test_the_newest_checkpoint_is_the_latest_whatever_its_id(url: str) -> None:
    """A new checkpoint's id begins with the time: an old one that is any text must not stand behind it for ever."""
    await execute(
        url,
        checkpoint("t", "z-first", state("One?", user="ann")),
        checkpoint("t", "a-second", state("One?", "What is RAG?", user="ann"), at="2025-11-14 10:05:00"),
    )
    assert (await asked(url, "How does it work?", "t")).metrics["queryCount"] == 3
    assert (await asked(url, "And then?", "t")).metrics["queryCount"] == 4


async def test_a_blob_that_is_a_bare_state_or_none_at_all_is_no_obstacle(url: str) -> None:
    await execute(
        url,
        checkpoint("bare", "1", json.dumps(state("What is RAG?", user="ann"))),
        checkpoint("broken", "1", '{"queries": ['),
        conversation("broken", "ann", "Who?", 1),
        conversation("empty", "ann", "Who?", 0),
    )
    assert (await asked(url, "How does it work?", "bare")).metrics["queryCount"] == 2
    for thread in ("broken", "empty"):
        assert (await asked(url, "What is RAG?", thread)).metrics["queryCount"] == 1


async def test_each_conversation_is_its_users_by_the_byte(url: str) -> None:
    """Under the old collation `Ann` and `ann` were one name. Whoever called without a credential has a name now."""
    await execute(
        url,
        conversation("t1", "Ann", "What is RAG?", 1),
        checkpoint("t1", "1", state("What is RAG?")),
        conversation("t2", None, "What is RAG?", 1),
        checkpoint("t2", "1", state("What is RAG?")),
    )
    assert await values_of(url, "t1", "ann") == {}
    assert await values_of(url, "T1", "Ann") == {}
    assert "queries" in await values_of(url, "t1", "Ann")
    assert "queries" in await values_of(url, "t2", "default")
    query = "SELECT collation_name FROM information_schema.columns WHERE table_schema = DATABASE()"
    found = await rows(url, f"{query} AND table_name LIKE 'conversation%' AND collation_name IS NOT NULL")
    assert {str(one) for (one,) in found} == {"utf8mb4_bin"}


async def test_what_was_counted_and_when_it_was_stays(url: str) -> None:
    await execute(url, conversation(TALK, "ann", "What is RAG?", 1), checkpoint(TALK, "1", state("What is RAG?")))
    times = "UNIX_TIMESTAMP(started_at), UNIX_TIMESTAMP(last_activity_at), expired_at"
    before = await rows(url, f"SELECT {times} FROM conversation_metadata")
    made = await rows(url, "SELECT UNIX_TIMESTAMP(created_at) FROM conversation_checkpoints")
    async with ThreadkeepSaver.from_url(url, user="ann", settings=SETTINGS) as saver:
        told = await saver.aget_conversation_metadata(TALK)
    assert told is not None
    assert (told.first_query, told.query_count, told.context_count) == ("What is RAG?", 1, 1)
    assert (told.datasource_ids, told.access_level, told.unique_documents) == (("ds-1",), "private", 1)
    assert await rows(url, f"SELECT {times} FROM conversation_metadata") == before
    assert await rows(url, "SELECT UNIX_TIMESTAMP(created_at) FROM conversation_checkpoints") == made


async def test_answers_from_the_cache_are_counted_once_for_each_query(url: str) -> None:
    """A graph stores a checkpoint after each of its steps: `cached` stays true in those that follow, and is the next
    query's before that query stands in the list."""
    one, two, three = "What is RAG?", "What is RAG ?", "How does it work?"
    steps = [((one,), False), ((one,), True), ((one, two), True), ((one, two), True), ((one, two), False)]
    for number, (queries, cached) in enumerate([*steps, ((one, two, three), False)]):
        at = f"2025-11-14 10:00:0{number}"
        await execute(url, checkpoint(TALK, f"step-{number}", state(*queries, user="ann", cached=cached), at=at))
    async with ThreadkeepSaver.from_url(url, user="ann", settings=SETTINGS) as saver:
        stats = await saver.aget_conversation_stats(TALK)
    assert stats is not None
    assert (stats.query_count, stats.cache_hit_rate) == (3, 1 / 3)
    assert (await values_of(url, TALK, "ann"))["counts"]["cacheHits"] == 1
    answer = await asked(url, "Does it name its sources?", TALK)
    assert (answer.metrics["queryCount"], answer.metrics["cacheHitRate"]) == (4, 0.25)
    assert answer.metrics["uniqueDocuments"] == 3 + len({*found_in(answer)})


async def test_personal_data_in_old_queries_is_masked_and_no_table_of_before_is_left(url: str) -> None:
    query = f"Who has the number {PHONE}?"
    await execute(url, conversation(TALK, "ann", query, 1), checkpoint(TALK, "1", state(query)))
    values = await values_of(url, TALK, "ann")
    assert values["queries"][0]["query"].startswith("Who has the number [REDACTED")
    assert not [value for value in await every_value(url) if b"601 234 567" in value]
    assert not [name for name in await tables(url) if "former" in name]


async def test_taking_over_that_was_cut_short_goes_on(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = [f"t{number}" for number in range(3)]
    for thread in threads:
        await execute(
            url, conversation(thread, "ann", "What is RAG?", 1), checkpoint(thread, "1", state("What is RAG?"))
        )
    took: list[str] = []
    whole = taking_over._move_checkpoint  # pyright: ignore[reportPrivateUsage]

    def cut_short(*given: Any) -> None:
        whole(*given)
        took.append(given[1]["id"])
        if len(took) == 2:
            raise StoreRefused("killed")

    with monkeypatch.context() as patched:
        patched.setattr(taking_over, "_move_checkpoint", cut_short)
        with pytest.raises(StoreRefused, match="killed"):
            await values_of(url, "t0", "ann")
    for thread in threads:
        assert "queries" in await values_of(url, thread, "ann")
    assert await rows(url, "SELECT count(*) FROM conversation_checkpoints") == [(3,)]


async def test_tables_with_columns_of_the_applications_own_are_left_and_named(url: str) -> None:
    await execute(url, "ALTER TABLE conversation_metadata ADD COLUMN team VARCHAR(20)")
    with pytest.raises(StoreRefused, match=r"conversation_metadata .*team"):
        await values_of(url, "t", "ann")
    assert len(await tables(url)) == 2


@pytest.mark.parametrize("table", ["conversation_checkpoints", "conversation_metadata"])
async def test_a_thread_is_found_by_an_index(url: str, table: str) -> None:
    """As the design's services ask: `WHERE thread_id = ?`."""
    for number in range(20):
        await execute(url, checkpoint(f"t{number}", "1", state("What is RAG?", user="ann")))
    await fill(url, document("rag.md", RAG))
    told = await rows(url, f"EXPLAIN SELECT * FROM {table} WHERE thread_id = 't7'")
    (_, _, _, kind, possible, key, *_) = told[0]
    assert kind in ("ref", "const"), told
    assert str(key).startswith("idx_thread"), (possible, told)
