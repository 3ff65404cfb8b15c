"""Write the small known set of data that a later version must open: see README.md beside this file.

Only public names are used, so that any version can write it: PYTHONPATH=<that version's src>.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.genai import types
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from threadkeep import ModelResponse, Reflection, Scope, UserMessage, open_knowledge, open_memory
from threadkeep.adapters.adk import ThreadkeepSessionService
from threadkeep.adapters.langgraph import ThreadkeepSaver, ThreadkeepStore
from threadkeep.adapters.openai_agents import ThreadkeepSession
from threadkeep.knowledge.indexing import Source

# Secrets made up for this data alone.
ENVIRONMENT = {
    "THREADKEEP_EMBEDDER": "none",
    "THREADKEEP_SEMANTIC_CACHE": "none",
    "THREADKEEP_SLOT_KEY": "c2xvdC1rZXktb2YtdGhlLWZpeHR1cmVzLW9ubHktMDE=",
    "THREADKEEP_TOMBSTONE_KEY": "tombstone-key-of-the-fixtures",
    "THREADKEEP_API_KEY_SECRET": "api-key-secret-of-the-fixtures-only",
    "TOKENIZER_NAME": "cl100k_base",
}
ANN, CAPITAL = Scope("shop", "ann"), Scope("shop", "Ann")
BOB = Scope("shop", "bob", "secret")
BOOKING, TRIP, WALK, HER = (
    ANN.with_conversation("booking"),
    *(ANN.with_conversation(name) for name in ("trip", "walk")),
    CAPITAL.with_conversation("booking"),
)
KEY = "order-1"
KEYED = ModelResponse("Your order 17 leaves on Monday.", id="b5")
FORGOTTEN = "the code word is marzipan"
START_AT = datetime(2026, 11, 1, 9, 0, tzinfo=UTC)
# Behind Redis: one conversation that was flushed, and grew; one that the archive has not seen.
TALK, NEW = Scope("shop", "kim", "talk"), Scope("shop", "kim", "new")
FLUSHED = ("The first message reached the archive.", "So did its answer.")
WAITING = ("The third waits in the journal.", "The fourth does too.", "The fifth follows them.")
BEGUN = ("This conversation stands only in the journal.",)


def at(minutes: int) -> datetime:
    return START_AT + timedelta(minutes=minutes)


async def write(url: str, folder: Path) -> dict[str, Any]:
    """The receipts that a replay must return."""
    receipt = await _conversations(url)
    await _documents(url, folder)
    await _threads(url)
    await _agents(url)
    return {"keyed": receipt}


async def write_behind_redis(url: str, redis: str) -> None:
    async with open_memory(url, redis=redis) as memory:
        await memory.append(TALK, [UserMessage(FLUSHED[0], id="k1"), ModelResponse(FLUSHED[1], id="k2")], key="k")
        await memory.flushed()
    async with open_memory(url, redis=redis, worker=False) as memory:
        for number, text in enumerate(WAITING, 3):
            await memory.append(TALK, [UserMessage(text, id=f"k{number}")], key=f"k{number}")
        await memory.append(NEW, [UserMessage(BEGUN[0], id="n1")])


async def _conversations(url: str) -> dict[str, Any]:
    async with open_memory(url, redis="") as memory:
        await memory.append(
            BOOKING,
            [
                UserMessage("I am allergic to peanuts, write to ann@example.com", id="b1", ts=at(0)),
                ModelResponse("Noted: no peanuts for you.", id="b2", ts=at(1)),
                UserMessage("Może też bez orzechów włoskich? Zażółć gęślą jaźń.", id="b3", ts=at(2)),
                UserMessage(f"By the way, {FORGOTTEN}.", id="b4", ts=at(3)),
            ],
        )
        receipt = await memory.append(BOOKING, [KEYED], key=KEY)
        await memory.append(BOOKING, [UserMessage("Please drop this line again.", id="b6", ts=at(5))])
        await memory.append(BOOKING, [ModelResponse("早餐七點開始 🥐", id="b7", ts=at(6))])
        await memory.append(
            TRIP,
            [
                UserMessage("Hà Nội đi Huế mất bao lâu?", id="t1", ts=at(60)),
                ModelResponse("Khoảng 13 giờ bằng tàu hỏa.", id="t2", ts=at(61)),
                UserMessage(
                    modality="image",
                    summary="A photo of a train ticket",
                    meta={"language": "en", "mime": "image/png", "durationMs": None, "sha256": "0" * 64},
                    id="t3",
                    ts=at(62),
                ),
            ],
        )
        await memory.rename(TRIP, "By train to Huế")
        await memory.set_intent(TRIP, "plan_trip")
        await memory.close_conversation(TRIP)
        await memory.append(WALK, [UserMessage("Where can I walk my dog?", id="w1", ts=at(70))])
        await memory.append(HER, [UserMessage("I eat peanuts every day.", id="b1", ts=at(80))])
        await memory.append(BOB, [UserMessage("Nobody may read this line.", id="s1", ts=at(90))])
        await memory.append(BOB.with_conversation("kept"), [UserMessage("This line stays.", id="s2", ts=at(91))])
        await memory.reflect(BOOKING, Reflection("She cannot eat peanuts.", ("allergy",)), ["b1", "b2"])
        await memory.reflect(BOOKING, Reflection("A booking with an allergy."), ["b1", "b2", "b3"], "rolling")
        assert memory.ledger
        await memory.ledger.add(ANN, "gemini-2.5-flash", 120, 30)
        await memory.ledger.add(ANN, "gemini-2.5-flash", 80, 20)
        assert (await memory.erase(BOB)).complete
        assert (await memory.erase(BOOKING, "b6")).complete
        assert (await memory.forget(ANN, FORGOTTEN)).complete
        return receipt.as_dict()


async def _documents(url: str, folder: Path) -> None:
    for name, text in {
        "public/warranty.md": "# Warranty\n\nEvery part has a warranty of two years.\n",
        "public/hours.md": "# Hours\n\nWe open at nine. Zamykamy o osiemnastej.\n",
        "own/notes.md": "# Notes\n\nThe discount of Ann is seven percent.\n",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    async with open_knowledge(url, redis="") as knowledge:
        await knowledge.indexer.index(folder / "public", Source("shop", "shop"))
        await knowledge.indexer.index(folder / "own", Source("notes", "shop", "private", "ann"))


class Outer(MessagesState):
    notes: dict[str, Any]


def graph_of(saver: Any) -> Any:
    """A chat whose answer comes from a subgraph with checkpoints of its own."""

    def look_up(state: Outer) -> Any:
        call = {"name": "search", "args": {"q": "soup"}, "id": "c1", "type": "tool_call"}
        return {"messages": [AIMessage("", tool_calls=[call]), ToolMessage("soup is safe", tool_call_id="c1")]}

    def answer(state: Outer) -> Any:
        said = sum(isinstance(one, HumanMessage) for one in state["messages"])
        return {
            "messages": [AIMessage(f"Answer {said}: soup is safe.")],
            "notes": {"asked": said, "menu": ["soup"] * 40},
        }

    inner: Any = StateGraph(Outer)
    inner.add_node("look_up", look_up)
    inner.add_edge(START, "look_up")
    inner.add_edge("look_up", END)
    graph: Any = StateGraph(Outer)
    graph.add_node("helper", inner.compile(checkpointer=True))
    graph.add_node("answer", answer)
    graph.add_edge(START, "helper")
    graph.add_edge("helper", "answer")
    graph.add_edge("answer", END)
    return graph.compile(checkpointer=saver)


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


async def _threads(url: str) -> None:
    async with ThreadkeepSaver.from_url(url, tenant="shop", user="ann") as saver:
        for said in ("What can I eat?", "And after that?"):
            await graph_of(saver).ainvoke({"messages": [HumanMessage(said)]}, thread("graph"))
    async with ThreadkeepSaver.from_url(url, tenant="shop", user="ann", tool_traffic="turn") as saver:
        graph = saver.attached(graph_of(saver))
        await graph.ainvoke({"messages": [HumanMessage("Call +48 512 345 678")]}, thread("sealed"))
    async with ThreadkeepStore.from_url(url, tenant="shop", user="ann", embedder="none") as store:
        await store.aput(("seats", "train"), "seat", {"window": True, "row": 7, "name": "Zoë"})


def said(author: str, words: str, **more: Any) -> Event:
    content = types.Content(role="user" if author == "user" else "model", parts=[types.Part(text=words)])
    return Event(author=author, invocation_id="i1", content=content, **more)


async def _agents(url: str) -> None:
    async with ThreadkeepSessionService.from_url(url, tenant="shop", redis="") as sessions:
        state = {"app:menu": ["soup"], "user:diet": "no peanuts", "table": {"seats": 2}}
        session = await sessions.create_session(app_name="bot", user_id="ann", session_id="adk", state=state)
        await sessions.append_event(session, said("user", "what can I eat?"))
        await sessions.append_event(session, said("guide", "soup", actions=EventActions(state_delta={"ordered": 1})))
    async with ThreadkeepSession("agents", url, tenant="shop", user="ann", redis="") as session:
        await session.add_items(
            [{"role": "user", "content": "My order is late"}, {"role": "assistant", "content": "It comes on Monday."}]
        )
