"""The pure parts of the saver: lists as runs, messages without their classes, what is cached."""

from __future__ import annotations

import hashlib
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, pairwise
from typing import Any

import numpy
import ormsgpack
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from threadkeep.adapters.langgraph import drafting as writing
from threadkeep.adapters.langgraph import pages
from threadkeep.adapters.langgraph.cache import ItemCache, State, StateCache, gap
from threadkeep.adapters.langgraph.codec import Codec, has_lone, packed, spelled, unspelled
from threadkeep.adapters.langgraph.drafting import Split, fresh, grow_never, split
from threadkeep.adapters.langgraph.messages import MORE, fingerprint, plain_value
from threadkeep.adapters.langgraph.pages import (
    FREED,
    Item,
    emptied,
    pages_for,
    squeezed,
    stretches_of,
    unsqueezed,
)
from threadkeep.adapters.langgraph.turns import TurnSeal
from threadkeep.checkpoints.threads import pages_to_drop
from threadkeep.errors import CheckpointCorrupt, TooLarge
from threadkeep.ports.checkpoints import SHAPES, Page, Run
from threadkeep.ports.threads import Thread, escaped, unescaped
from threadkeep.scope import Scope

SERDE = JsonPlusSerializer(allowed_msgpack_modules=None)
CODEC = Codec(SERDE)
CALL = {"name": "look", "args": {"x": [1, {"y": None}]}, "id": "c1", "type": "tool_call"}
MESSAGES: list[BaseMessage] = [
    HumanMessage("hello"),
    HumanMessage("hello", id="1", name="ann"),
    HumanMessage([{"type": "text", "text": "parts"}], id="2"),
    HumanMessage("hello", extra_field="kept"),
    AIMessage("", id="3", tool_calls=[CALL]),
    AIMessage("said", additional_kwargs={"tool_calls": []}, response_metadata={"model_name": "m", "n": 1.5}),
    AIMessage("said", usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
    AIMessage(
        "said",
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3, "input_token_details": {"audio": 1}},
    ),
    AIMessage(
        "", invalid_tool_calls=[{"name": "x", "args": "{", "id": "1", "error": "e", "type": "invalid_tool_call"}]
    ),
    SystemMessage("be kind"),
    ToolMessage("found", tool_call_id="c1"),
    ToolMessage("failed", tool_call_id="c1", status="error", artifact={"raw": b"bytes"}),
    ToolMessage([{"type": "text", "text": "parts"}], tool_call_id="c1"),
]


def state_of(message: Any) -> tuple[Any, ...]:
    return (
        type(message),
        message.__dict__,
        list(message.__dict__),
        message.__pydantic_fields_set__,
        message.__pydantic_extra__,
        message.__pydantic_private__,
    )


@pytest.mark.parametrize("message", MESSAGES, ids=range(len(MESSAGES)))
def test_a_message_read_without_its_class_is_what_its_class_would_make(message: BaseMessage) -> None:
    data = SERDE.dumps_typed(message)[1]
    read = plain_value(data)
    if read is not MORE:
        assert state_of(read) == state_of(SERDE.loads_typed(("msgpack", data)))


def test_simple_messages_are_read_without_their_classes() -> None:
    simple = [plain_value(SERDE.dumps_typed(message)[1]) is not MORE for message in MESSAGES]
    assert simple == [True, True, False, False, True, False, True, False, False, True, True, False, False]


HOSTILE = ormsgpack.packb(ormsgpack.Ext(5, ormsgpack.packb([["os"], "system", {}, "model_validate_json"])))


@pytest.mark.parametrize(
    "data", [b"", b"\xc1", b"\x92\x01", HOSTILE, b"\x91" + HOSTILE, SERDE.dumps_typed({1, 2})[1], b"\x91" * 5_000]
)
def test_what_is_odd_or_damaged_is_left_to_the_serializer(data: bytes) -> None:
    assert plain_value(data) is MORE


