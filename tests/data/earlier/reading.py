"""Everything that is kept in the known set, as values that JSON can hold: the same from every version and store."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import CheckpointTuple

from tests.data.earlier.write import ANN, BOB, BOOKING, CAPITAL, HER, TRIP, WALK, thread
from threadkeep import Access, Memory, open_knowledge, open_memory
from threadkeep.adapters.adk import ThreadkeepSessionService
from threadkeep.adapters.langgraph import ThreadkeepSaver, ThreadkeepStore
from threadkeep.adapters.openai_agents import ThreadkeepSession

_QUESTIONS = ("peanuts allergy", "orzechy włoskie", "bao lâu đến Huế", "早餐幾點", "train ticket", "Monday order")
_DOCUMENTS = ("How long is the warranty?", "When do you close? zamykamy", "What is the discount of Ann?")


async def everything(url: str) -> dict[str, Any]:
    async with open_memory(url, redis="") as memory:
        found = await _memory(memory)
    return found | {
        "documents": await _documents(url),
        "threads": {name: await _thread(url, name) for name in ("graph", "sealed")},
        "items": await _items(url),
        "adk": await _adk(url),
        "agents": await _agents(url),
    }


async def _memory(memory: Memory) -> dict[str, Any]:
    scopes = BOOKING, TRIP, WALK, HER, BOB, BOB.with_conversation("kept")
    return {
        "histories": {
            f"{scope.user}/{scope.conversation}": (await memory.history(scope, limit=50)).as_dict() for scope in scopes
        },
        "recalled": {
            question: [hit.message_id for hit in (await memory.recall(ANN, question, k=3)).hits]
            for question in _QUESTIONS
        },
        "recalled_by_the_other": [hit.message_id for hit in (await memory.recall(CAPITAL, "peanuts")).hits],
        "conversations": [one.as_dict() for one in (await memory.conversations(ANN)).items],
        "reflections": [one.as_dict() for one in await memory.reflections(BOOKING)],
        "rolling": [one.as_dict() for one in await memory.reflections(BOOKING, "rolling")],
        "stats": {
            name: (await memory.stats(scope)).as_dict() | {"bytes_on_disk": None}
            for name, scope in (("all", None), ("ann", ANN))
        },
        "export": [record.as_dict() async for record in memory.export(ANN)],
        "export_all": sorted([(one.tenant, one.user, one.conversation or "") async for one in memory.export()]),
    }


async def _documents(url: str) -> dict[str, Any]:
    async with open_knowledge(url, redis="") as knowledge:
        return {
            f"{user}: {question}": (await knowledge.ask(Access("shop", user), question, k=1)).text
            for user in ("ann", "Ann")
            for question in _DOCUMENTS
        }


async def _thread(url: str, name: str) -> dict[str, Any]:
    async with ThreadkeepSaver.from_url(url, tenant="shop", user="ann") as saver:
        found = [one async for one in saver.alist(thread(name))]
        told, stats = await saver.aget_conversation_metadata(name), await saver.aget_conversation_stats(name)
        assert told
        assert stats
        return {
            "checkpoints": [_checkpoint(one) for one in found],
            "first_query": told.first_query,
            "query_count": stats.query_count,
        }


def _checkpoint(found: CheckpointTuple) -> dict[str, Any]:
    parent = found.parent_config and found.parent_config["configurable"]["checkpoint_id"]
    return {
        "id": found.checkpoint["id"],
        "namespace": found.config["configurable"]["checkpoint_ns"],
        "parent": parent,
        "values": {name: plain(value) for name, value in found.checkpoint["channel_values"].items()},
        "versions": {name: str(version) for name, version in found.checkpoint["channel_versions"].items()},
        "step": found.metadata.get("step"),
        "writes": [[task, channel, plain(value)] for task, channel, value in found.pending_writes or ()],
    }


def plain(value: Any) -> Any:
    """A message as its kind and its fields; what JSON does not know, in its own words."""
    if isinstance(value, BaseMessage):
        return {"type": value.type, "content": value.content, "id": value.id} | (
            {"tool_calls": value.tool_calls} if getattr(value, "tool_calls", None) else {}  # type: ignore[attr-defined]
        )
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value if value is None or isinstance(value, str | int | float | bool) else repr(value)


async def _items(url: str) -> list[Any]:
    async with ThreadkeepStore.from_url(url, tenant="shop", user="ann", embedder="none") as store:
        return [[*item.namespace, item.key, item.value] for item in await store.asearch(("seats",))]


async def _adk(url: str) -> dict[str, Any]:
    async with ThreadkeepSessionService.from_url(url, tenant="shop", redis="") as sessions:
        session = await sessions.get_session(app_name="bot", user_id="ann", session_id="adk")
        assert session
        assert await sessions.get_session(app_name="bot", user_id="Ann", session_id="adk") is None
        return {
            "state": session.state,
            "events": [
                [one.id, one.author, one.timestamp, [part.text for part in one.content.parts or ()]]
                for one in session.events
                if one.content
            ],
        }


async def _agents(url: str) -> list[Any]:
    async with ThreadkeepSession("agents", url, tenant="shop", user="ann", redis="") as session:
        return [dict(item) for item in await session.get_items()]
