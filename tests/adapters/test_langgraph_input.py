"""Bad input and damaged rows: a typed error that says what is wrong, and the thread stays readable."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from tests.adapters.database import rows
from tests.adapters.verbs import Open, Verbs, thread
from threadkeep.adapters.langgraph import Limits, ThreadkeepSaver
from threadkeep.adapters.langgraph.codec import packed
from threadkeep.adapters.langgraph.pages import squeezed
from threadkeep.errors import CheckpointCorrupt, InvalidInput, InvalidScope, MemoryClosed, SchemaTooNew, TooLarge
from threadkeep.settings import Settings


@pytest.fixture
async def talk(saver: Verbs) -> dict[str, Any]:
    """A thread with one good checkpoint."""
    return await saver.put(thread("t"), {"x": "good"})


async def is_readable(saver: Verbs) -> bool:
    return (await saver.values(thread("t")))["x"] == "good"


@pytest.mark.parametrize("config", [{}, {"configurable": {}}, thread(""), {"configurable": {"thread_id": None}}])
async def test_a_missing_thread_id_is_told(saver: Verbs, config: dict[str, Any]) -> None:
    for verb, arguments in (("get_tuple", ()), ("put_writes", ([("x", 1)], "task"))):
        with pytest.raises(InvalidScope, match="thread_id"):
            await saver.call(verb, config, *arguments)
    with pytest.raises(InvalidScope, match="thread_id"):
        await saver.put(config, {"x": 1})


async def test_an_unknown_checkpoint_is_none_and_nothing_is_listed(saver: Verbs, talk: dict[str, Any]) -> None:
    assert await saver.get(thread("t", checkpoint_id="unknown")) is None
    assert await saver.list(thread("t", checkpoint_id="unknown")) == []
    assert await is_readable(saver)


async def test_writes_without_a_checkpoint_id_are_refused(saver: Verbs, talk: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="checkpoint_id"):
        await saver.call("put_writes", thread("t"), [("x", 1)], "task")


async def test_metadata_that_cannot_be_serialised_is_told(saver: Verbs, talk: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="metadata"):
        await saver.put(talk, {"x": 1}, metadata={"step": 1, "what": object()})
    assert await is_readable(saver)


async def test_a_value_that_cannot_be_serialised_names_its_channel(saver: Verbs, talk: dict[str, Any]) -> None:
    for value in (object(), [1, object()], {"deep": object()}, 2**70):
        with pytest.raises(InvalidInput, match="'odd'"):
            await saver.put(talk, {"x": "bad", "odd": value})
    with pytest.raises(InvalidInput, match="'odd'"):
        await saver.call("put_writes", talk, [("odd", object())], "task")
    assert await is_readable(saver)


ODD_KEYS = ["' OR 1=1 --", '"', "$.x", "a.b", "a]b", "%", "", "\x00", "🦊", "source') OR ('1'='1", ":name", "{}"]


@pytest.mark.parametrize("key", ODD_KEYS)
async def test_a_filter_key_may_be_any_text_and_finds_only_its_own(saver: Verbs, key: str) -> None:
    await saver.put(thread("t"), {"x": 1}, metadata={key: "wanted", "step": 1})
    await saver.put(thread("t"), {"x": 2}, metadata={"source": "wanted", "step": 2})
    assert [one.metadata["step"] for one in await saver.list(thread("t"), filter={key: "wanted"})] == [1]
    assert await saver.list(thread("t"), filter={key: "other"}) == []
    assert len(await saver.list(thread("t"), filter={})) == 2


async def test_a_filter_matches_what_python_calls_equal(saver: Verbs) -> None:
    await saver.put(thread("t"), {"x": 1}, metadata={"step": 1, "deep": {"a": [1, 2]}, "flag": True, "none": None})
    for wanted in ({"step": 1.0}, {"flag": 1}, {"deep": {"a": [1, 2]}}, {"none": None}, {"absent": None}):
        assert len(await saver.list(thread("t"), filter=wanted)) == 1, wanted
    for wanted in ({"step": 2}, {"deep": {"a": [1]}}, {"step": None}, {"flag": "true"}, {"step": "1"}):
        assert await saver.list(thread("t"), filter=wanted) == [], wanted


async def test_filter_before_and_limit_work_together(saver: Verbs) -> None:
    stored = [
        await saver.put(thread("t"), {"x": n}, metadata={"step": n, "source": "input" if n % 2 else "loop"})
        for n in range(9)
    ]
    found = await saver.list(thread("t"), filter={"source": "input"}, before=stored[7], limit=2)
    assert [one.metadata["step"] for one in found] == [5, 3]
    assert await saver.list(thread("t"), limit=0) == []


async def test_a_filter_that_is_no_mapping_of_texts_is_refused(saver: Verbs) -> None:
    for wrong in (["x"], {1: 2}):
        with pytest.raises(InvalidInput, match="filter"):
            await saver.list(thread("t"), filter=wrong)


async def test_a_state_over_the_limit_is_refused_and_names_its_channel(open_saver: Open) -> None:
    saver = await open_saver(limits=Limits(max_value_bytes=10_000))
    stored = await saver.put(thread("t"), {"x": "good"})
    for value in ("y" * 20_000, ["y" * 9_000, "z" * 9_000]):
        with pytest.raises(TooLarge, match=r"'large'.*10,000"):
            await saver.put(stored, {"x": "bad", "large": value})
    with pytest.raises(TooLarge, match="'large'"):
        await saver.call("put_writes", stored, [("large", "y" * 20_000)], "task")
    assert await is_readable(saver)


async def test_ids_that_are_part_of_a_key_have_a_limit(saver: Verbs) -> None:
    with pytest.raises(InvalidInput, match=r"checkpoint.id.*255"):
        await saver.put(thread("t"), {"x": 1}, id="c" * 256)
    stored = await saver.put(thread("t"), {"x": 1}, id="c" * 255)
    with pytest.raises(InvalidInput, match=r"task_id.*255"):
        await saver.call("put_writes", stored, [("x", 1)], "t" * 256)


def nested(depth: int) -> bytes:
    """Extensions of the serializer's, each inside another."""
    data = b"\xc0"
    for _ in range(depth):
        data = b"\xc9" + len(data).to_bytes(4, "big") + b"\x05" + data
    return data