NESTED = [None, True, "x", {"a": [1, 2.5, b"b"], 3: None}, [MESSAGES[0], {"b": MESSAGES[1]}], [*map(str, range(99))]]


@pytest.mark.parametrize("value", NESTED, ids=range(len(NESTED)))
def test_plain_values_with_messages_are_read_as_the_serializer_reads_them(value: Any) -> None:
    data = SERDE.dumps_typed([value])[1]
    assert plain_value(data) == SERDE.loads_typed(("msgpack", data)) == [value]
    assert [*map(type, plain_value(data))] == [type(value)]


def test_a_fingerprint_tells_every_change_and_nothing_else() -> None:
    prints = [fingerprint(message) for message in MESSAGES]
    assert [fingerprint(message.model_copy(deep=True)) for message in MESSAGES] == prints
    told = [one for one in prints if one is not None]
    assert len(set(told)) == len(told) >= 10
    for change in (
        {"content": "other"},
        {"additional_kwargs": {"a": 1}},
        {"additional_kwargs": {"a": True}},
        {"id": "x"},
    ):
        assert fingerprint(MESSAGES[0].model_copy(update=change)) not in prints
    assert fingerprint("hello") is None


ITEMS = st.integers(0, 12) | st.sampled_from(["text", "TEXT", None, 1.0, True, {"a": 1}])


def strict(values: list[Any]) -> list[tuple[type, Any]]:
    return [(type(value), value) for value in values]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(ITEMS, min_size=1, max_size=30), min_size=1, max_size=8))
def test_every_version_of_a_list_is_read_back_from_its_runs(versions: list[list[Any]]) -> None:
    lists: dict[bytes, list[Item]] = {}
    runs: tuple[Run, ...] = ()
    stored: list[tuple[list[Any], tuple[Run, ...]]] = []
    for values in versions:
        old = [item for run in runs for item in lists[run.list_id][run.start : run.stop]]
        made: Split = (
            split(values, old, runs, CODEC, "x") if runs else fresh([Item(*CODEC.encode(v, "x")) for v in values])
        )
        if any(len(lists.get(one.list_id, ())) != one.start for one in made.additions):  # the position is taken
            made = split(values, old, runs, CODEC, "x", may_grow=grow_never)
        for addition in made.additions:
            list_id = lists.setdefault(addition.list_id, [])
            assert len(list_id) == addition.start
            list_id.extend(addition.items)
        runs = made.runs
        stored.append((values, runs))
    for values, its_runs in stored:
        items = [item for run in its_runs for item in lists[run.list_id][run.start : run.stop]]
        assert strict([CODEC.decode(*item.encoded, "x") for item in items]) == strict(values)


def test_a_list_in_too_many_pieces_is_written_anew() -> None:
    made = fresh([Item(*CODEC.encode(n, "x")) for n in range(100)])
    old = made.additions[0].items
    every_other = split([n for n in range(100) if n % 2], old, made.runs, CODEC, "x")
    assert len(every_other.runs) == 1
    assert len(every_other.additions[0].items) == 50


def thread_named(name: str) -> Thread:
    return Thread(Scope("shop", "ann"), name)


def test_the_cache_holds_no_more_than_it_may_and_forgets_the_longest_unused() -> None:
    cache = ItemCache(max_bytes=10_000)
    threads = [thread_named(str(number)) for number in range(6)]
    for thread in threads:
        cache.add(thread, b"s", 0, [Item("bytes", b"x" * 2_000)])
        cache.items(threads[0], Run(b"s", 0, 1))
    held = [cache.items(thread, Run(b"s", 0, 1)) != [None] for thread in threads]
    assert held == [True, False, False, True, True, True]
    cache.forget(threads[0])
    assert cache.items(threads[0], Run(b"s", 0, 1)) == [None]


