"""The author's own Python and ours, side by side: same calls, same answers."""

import inspect
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.requirements import search_bot_snippet as author
from threadkeep import compat

FUNCTIONS = ["redact", "is_persistable_event", "persist_memory_from_session", "put_tool_cache"]
WORDS = st.sampled_from(["", "xin chào", "mail an@example.com", "gọi 0912 345 678 nhé", "two\nlines"])
META = st.fixed_dictionaries(
    {},
    optional={
        "language": st.sampled_from(["vi", "pl-PL", "zh-Hant"]),
        "mime": st.sampled_from(["audio/ogg", "image/png"]),
        "durationMs": st.integers(0, 10**6),
        "sha256": st.just("a" * 64),
        "path": WORDS,
        "eventId": WORDS | st.none(),
    },
)
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(
            ["UserMessage", "ModelResponse", "ToolRequest", "ToolResult", "PlannerTrace", "", None]
        ),
        "modality": st.sampled_from(["text", "voice", "image", "video", "", None]),
        "channel": st.sampled_from(["text", "audio", "function_call", None]),
        "text": WORDS,
        "summary": WORDS | st.none(),
        "meta": META,
        "args": WORDS,
        "ts": st.integers(0, 9),
    },
)


class Upserts(list[dict[str, Any]]):
    upsert = list.append


def record_by(tools: ModuleType, **session: Any) -> dict[str, Any]:
    memory = Upserts()
    tools.persist_memory_from_session(SimpleNamespace(id="s1", memory=memory, **session))
    (record,) = memory
    return record


@pytest.fixture
def _masking_as_we_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is masked is another question than what is kept."""
    monkeypatch.setattr(author, "redact", compat.redact)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_takes_what_the_authors_takes(name: str) -> None:
    ours, theirs = (inspect.signature(getattr(module, name)).parameters for module in (compat, author))
    assert [(p.name, p.default, p.kind) for p in ours.values()] == [
        (p.name, p.default, p.kind) for p in theirs.values()
    ]


@given(EVENTS)
def test_the_filter_answers_as_the_authors_does_for_any_event(event: dict[str, Any]) -> None:
    assert compat.is_persistable_event(event) is author.is_persistable_event(event)


def without_transcript(event: dict[str, Any]) -> dict[str, Any]:
    spoken = event.get("modality") == "voice"
    return {key: value for key, value in event.items() if key != "text" or not spoken}


@pytest.mark.usefixtures("_masking_as_we_do")
@given(st.lists(EVENTS.map(without_transcript), max_size=6))
def test_any_session_becomes_the_record_that_the_authors_code_makes(events: list[dict[str, Any]]) -> None:
    state = {"user.locale": "vi-VN", "conversation.intentSummary": "find a cafe"}
    for more in ({}, {"state": state}, {"state": state, "startedAt": 1, "endedAt": "2026-01-01"}):
        assert record_by(compat, events=events, **more) == record_by(author, events=events, **more)


def test_free_text_in_a_field_that_is_not_redacted_is_left_out_of_the_record() -> None:
    mail = "write to an@example.com"
    meta = {"language": mail, "mime": mail, "durationMs": {"raw": mail}, "sha256": mail}
    voice = {"kind": "UserMessage", "modality": "voice", "summary": "asks for a room", "meta": meta, "ts": mail}
    state = {"user.locale": mail, "conversation.intentSummary": None}
    record = record_by(compat, events=[voice], state=state, startedAt=mail, endedAt=[mail])
    assert "example" not in str(record)
    assert "example" not in str(compat.before_persist([voice]))


def test_a_transcript_beside_the_summary_is_left_out_of_the_record() -> None:
    voice = {"kind": "UserMessage", "modality": "voice", "text": "every word", "summary": "asks for a room"}
    record = record_by(compat, events=[voice])
    assert (record["user_messages"], len(record["user_media_summaries"])) == ([], 1)


@given(st.lists(st.from_regex(author.PII_PATTERNS[0], fullmatch=True), min_size=1, max_size=3).map(" and ".join))
def test_no_address_that_the_authors_pattern_knows_is_left(text: str) -> None:
    masked = compat.redact(f"write to {text} please")
    assert author.PII_PATTERNS[0].search(masked) is None
    assert "[REDACTED]" in masked


@pytest.mark.parametrize("text", ["a_b@x_y.com", "%40@x.com", "a..b@x.com", "ann@-x.com", "nguyễn.văn@công-ty.vn"])
def test_an_address_is_masked_whole_in_the_authors_form(text: str) -> None:
    assert compat.redact(f"mail {text}!").endswith("[REDACTED]!")
    assert author.PII_PATTERNS[0].search(compat.redact(text)) is None


@pytest.mark.parametrize(
    "number", ["0912 345 678", "+84 912 345 678", "+48 601-234-567", "0912.345.678", "+1 415 555 0132"]
)
def test_a_phone_number_that_the_author_masks_is_masked(number: str) -> None:
    text = f"gọi {number} nhé"
    assert author.redact(text) != text
    assert compat.redact(text) == "gọi [REDACTED] nhé"


@pytest.mark.parametrize(
    "text", ["order 4471 2290 118", "on 2021-05-03 12:30", "version 10.15.7.2003", "1 000 000 000"]
)
def test_an_order_a_date_or_a_version_that_the_author_would_mask_stays(text: str) -> None:
    assert author.redact(text) != text
    assert compat.redact(text) == text


@pytest.mark.parametrize("tools", [author, compat], ids=["author", "ours"])
def test_a_tool_result_is_set_in_the_authors_words(tools: ModuleType) -> None:
    calls: list[Any] = []
    state = SimpleNamespace(set=lambda *values, **options: calls.append((values, options)))
    tools.put_tool_cache(state, "searchResults", ["a"])
    tools.put_tool_cache(state, "page", "b", ttl_seconds=600)
    flags = {"persist": False, "ephemeral": True}
    assert calls == [
        (("tool.temp.searchResults", ["a"]), {"ttl": 900, **flags}),
        (("tool.temp.page", "b"), {"ttl": 600, **flags}),
    ]
