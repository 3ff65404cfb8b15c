"""The one door: what passes, what is refused and counted, what is malformed and named."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

import pytest

from threadkeep import DebugTrace, ModelResponse, Scope, SystemNote, Thought, ToolRequest, ToolResult, UserMessage
from threadkeep.errors import InvalidEvent, TooLarge
from threadkeep.model import Admission
from threadkeep.policy.admit import MessageIds, Rules, admit
from threadkeep.policy.redact import redact
from threadkeep.testing.clock import START

SCOPE = Scope("shop", "u1", "c1")
META = {"language": "vi", "mime": "audio/ogg", "durationMs": 900, "sha256": "a" * 64}


def admitted(*events: Any, key: str | None = None, scope: Scope = SCOPE) -> Admission:
    return admit(list(events), Rules(redact, max_bytes=1_000), MessageIds(scope, key), START)


def test_user_text_and_model_text_pass_in_order() -> None:
    admission = admitted(UserMessage("hello"), ModelResponse("hi"), UserMessage("bye"))
    assert [(d.role, d.content) for d in admission.drafts] == [("user", "hello"), ("assistant", "hi"), ("user", "bye")]
    assert (admission.refused, admission.stripped, admission.redacted) == ({}, {}, {})


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (ToolRequest("search", {"q": "canary"}), "tool_request"),
        (ToolResult("search", "canary"), "tool_result"),
        (SystemNote("canary"), "system_note"),
        (Thought("canary"), "thought"),
        (DebugTrace("canary"), "debug_trace"),
        (ModelResponse("canary", channel="audio"), "non_text_channel"),
        (UserMessage(modality="voice", data=b"canary"), "media_without_summary"),
        (UserMessage("a canary transcript", modality="image"), "media_without_summary"),
        (UserMessage(" \n\t"), "empty_text"),
        (ModelResponse(None), "empty_text"),
    ],
)
def test_what_may_not_be_kept_is_counted_and_nothing_more(event: Any, reason: str) -> None:
    admission = admitted(event, event)
    assert (admission.drafts, dict(admission.refused)) == ((), {reason: 2})
    assert "canary" not in repr(admission)


def test_media_is_kept_as_its_summary_with_the_four_allowed_facts() -> None:
    event = UserMessage(
        "a transcript", modality="voice", summary="asks for a room", meta={**META, "gps": "secret"}, data=b"raw"
    )
    admission = admitted(event)
    (draft,) = admission.drafts
    assert (draft.content, draft.modality, dict(draft.meta)) == ("asks for a room", "voice", META)
    assert dict(admission.stripped) == {"raw_media": 1, "media_text": 1, "meta": 1}
    assert "secret" not in repr(admission)


@pytest.mark.parametrize(
    "meta",
    [
        {"durationMs": float("nan")},
        {"durationMs": float("inf")},
        {"durationMs": -1},
        {"durationMs": True},
        {"durationMs": 10**30},
        {"durationMs": "900 ms"},
        {"mime": "call me at 555"},
        {"language": "not a tag"},
        {"sha256": "A" * 63},
        {"mime": ["audio/ogg"]},
        {7: "a key that is no string"},
    ],
    ids=repr,
)
def test_a_media_fact_in_another_form_is_dropped(meta: Any) -> None:
    admission = admitted(UserMessage(modality="image", summary="a cat", meta=meta))
    assert dict(admission.drafts[0].meta) == {}
    assert dict(admission.stripped) == {"meta": 1}


def test_function_calls_are_stripped_from_an_answer_that_is_kept() -> None:
    admission = admitted(ModelResponse("booked", function_calls=({"args": "canary"}, {"args": "canary"})))
    assert dict(admission.stripped) == {"function_call_arguments": 2}
    assert "canary" not in repr(admission)


@pytest.mark.parametrize("odd", [5, iter([1, 2]), object()])
def test_what_is_stripped_may_be_of_any_type(odd: Any) -> None:
    admission = admitted(ModelResponse("hi", function_calls=odd), UserMessage("hello", meta=odd))
    assert dict(admission.stripped) == {"function_call_arguments": 1, "meta": 1}


def test_text_is_redacted_and_counted_by_type() -> None:
    admission = admitted(UserMessage("mail ann@example.org or bob@example.org"))
    assert admission.drafts[0].content == "mail [REDACTED:EMAIL] or [REDACTED:EMAIL]"
    assert dict(admission.redacted) == {"EMAIL": 2}


class _NoOffset(tzinfo):
    def utcoffset(self, dt: datetime | None) -> None:
        return None


MALFORMED: list[tuple[Any, str]] = [
    (UserMessage(b"bytes"), "text"),  # pyright: ignore[reportArgumentType]
    (UserMessage(7), "text"),  # pyright: ignore[reportArgumentType]
    (UserMessage("x", modality="video"), "modality"),  # pyright: ignore[reportArgumentType]
    (UserMessage("x", modality=["text"]), "modality"),  # pyright: ignore[reportArgumentType]
    (UserMessage(modality="voice", summary=7), "summary"),  # pyright: ignore[reportArgumentType]
    (UserMessage(modality="voice", summary="x", meta=["mime"]), "meta"),  # pyright: ignore[reportArgumentType]
    (UserMessage("x", language="english please"), "language"),
    (UserMessage("x", language=7), "language"),  # pyright: ignore[reportArgumentType]
    (UserMessage("x", id=""), "id"),
    (UserMessage("x", id="a\nb"), "id"),
    (UserMessage("x", id="\ud800"), "id"),
    (UserMessage("x", id="i" * 256), "id"),
    (UserMessage("x", id=7), "id"),  # pyright: ignore[reportArgumentType]
    (UserMessage("x", ts=datetime(2026, 1, 1)), "ts"),
    (UserMessage("x", ts=datetime(2026, 1, 1, tzinfo=_NoOffset())), "ts"),
    (UserMessage("x", ts="2026-01-01"), "ts"),  # pyright: ignore[reportArgumentType]
    (UserMessage("x", ts=datetime.min.replace(tzinfo=timezone(timedelta(hours=7)))), "ts"),
    (UserMessage("x", ts=datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))), "ts"),
    (UserMessage("x", ts=datetime.min.replace(tzinfo=UTC)), "ts"),
    ({"kind": "UserMessage", "text": "x"}, "kind"),
    ("hello", "kind"),
    (None, "kind"),
    (UserMessage, "kind"),
]


@pytest.mark.parametrize(("event", "field"), MALFORMED, ids=lambda value: repr(value)[:40])
def test_a_malformed_event_is_named_by_its_place_and_nothing_passes(event: Any, field: str) -> None:
    with pytest.raises(InvalidEvent) as caught:
        admitted(UserMessage("fine"), event)
    assert caught.value.field == f"events[1].{field}"


@pytest.mark.parametrize("year", [1, 1600, 9999])
def test_the_far_past_and_the_far_future_are_times_too(year: int) -> None:
    ts = datetime(year, 6, 1, tzinfo=UTC)
    assert admitted(UserMessage("x", ts=ts)).drafts[0].ts == ts


def _one_by_one() -> Iterator[UserMessage]:
    yield UserMessage("x")


@pytest.mark.parametrize(
    "events",
    ["hello", UserMessage("x"), None, {"a": 1}, {UserMessage}, _one_by_one()],
    ids=lambda events: type(events).__name__,
)
def test_events_come_as_a_list(events: Any) -> None:
    with pytest.raises(InvalidEvent) as caught:
        admit(events, Rules(redact), MessageIds(SCOPE), START)
    assert caught.value.field == "events"


def test_a_message_over_the_limit_is_refused_with_the_limit_named() -> None:
    with pytest.raises(TooLarge, match=r"events\[0\].text: is 1,001 bytes; the limit is 1,000"):
        admitted(UserMessage("x" * 1_001))
    with pytest.raises(TooLarge):
        admitted(UserMessage("ł" * 501))
    assert admitted(UserMessage("ł" * 500)).drafts


def test_too_many_events_are_refused_with_the_limit_named() -> None:
    with pytest.raises(TooLarge, match="the limit is 1,000"):
        admitted(*[Thought("x")] * 1_001)


def test_a_subclass_of_a_string_or_of_an_event_passes_as_what_it_is() -> None:
    class Text(str):
        __slots__ = ()

    class Spoken(UserMessage):
        pass

    class SecretTool(ToolResult):
        pass

    assert admitted(Spoken(Text("hello"))).drafts[0].content == "hello"
    with pytest.raises(InvalidEvent):
        admitted(SecretTool("search", "canary"))


def test_without_a_key_every_message_gets_a_new_uuid7_that_sorts_by_time() -> None:
    ids = [draft.id for draft in admitted(*[UserMessage("x")] * 50).drafts]
    assert len(set(ids)) == 50
    assert all(id_[14] == "7" for id_ in ids)


def test_with_a_key_the_ids_are_the_same_each_time_and_differ_between_places() -> None:
    events = [UserMessage("one"), UserMessage("two")]
    first = [draft.id for draft in admitted(*events, key="k").drafts]
    assert [draft.id for draft in admitted(*events, key="k").drafts] == first
    others = [
        admitted(*events, key="K"),
        admitted(*events, key="k", scope=SCOPE.with_conversation("c2")),
        admitted(*events, key="k", scope=Scope("shop", "U1", "c1")),
    ]
    assert len({draft.id for other in others for draft in other.drafts} | set(first)) == 8


def fingerprint(*events: Any) -> bytes:
    return admitted(*events, key="k1").digest


def test_the_fingerprint_is_of_what_is_kept_and_forgets_new_ids_and_times() -> None:
    base = fingerprint(UserMessage("mail ann@example.org"))
    assert fingerprint(UserMessage("mail bob@example.org")) == base  # both kept as the same text
    assert fingerprint(UserMessage("mail nobody")) != base
    assert fingerprint(UserMessage("mail ann@example.org"), Thought("x")) != base
    assert fingerprint(UserMessage("mail ann@example.org", ts=START)) != base


def test_two_texts_that_json_writes_alike_have_two_fingerprints() -> None:
    assert fingerprint(UserMessage("\ud83d\ude00")) != fingerprint(UserMessage("😀"))