def test_only_what_is_missing_of_a_run_is_asked_for() -> None:
    cache, thread = ItemCache(1 << 20), thread_named("t")
    cache.add(thread, b"s", 2, [Item("bytes", b"c"), Item("bytes", b"d")])
    assert gap(Run(b"s", 2, 4), cache.items(thread, Run(b"s", 2, 4))) is None
    assert gap(Run(b"s", 2, 9), cache.items(thread, Run(b"s", 2, 9))) == Run(b"s", 4, 9)
    assert gap(Run(b"s", 0, 4), cache.items(thread, Run(b"s", 0, 4))) == Run(b"s", 0, 2)
    assert gap(Run(b"other", 0, 4), cache.items(thread, Run(b"other", 0, 4))) == Run(b"other", 0, 4)


@given(st.text(st.characters() | st.sampled_from("\x00\x01\x1a\ud800\udfff?"), max_size=30))
def test_any_text_survives_being_spelled_and_escaped(text: str) -> None:
    assert unspelled(spelled({text: [text]})) == {text: [text]}
    assert not has_lone(spelled(text))
    assert unescaped(escaped(text)) == text
    escaped(text).encode()
    assert "\x00" not in escaped(text)


@given(st.binary(max_size=300) | st.binary(max_size=3).map(lambda data: data * 100))
def test_compressed_bytes_come_back(data: bytes) -> None:
    assert unsqueezed(squeezed(data)) == data
    assert len(squeezed(data)) <= len(data) + 1


NAMES = b"tool_calls invalid_tool_calls usage_metadata additional_kwargs response_metadata model_validate_json"
STORED_BEFORE = "0328b52ffd20752501003020202020202009000ba400d164174764448d70efc5cc948a5916c9f28d139ec96dc20a"


def test_what_was_compressed_against_the_names_of_fields_is_read_for_ever() -> None:
    """Each byte of them is part of the format."""
    assert hashlib.sha256(SHAPES).hexdigest() == "b2cc01be1dc2192c4ad39e0d5748cd1a170e964583d33598465956ef988e2439"
    assert unsqueezed(bytes.fromhex(STORED_BEFORE)) == NAMES + b" channel_versions"
    with pytest.raises(ValueError, match="not compressed data"):
        unsqueezed(bytes.fromhex("01" + STORED_BEFORE[2:]))


def test_a_short_message_is_mostly_its_text_when_it_is_stored() -> None:
    for message in (
        HumanMessage("How are you?", id="1"),
        AIMessage("Fine.", id="2"),
        SystemMessage("Be kind.", id="3"),
    ):
        item = Item.of(message, CODEC, "a message")
        assert len(squeezed(item.data)) < 0.3 * len(item.data)


def test_values_that_are_decoded_together_come_in_their_order() -> None:
    given = [*MESSAGES, "text", {"a": [1]}, "lone \ud800", *MESSAGES]
    items = [Item.of(value, CODEC, "x") for value in given]
    assert CODEC.decode_all([item.encoded for item in items], "x") == given


@pytest.mark.parametrize("data", [b"\x92\xc0", b"\xc1", b""])
def test_damaged_values_among_others_are_told(data: bytes) -> None:
    odd = SERDE.dumps_typed({1, 2})
    with pytest.raises(CheckpointCorrupt, match="thread 't'"):
        CODEC.decode_all([odd, ("msgpack", data), odd], "thread 't'")


def test_a_change_in_the_depths_of_a_message_changes_its_fingerprint() -> None:
    message = AIMessage("", tool_calls=[CALL], additional_kwargs={"a": {"b": [1]}})
    before = fingerprint(message)
    message.additional_kwargs["a"]["b"][0] = True
    assert fingerprint(message) != before
    message.additional_kwargs["a"]["b"][0] = 1
    assert fingerprint(message) == before
    message.response_metadata["added"] = 1
    assert fingerprint(message) != before


