"""The reducers of the retrieval graph's state."""

from itertools import pairwise

from threadkeep.agent.retrieval import NODES, retrieval_graph
from threadkeep.agent.retrieval_steps import rewriting_prompt, rewritten_query
from threadkeep.agent.retrieval_turn import (
    documents_in,
    kept_if_absent,
    last,
    merged,
    mixed,
    replaced,
    united,
    with_documents,
)


def test_lists_grow_at_the_end_and_the_oldest_makes_room() -> None:
    assert last(3)([1, 2], [3]) == [1, 2, 3]
    assert last(3)([1, 2, 3], [4, 5]) == [3, 4, 5]
    assert last(3)(None, [1]) == [1]


def test_what_is_absent_keeps_the_old_value() -> None:
    assert kept_if_absent("old", None) == "old"
    assert kept_if_absent("old", "new") == "new"


def test_datasources_are_a_set_in_the_order_of_their_first_appearance() -> None:
    assert united(["b", "a"], ["a", "c"]) == ["b", "a", "c"]


def test_results_of_a_turn_replace_and_metrics_are_merged() -> None:
    assert replaced([1], [2]) == [2]
    assert merged({"a": 1, "b": 1}, {"b": 2}) == {"a": 1, "b": 2}


def test_a_conversation_that_has_read_both_kinds_stays_mixed() -> None:
    assert mixed(None, "public") == "public"
    assert mixed("public", None) == "public"
    assert mixed("public", "private") == "mixed"
    assert mixed("mixed", "public") == "mixed"


def test_the_graph_has_its_nodes_and_edges_in_order() -> None:
    drawn = retrieval_graph().compile().get_graph()
    edges = {(edge.source, edge.target, edge.data) for edge in drawn.edges}
    names = list(NODES)
    straight = {(a, b, None) for a, b in pairwise(names) if a != "checkCache"}
    assert edges == straight | {
        ("__start__", "loadHistory", None),
        ("checkCache", "saveHistory", "hit"),
        ("checkCache", "analyzeQuery", "miss"),
        ("updateCache", "__end__", None),
    }
    assert names == [
        "loadHistory", "enrichQuery", "checkCache", "analyzeQuery", "buildAccessFilter", "hybridRetrieval", "fusion",
        "rerank", "enrich", "saveHistory", "updateCache",
    ]  # fmt: skip


def test_a_model_is_told_the_last_three_queries_and_the_beginnings_of_three_contexts() -> None:
    prompt = rewriting_prompt("How does it work?", ["one", "two", "three", "four"], ["x" * 200, "b", "c", "d"])
    assert prompt == (
        "Given the conversation history and current query, rewrite the query to be more specific and contextual.\n\n"
        "Previous queries:\n- two\n- three\n- four\n\n"
        f"Recent context:\n- {'x' * 150}...\n- b...\n- c...\n\n"
        "Current query: How does it work?\n\nRewritten query:"
    )


def test_a_rewritten_query_is_trimmed_and_nothing_or_a_treatise_is_none() -> None:
    assert rewritten_query("  How does RAG work? \n", "it?") == "How does RAG work?"
    assert rewritten_query(" \n", "it?") == "it?"
    assert rewritten_query("x" * 5_000, "it?") == "it?"


def test_documents_are_counted_once_in_pages_of_which_only_the_last_changes() -> None:
    pages: list[bytes] = []
    for number in range(300):
        before = pages
        pages = with_documents(pages, [f"d{number}", f"d{number // 2}"])
        assert pages[: len(before) - 1] == before[:-1]
    assert documents_in(pages) == 300
    assert with_documents(pages, ["d7", "d299"]) == pages