HOSTILE_RUNS: list[list[Any]] = [[b"s" * 16, 0, 1 << 40], [b"s" * 16, 5, -5], ["s", "0", "1"]]
HOSTILE = [
    b"",
    b"\x00",
    b"\x07garbage",
    b"\x01not zstd",
    b"\x02not zlib",
    squeezed(b"\xc1"),
    squeezed(packed([9, "msgpack", b"", []])),
    squeezed(packed([1, "pickle", b"cos\nsystem\n(S'true'\ntR.", []])),
    squeezed(packed([1, "unknown", b"", []])),
    squeezed(packed([1, "msgpack", b"\x80", []])),
    squeezed(packed([1, "msgpack", packed({"channel_values": {"x": 5}}), []])),
    squeezed(packed([1, "msgpack", b"\xdd\xff\xff\xff\xff", []])),  # a list that says it is very long
    squeezed(packed([1, "msgpack", nested(5_000), []])),
    *(squeezed(packed([1, "msgpack", packed({"channel_values": {"x": 0}}), [[2, run]]])) for run in HOSTILE_RUNS),
]


@pytest.mark.parametrize("blob", HOSTILE, ids=range(len(HOSTILE)))
async def test_a_damaged_checkpoint_is_told_and_the_others_stay_readable(
    open_saver: Open, url: str, user: str, blob: bytes
) -> None:
    saver = await open_saver()
    good = await saver.put(thread("t"), {"x": "good"}, id="1")
    await saver.put(good, {"x": "bad"}, id="2")
    literal = f"'\\x{blob.hex()}'" if url.startswith("postgres") else f"x'{blob.hex()}'"
    keys = f"SELECT thread_key FROM conversation_metadata WHERE user_id = '{user}'"
    await rows(
        url,
        f"UPDATE conversation_checkpoints SET checkpoint_blob = {literal} WHERE checkpoint_id = '2'"
        f" AND thread_key IN ({keys})",
    )
    reader = await open_saver()
    with pytest.raises(CheckpointCorrupt, match="thread 't'"):
        await reader.get(thread("t"))
    assert (await reader.values(good))["x"] == "good"


async def test_items_that_are_gone_or_damaged_name_thread_and_channel(open_saver: Open, url: str, user: str) -> None:
    saver = await open_saver()
    good = await saver.put(thread("t"), {"x": "good"}, id="1")
    await saver.put(good, {"x": "good", "messages": [HumanMessage("m" * 500)]}, id="2")
    keys = f"SELECT thread_key FROM conversation_metadata WHERE user_id = '{user}'"
    for change in ("UPDATE tk_checkpoint_items SET stop = stop + 1", "DELETE FROM tk_checkpoint_items"):
        await rows(url, f"{change} WHERE thread_key IN ({keys})")
        reader = await open_saver()
        with pytest.raises(CheckpointCorrupt, match="thread 't'"):
            await reader.get(thread("t"))
        assert (await reader.values(good))["x"] == "good"


@dataclass
class Order:
    """A class that nobody allowed the serializer of this saver to load."""

    item: str


async def test_a_type_that_may_not_be_loaded_is_told_with_the_way_to_allow_it(open_saver: Open) -> None:
    saver = await open_saver(serde=JsonPlusSerializer(allowed_msgpack_modules=None))
    await saver.put(thread("t"), {"x": Order("tea")})
    with pytest.raises(CheckpointCorrupt, match=r"channel 'x' holds a .*Order.*allowed_msgpack_modules"):
        await saver.get(thread("t"))
    allowed = saver.saver.with_allowlist([(__name__, "Order")])
    found = await allowed.aget_tuple(thread("t"))
    assert found.checkpoint["channel_values"] == {"x": Order("tea")}


async def test_an_unknown_strategy_is_refused(saver: Verbs) -> None:
    with pytest.raises(InvalidInput, match="strategy"):
        await saver.call("prune", ["t"], strategy="keep_some")


async def test_a_closed_saver_says_so(open_saver: Open) -> None:
    saver = await open_saver()
    await asyncio.to_thread(saver.saver.close)
    with pytest.raises(MemoryClosed):
        await saver.get(thread("t"))


async def test_a_database_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'newer.db'}"
    async with ThreadkeepSaver.from_url(url, user="u", settings=Settings()):
        pass
    await rows(url, "UPDATE tk_schema SET version = 999")
    with pytest.raises(SchemaTooNew, match="999"):
        async with ThreadkeepSaver.from_url(url, user="u", settings=Settings()):
            pass
    with pytest.raises(SchemaTooNew, match="999"):
        await asyncio.to_thread(ThreadkeepSaver.from_url_sync, url, user="u", settings=Settings())