@pytest.mark.parametrize("odd", [type("Odd", (int,), {})(1), numpy.array([1, 2])], ids=["subclass", "array"])
def test_a_message_of_more_than_plain_values_has_no_fingerprint(odd: Any) -> None:
    assert fingerprint(AIMessage("", additional_kwargs={"a": odd})) is None


def test_what_another_thread_adds_while_a_value_is_looked_through_does_no_harm() -> None:
    growing: dict[str, Any] = {}

    class Overtaken(str):
        """While it is looked at the other thread comes."""

        def isascii(self) -> bool:
            growing[f"new {len(growing)}"] = [Overtaken("x")]
            return True

    growing["first"] = Overtaken("x")
    assert not has_lone(growing)
    assert len(growing) == 2


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 8)), max_size=6),
    st.lists(st.integers(1, 9), max_size=6),
    st.sets(st.integers(0, 5)),
)
def test_of_pages_all_that_is_not_used_may_go_and_no_place_is_given_out_again(
    spans: list[tuple[int, int]], sizes: list[int], gone: set[int]
) -> None:
    runs = [Run(b"s", start, start + length) for start, length in spans]
    used = {place for run in runs for place in range(run.start, run.stop)}
    ends = list(accumulate(sizes, initial=0))
    pages = [(b"s", start, stop) for number, (start, stop) in enumerate(pairwise(ends)) if number not in gone]
    dropping = pages_to_drop([*pages, (b"other", 0, 1)], [*runs, Run(b"third", 0, 1)])
    whole = [page for page in pages if used.isdisjoint(range(*page[1:]))]
    assert {*dropping.pages} == {*whole, (b"other", 0, 1)}
    free = {page: [place - page[1] for place in range(*page[1:]) if place not in used] for page in pages}
    assert [*dropping.partly] == [(page, places) for page, places in free.items() if places and page not in whole]
    kept = [page for page in pages if page not in whole]
    written = range(kept[0][1], pages[-1][2]) if kept else ()
    held = [place for _, *span in (*kept, *dropping.placeholders) for place in range(*span)]
    assert sorted(held) == [*written]


def test_pages_that_stand_side_by_side_are_one_stretch() -> None:
    items = [Item.of(value, CODEC, "x") for value in (*MESSAGES, "text", {"a": [1]})]
    items.append(Item("odd", b"of another serializer"))
    one, two, three = ([*pages_for(b"one", start, items)] for start in (0, len(items), 3 * len(items)))
    place = Page(b"one", 2 * len(items), 2 * len(items) + 1, b"")  # it only holds a place
    found = [*stretches_of([*one, *two, place, *three, *pages_for(b"two", 5, items[:1])], "x")]
    assert [(list_id, start, len(some)) for list_id, start, some in found] == [
        (b"one", 0, 2 * len(items)),
        (b"one", 3 * len(items), len(items)),
        (b"two", 5, 1),
    ]
    assert [(item.kind, item.data) for item in found[0][2]] == [(item.kind, item.data) for item in items * 2]


def test_what_is_freed_of_a_page_is_gone_and_the_rest_of_it_stays() -> None:
    items = [Item.of(value, CODEC, "x") for value in (*MESSAGES, "text")]
    [page] = pages_for(b"s", 0, items)
    left = emptied(page.data, [0, 2])
    assert emptied(left, [0, 2]) is left
    [(_, _, found)] = stretches_of([Page(b"s", 0, len(items), left)], "x")
    assert found[0] is FREED
    assert found[2] is FREED
    kept = [(item.kind, item.data) for place, item in enumerate(items) if place not in (0, 2)]
    assert [(item.kind, item.data) for item in found if item is not FREED] == kept


def test_a_page_that_cannot_be_read_here_is_not_made_worse_by_freeing_some_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [page] = pages_for(b"s", 0, [Item.of("a text that comes twice " * 20, CODEC, "x")] * 2)
    damaged = page.data[:-3]
    assert emptied(damaged, [0]) == damaged
    monkeypatch.setattr(pages, "_zstd", lambda: None)
    assert emptied(page.data, [0]) == page.data


