"""What is counted of a thread: queries, contexts, documents, cache hits, since when; and who may read it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from tests.adapters.database import rows
from tests.adapters.test_langgraph_storage import chat_graph
from tests.adapters.verbs import Open, Verbs, thread, verbs_of
from tests.servers.server import Server
from threadkeep.adapters.langgraph import ThreadkeepSaver
from threadkeep.ports.threads import ConversationMetadata, ConversationStats, stats_of
from threadkeep.settings import Settings

KEY = b"0123456789abcdef"


def entry(query: str, index: int) -> dict[str, Any]:
    return {"query": query, "timestamp": "2026-11-15T10:00:00Z", "topK": 10, "queryIndex": index}


def context(document: str, index: int) -> dict[str, Any]:
    return {"parentChunkId": f"{document}#0", "documentId": document, "content": "…", "score": 1.0, "queryIndex": index}


async def test_a_retrieval_state_is_counted(saver: Verbs, user: str) -> None:
    state: dict[str, Any] = {"queries": [], "retrievedContexts": [], "cached": False}
    config = thread("t")
    for index, (documents, cached) in enumerate(((("a", "b"), False), (("b", "c"), False), ((), True))):
        state["queries"] = [*state["queries"], entry(f"query {index}", index)]
        new = [context(document, index) for document in documents]
        state["retrievedContexts"] = [*state["retrievedContexts"], *new]
        state |= {"cached": cached, "datasourceIds": ["ds-1", "ds-2"][: index + 1], "accessLevel": "mixed"}
        config = await saver.put(config, {**state})
        config = await saver.put(config, {**state, "step": index})  # the same conversation: nothing is counted twice
    told = await saver.call("get_conversation_metadata", "t")
    assert (told.thread_id, told.user_id, told.first_query) == ("t", user, "query 0")
    assert (told.query_count, told.context_count, told.cache_hits, told.unique_documents) == (3, 4, 1, 3)
    assert (told.datasource_ids, told.access_level, told.expired_at) == (("ds-1", "ds-2"), "mixed", None)
    assert told.started_at <= told.last_activity_at
    stats = await saver.call("get_conversation_stats", "t")
    assert stats == ConversationStats("t", 3, 4 / 3, 3, stats.duration_minutes, 1 / 3)
    assert stats.duration_minutes >= 0


async def test_a_conversation_lasts_until_its_latest_question(saver: Verbs) -> None:
    config = await saver.put(thread("t"), {"messages": [HumanMessage("one")]})
    await asyncio.sleep(0.01)
    await saver.put(config, {"messages": [HumanMessage("one"), AIMessage("two"), HumanMessage("three")]})
    assert (await saver.call("get_conversation_stats", "t")).duration_minutes >= 0.01 / 60


async def test_counts_that_a_state_keeps_itself_are_believed(saver: Verbs) -> None:
    counts = {"queryCount": 40, "contextCount": 120, "cacheHits": 10, "documents": 7}
    await saver.put(thread("t"), {"queries": [entry("the last one", 39)], "counts": counts, "firstQuery": "the first"})
    stats = await saver.call("get_conversation_stats", "t")
    assert (stats.query_count, stats.avg_contexts_per_query, stats.cache_hit_rate) == (40, 3.0, 0.25)
    assert (await saver.call("get_conversation_metadata", "t")).first_query == "the first"


async def test_the_messages_of_a_chat_are_counted_and_the_first_is_redacted(saver: Verbs, mode: str) -> None:
    graph = chat_graph(saver.saver, lambda state: {"messages": [AIMessage("yes")]})
    for text in ("write to ann@example.org", "and then", "thanks"):
        given = {"messages": [HumanMessage(text)]}
        await graph.ainvoke(given, thread("t")) if mode == "async" else graph.invoke(given, thread("t"))
    told = await saver.call("get_conversation_metadata", "t")
    assert (told.query_count, told.context_count) == (3, 0)
    assert told.first_query == "write to [REDACTED:EMAIL]"


async def test_questions_are_counted_also_where_a_message_has_become_another(saver: Verbs) -> None:
    state = [HumanMessage("one"), AIMessage("two"), HumanMessage("three"), AIMessage("four")]
    config = await saver.put(thread("t"), {"messages": state[:3]})
    config = await saver.put(config, {"messages": state})
    config = await saver.put(config, {"messages": [*state, HumanMessage("five")]})
    assert (await saver.call("get_conversation_metadata", "t")).query_count == 3
    state[1] = HumanMessage("instead of two")
    await saver.put(config, {"messages": [*state, HumanMessage("five"), HumanMessage("six")]})
    assert (await saver.call("get_conversation_metadata", "t")).query_count == 5


async def test_a_thread_that_another_process_began_is_counted_at_once(open_saver: Open) -> None:
    config = await (await open_saver()).put(thread("t"), {"messages": [HumanMessage("one"), AIMessage("two")]})
    other = await open_saver()
    await other.put(config, {"messages": [HumanMessage("one"), AIMessage("two"), HumanMessage("three")]})
    assert (await other.call("get_conversation_metadata", "t")).query_count == 2


async def test_a_channel_is_counted_that_only_its_version_calls_new(saver: Verbs) -> None:
    config = await saver.put(thread("t"), {"messages": [HumanMessage("one")]}, new=[])
    assert (await saver.call("get_conversation_metadata", "t")).query_count == 1
    await saver.put(config, {"messages": [HumanMessage("one"), HumanMessage("two")]}, new=[])
    assert (await saver.call("get_conversation_metadata", "t")).query_count == 2


@pytest.mark.parametrize("how", ["restored", "begun anew"])
async def test_questions_are_counted_in_a_thread_that_was_deleted_elsewhere(open_saver: Open, how: str) -> None:
    """What was told of the thread before does not hold any more."""
    saver, other = await open_saver(), await open_saver()
    asked = [HumanMessage(f"question {number} " * 10, id=str(number)) for number in range(4)]
    config = await saver.put(thread("t"), {"messages": asked[:1]})
    await saver.call("copy_thread", "t", "backup")
    await saver.put(config, {"messages": asked[:2]})
    await other.call("delete_thread", "t")
    if how == "restored":
        await other.call("copy_thread", "backup", "t")
    else:
        await other.put(thread("t"), {"messages": asked[:1]})
    found = await saver.get(thread("t"))
    assert found is not None
    await saver.put(found.config, {"messages": [asked[0], asked[3]]})
    assert (await saver.call("get_conversation_metadata", "t")).query_count == 2


async def test_the_first_query_is_the_first_that_has_words(saver: Verbs) -> None:
    picture = HumanMessage([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}])
    state = [picture, AIMessage("nice")]
    config = await saver.put(thread("t"), {"messages": state})
    assert (await saver.call("get_conversation_metadata", "t")).first_query is None
    for said in ("what is it?", "and that?"):
        state = [*state, HumanMessage(said)]
        config = await saver.put(config, {"messages": state})
    told = await saver.call("get_conversation_metadata", "t")
    assert (told.first_query, told.query_count) == ("what is it?", 3)


async def test_a_first_query_with_a_picture_is_told_by_its_words(saver: Verbs) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    said = [{"type": "text", "text": "whose is this? ann@example.org"}, picture]
    await saver.put(thread("t"), {"messages": [HumanMessage([picture]), HumanMessage(said)]})
    told = await saver.call("get_conversation_metadata", "t")
    assert (told.query_count, told.first_query) == (2, "whose is this? [REDACTED:EMAIL]")


async def test_one_user_is_told_nothing_of_another_users_thread(open_saver: Open, user: str) -> None:
    mine, theirs = await open_saver(), await open_saver(user=f"{user}2")
    await mine.put(thread("t"), {"messages": [HumanMessage("hello")]})
    assert await theirs.call("get_conversation_metadata", "t") is None
    assert await theirs.call("get_conversation_stats", "t") is None
    assert (await mine.call("get_conversation_stats", "t")).query_count == 1


async def test_where_values_are_encrypted_only_numbers_are_told(open_saver: Open, url: str, user: str) -> None:
    saver = await open_saver(serde=EncryptedSerializer.from_pycryptodome_aes(key=KEY))
    await saver.put(thread("t"), {"queries": [entry("secret", 0)], "datasourceIds": ["secret"]})
    told = await saver.call("get_conversation_metadata", "t")
    assert (told.query_count, told.first_query, told.datasource_ids) == (1, None, ())
    columns = await rows(url, f"SELECT * FROM conversation_metadata WHERE user_id = '{user}'")
    assert "secret" not in repr(columns)


async def test_a_first_query_may_hold_any_character(saver: Verbs) -> None:
    asked = "nul \x00, lone \ud800, \x01 and 花"
    await saver.put(thread("t"), {"queries": [entry(asked, 0)], "datasourceIds": ["\x00", "\ud800"]})
    told = await saver.call("get_conversation_metadata", "t")
    assert told.first_query == asked
    assert told.datasource_ids == ("\x00", "\ud800")


async def test_odd_states_are_counted_as_far_as_they_go(saver: Verbs) -> None:
    for number, state in enumerate(
        (
            {"queries": "text", "messages": "text"},
            {"queries": [1, None], "messages": [1]},
            {"queries": [{"query": 5}], "counts": {"queryCount": -3, "cacheHits": True}, "accessLevel": "secret"},
            {"queries": [{}], "retrievedContexts": [{"documentId": 7}, 3], "datasourceIds": "ab", "counts": [1]},
        )
    ):
        config = await saver.put(thread(f"t{number}"), state)
        assert await saver.values(config) == state
        assert (await saver.call("get_conversation_stats", f"t{number}")).query_count == (number > 1)


def test_a_conversation_lasts_from_its_start_to_its_last_activity() -> None:
    begun = datetime(2026, 11, 15, 10, tzinfo=UTC)
    times = (begun, begun + timedelta(minutes=90), None)
    told = ConversationMetadata("t", "u", None, 4, 6, 1, 5, (), "public", *times)
    assert stats_of(told) == ConversationStats("t", 4, 1.5, 5, 90.0, 0.25)
    unasked = ConversationMetadata("t", "u", None, 0, 0, 0, 0, (), "public", *times)
    assert stats_of(unasked) == ConversationStats("t", 0, 0.0, 0, 90.0, 0.0)


@pytest.mark.parametrize("mode", ["async"], indirect=True)
async def test_deleting_a_thread_deletes_what_was_counted(saver: Verbs, url: str) -> None:
    await saver.put(thread("t"), {"queries": [entry("q", 0)], "retrievedContexts": [context("a", 0)]})
    before = len(await rows(url, "SELECT * FROM tk_thread_documents"))
    await saver.call("delete_thread", "t")
    assert await saver.call("get_conversation_metadata", "t") is None
    assert len(await rows(url, "SELECT * FROM tk_thread_documents")) == before - 1


async def test_times_are_told_whatever_the_servers_time_zone(mariadb_server: Server, user: str) -> None:
    began = datetime.now(UTC) - timedelta(seconds=1)
    await rows(mariadb_server.url, "SET GLOBAL time_zone = '+07:00'")
    try:
        async with ThreadkeepSaver.from_url(mariadb_server.url, user=user, settings=Settings()) as saver:
            await verbs_of(saver, "async").put(thread("t"), {"messages": [HumanMessage("chào")]})
            told = await saver.aget_conversation_metadata("t")
    finally:
        await rows(mariadb_server.url, "SET GLOBAL time_zone = DEFAULT")
    assert told is not None
    assert began < told.started_at < datetime.now(UTC)
