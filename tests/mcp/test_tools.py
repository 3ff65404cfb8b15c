"""The tools and resources, with the official SDK's client: what they do, refuse, and whose they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

import pytest
from jsonschema_specifications import REGISTRY
from mcp.shared.exceptions import MCPError

from tests.mcp.answers import TALK, connected, failure, told
from threadkeep import Scope, UserMessage, open_memory


async def test_what_is_remembered_is_recalled_and_forgotten_with_a_receipt(url: str) -> None:
    async with connected(url) as client:
        kept = told(
            await client.call_tool("remember", {"text": "I am allergic to peanuts, ann@example.com"}, meta=TALK)
        )
        assert kept["redacted"] == {"EMAIL": 1}
        found = told(await client.call_tool("recall", {"query": "peanuts"}))
        assert [hit["message_id"] for hit in found["hits"]] == kept["kept"]
        assert found["hits"][0]["content"] == "I am allergic to peanuts, [REDACTED:EMAIL]"
        shown = told(await client.call_tool("history", {}, meta=TALK))
        assert [message["id"] for message in shown["messages"]] == kept["kept"]
        receipt = told(await client.call_tool("forget", {"messageId": kept["kept"][0]}, meta=TALK))
        assert receipt["complete"] is True
        assert receipt["stores"]["archive"]["removed"] == 1
        assert told(await client.call_tool("recall", {"query": "peanuts"}))["hits"] == []


async def test_half_an_emoji_and_hidden_characters_keep_no_model_from_reading(url: str) -> None:
    async with open_memory(url) as memory:
        await memory.append(Scope("default", "ann", "c"), [UserMessage("My kayak is green \ud83d and\u202e fast")])
    async with connected(url) as client:
        (hit,) = told(await client.call_tool("recall", {"query": "kayak"}))["hits"]
        (message,) = told(await client.call_tool("history", {"conversation": "c"}))["messages"]
        listed = (await client.list_resources()).resources
        (content,) = (await client.read_resource(str(listed[0].uri))).contents
        (read,) = json.loads(content.text)["messages"]  # type: ignore[union-attr]
    assert hit["content"] == message["content"] == read["content"] == "My kayak is green  and fast"


async def test_a_text_is_forgotten_wherever_it_was_said(url: str) -> None:
    async with connected(url) as client:
        for name in ("c1", "c2"):
            await client.call_tool("remember", {"text": "She is allergic to peanuts", "conversation": name})
        receipt = told(await client.call_tool("forget", {"text": "she is ALLERGIC to peanuts"}, meta=TALK))
        assert receipt["stores"]["archive"]["removed"] == 2
        assert told(await client.call_tool("recall", {"query": "peanuts"}))["hits"] == []
        noted = {"text": "She is allergic to peanuts", "conversation": "c1"}
        assert told(await client.call_tool("remember", noted))["refused"] == {"erased": 1}
        both = await client.call_tool("forget", {"text": "peanuts", "messageId": "m1"})
        assert failure(both)["field"] == "text"


async def test_forgetting_a_conversation_takes_its_questions_along(url: str) -> None:
    async with connected(url) as client:
        await client.call_tool("retrieve", {"query": "What is RAG?"}, meta=TALK)
        receipt = told(await client.call_tool("forget", {"conversation": TALK["vscode.conversationId"]}))
        assert receipt["stores"]["checkpoints"]["removed"] > 0
        again = told(await client.call_tool("retrieve", {"query": "What is RAG?"}, meta=TALK))
        assert again["metrics"]["queryCount"] == 1


async def test_conversations_are_resources(url: str) -> None:
    async with connected(url) as client:
        await client.call_tool("remember", {"text": "Tea, please", "conversation": "c 1/ü"})
        listed = (await client.list_resources()).resources
        assert [one.name for one in listed] == ["c 1/ü"]
        (content,) = (await client.read_resource(str(listed[0].uri))).contents
        assert json.loads(content.text)["messages"][0]["content"] == "Tea, please"  # type: ignore[union-attr]
        templates = (await client.list_resource_templates()).resource_templates
        assert [one.uri_template for one in templates] == ["threadkeep://conversations/{conversation}"]
        for uri in ("threadkeep://conversations/nobody", "threadkeep://conversations/", "file:///etc/passwd"):
            with pytest.raises(MCPError, match="there is no such"):
                await client.read_resource(uri)
        with pytest.raises(MCPError, match="cursor: is not a cursor; pass the `nextCursor`"):
            await client.list_resources(cursor="none of ours")


async def test_every_tool_says_truly_what_it_does(url: str) -> None:
    async with connected(url) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    hints = {name: (tool.annotations.read_only_hint, tool.annotations.destructive_hint) for name, tool in tools.items()}  # type: ignore[union-attr]
    assert hints == {
        "retrieve": (True, False),
        "remember": (False, False),
        "recall": (True, False),
        "history": (True, False),
        "forget": (False, True),
    }
    assert all(tool.description and tool.output_schema for tool in tools.values())
    top = tools["retrieve"].input_schema["properties"]["topK"]
    assert (top["minimum"], top["maximum"], top["default"]) == (1, 50, 10)
    assert tools["retrieve"].input_schema["required"] == ["query"]


@pytest.mark.parametrize(
    ("tool", "given", "field"),
    [
        ("retrieve", {"query": "x", "topK": 0}, "topK"),
        ("retrieve", {"query": "x", "topK": 51}, "topK"),
        ("retrieve", {"query": "x", "topK": "ten"}, "topK"),
        ("retrieve", {"query": "x", "topK": 5.5}, "topK"),
        ("retrieve", {"query": "a\u0000b"}, "query"),
        ("recall", {"query": "a\u0000b"}, "query"),
        ("retrieve", {"query": ""}, "query"),
        ("retrieve", {"query": "   "}, "query"),
        ("retrieve", {"query": "x" * 100_000}, "query"),
        ("retrieve", {}, "query"),
        ("retrieve", {"query": "x", "user": "eve"}, "user"),
        ("remember", {"text": "x", "role": "user"}, "role"),
        ("remember", {"text": "x", "conversation": "a\u0000b"}, "conversation"),
        ("remember", {"text": "x" * 2_000_000}, "text"),
        ("forget", {}, "messageId"),
        ("history", {"limit": 0}, "limit"),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, str) else None,
)
async def test_bad_input_names_its_field_and_the_server_lives_on(
    url: str, tool: str, given: dict[str, Any], field: str
) -> None:
    async with connected(url) as client:
        error = failure(await client.call_tool(tool, given))
        assert error["field"] == field
        assert "xxxxx" not in str(error)
        assert told(await client.call_tool("recall", {"query": "still there?"}))["hits"] == []


async def test_a_whole_number_may_be_written_with_a_point(url: str) -> None:
    async with connected(url) as client:
        found = told(await client.call_tool("retrieve", {"query": "What is RAG?", "topK": 1.0}))
        assert len(found["contexts"]) == 1
        assert told(await client.call_tool("history", {"limit": 5.0, "conversation": "c"}))["messages"] == []


async def test_a_forged_conversation_id_and_an_unknown_tool_are_told(url: str) -> None:
    async with connected(url) as client:
        for forged in ("a\u0007b", "x" * 300, 7, {"id": 1}):
            given: Any = {"vscode.conversationId": forged}
            error = failure(await client.call_tool("retrieve", {"query": "x"}, meta=given))
            assert error["field"] == "_meta.vscode.conversationId"
        assert failure(await client.call_tool("drop_tables", {}))["field"] == "name"


async def test_a_foreign_conversation_id_is_a_new_conversation_of_ones_own(url: str) -> None:
    async with connected(url) as ann, connected(url, "bob") as bob:
        await ann.call_tool("remember", {"text": "The key is under the mat"}, meta=TALK)
        await ann.call_tool("retrieve", {"query": "director salary"}, meta=TALK)
        assert told(await bob.call_tool("history", {}, meta=TALK))["messages"] == []
        assert told(await bob.call_tool("recall", {"query": "key under the mat"}))["hits"] == []
        mine = told(await bob.call_tool("retrieve", {"query": "director salary"}, meta=TALK))
        assert mine["metrics"]["queryCount"] == 1
        assert "salary.md" not in str(mine["contexts"])


async def test_an_empty_conversation_id_is_none(url: str) -> None:
    """Clients fill what they do not know with an empty string, in `_meta` and in a tool's arguments alike."""
    nowhere: Any = {"vscode.conversationId": ""}
    async with connected(url) as client:
        asked = told(await client.call_tool("retrieve", {"query": "What is RAG?"}, meta=nowhere))
        assert asked["metrics"]["conversationId"] is None
        noted = told(await client.call_tool("remember", {"text": "Tea, please", "conversation": ""}, meta=nowhere))
        assert noted["conversation"] == "notes"
        (hit,) = told(await client.call_tool("recall", {"query": "tea", "conversation": ""}))["hits"]
        assert hit["content"] == "Tea, please"
        assert len(told(await client.call_tool("history", {"conversation": ""}))["messages"]) == 1
        error = failure(await client.call_tool("forget", {"text": "Tea, please", "conversation": ""}))
        assert error["field"] == "conversation"