@pytest.mark.parametrize(
    "rows",
    [b"\xc1", b"", packed([b"a"]) * 2, packed([b"a", b"b"]), packed([[1]]), packed(1), packed([["a", b"b", 1, 2, 3]])],
)
def test_one_damaged_page_among_others_is_told(rows: bytes) -> None:
    [whole] = pages_for(b"s", 0, [Item.of("text", CODEC, "x")])
    damaged = Page(b"s", 1, 2, squeezed(rows))
    with pytest.raises(CheckpointCorrupt, match="thread 't'"):
        list(stretches_of([whole, damaged, Page(b"s", 2, 3, whole.data)], "thread 't'"))


def test_what_claims_to_be_huge_is_refused_before_it_is_unpacked() -> None:
    bomb = bytearray(zstandard.ZstdCompressor(level=1).compress(bytes(300_000)))
    header = zstandard.get_frame_parameters(bytes(bomb))
    assert header.content_size == 300_000
    bomb[5:9] = (3 << 30).to_bytes(4, "little")  # where the frame says how large it will be
    assert zstandard.frame_content_size(bytes(bomb)) == 3 << 30
    with pytest.raises(ValueError, match="too large"):
        unsqueezed(b"\x01" + bytes(bomb))
    bomb[5:9] = (257 << 20).to_bytes(4, "little")
    with pytest.raises(ValueError, match="too large"):
        unsqueezed(b"\x01" + bytes(bomb))
    with pytest.raises(ValueError, match="too large"):
        unsqueezed(b"\x03" + bytes(bomb))
    with pytest.raises(ValueError, match="cut off"):
        unsqueezed(b"\x02" + zlib.compress(b"x" * 1_000)[:-5])
    assert unsqueezed(b"\x02" + zlib.compress(b"x" * 1_000)) == b"x" * 1_000


def test_what_is_too_large_to_be_unpacked_is_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_LARGEST", 1_000)
    assert len(squeezed(bytes(1_000))) < 100
    assert squeezed(bytes(1_001)) == bytes(1_002)
    assert unsqueezed(squeezed(bytes(1_001))) == bytes(1_001)


def test_a_checkpoint_with_more_items_than_are_read_back_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "MOST_ITEMS", 100)
    checkpoint: Any = {
        "channel_values": {"a": ["x" * 9] * 60, "b": ["x" * 9] * 41},
        "channel_versions": {"a": 1, "b": 1},
    }
    drafting = writing.Drafting(thread_named("t"), CODEC, writing.DraftLimits(1 << 20))
    with pytest.raises(TooLarge, match="101 items"):
        drafting.draft(checkpoint, {"a": 1, "b": 1})
    checkpoint["channel_values"]["b"].pop()
    assert len(drafting.draft(checkpoint, {"a": 1, "b": 1}).parsed.refs) == 2


def test_a_damaged_turn_key_is_told() -> None:
    for sealed in (b"", b"\x00", b"\x00short", b"\x01" + bytes(60), b"\x07" + bytes(32)):
        with pytest.raises(CheckpointCorrupt, match="damaged"):
            TurnSeal(None).opened(sealed, b"thread")


def test_states_are_remembered_and_forgotten_on_two_threads_at_once() -> None:
    """An application calls from its loop, and synchronously from elsewhere."""
    states, threads = StateCache(), [thread_named(str(number)) for number in range(20)]

    def remember() -> None:
        for number in range(5_000):
            states[threads[number % 20].key, "", str(number)] = State({}, {})

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(1) as pool:
            remembering = pool.submit(remember)
            while not remembering.done():
                states.forget(threads[0])
            remembering.result()
    finally:
        sys.setswitchinterval(before)
    states.forget(threads[1])
    assert states[threads[1].key, "", "4981"] is None
    assert states[threads[2].key, "", "4982"] is not None