async def test_the_schemas_of_the_tools_have_only_keywords_of_json_schema(url: str) -> None:
    """Ajv in strict mode, which some clients compile them with, refuses the whole tool for any other."""
    async with connected(url) as client:
        tools = (await client.list_tools()).tools
    schemas = {(tool.name, side): getattr(tool, side) for tool in tools for side in ("input_schema", "output_schema")}
    unknown = {place: found for place, schema in schemas.items() if (found := {*_keywords(schema)} - _KNOWN)}
    assert unknown == {}
    assert {"$ref", "minimum", "anyOf"} <= {word for schema in schemas.values() for word in _keywords(schema)}


_VOCABULARIES = ("core", "applicator", "validation", "meta-data", "format-annotation")
_KNOWN = {
    word
    for name in _VOCABULARIES
    for word in cast("Any", REGISTRY)[f"https://json-schema.org/draft/2020-12/meta/{name}"].contents["properties"]
}


def _keywords(schema: dict[str, Any]) -> Iterator[str]:
    for word, value in schema.items():
        yield word
        if word in ("properties", "$defs"):
            inner: list[Any] = [*value.values()]
        else:
            inner = value if word in ("anyOf", "allOf", "oneOf") else [value]
        for one in inner:
            if isinstance(one, dict) and word != "default":
                yield from _keywords(cast("dict[str, Any]", one))
