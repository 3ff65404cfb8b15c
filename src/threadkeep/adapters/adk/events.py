"""ADK's events as events of ours, and back. A frame is an event without its text, calls and results.

After a turn only frames remain, and the archive has the text. What a frame cannot hold (calls, results, media,
metadata of a search) is stored encrypted while the turn is in flight, and deleted with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

from google.adk.events.event import Event
from google.genai import types

from threadkeep.adapters.adk.state import masked
from threadkeep.errors import InvalidEvent
from threadkeep.events import DebugTrace, ModelResponse, Origin, Thought, ToolRequest, ToolResult, UserMessage
from threadkeep.events import Event as OurEvent
from threadkeep.policy.admit import kept_meta

MEDIA_SUMMARY = "media_summary"  # in an event's custom metadata: {"summary", "modality", "meta"}
_FIELDS = {
    "id",
    "invocation_id",
    "author",
    "timestamp",
    "branch",
    "isolation_scope",
    "turn_complete",
    "finish_reason",
    "error_code",
    "interrupted",
    "node_info",
}
_GIVEN = ("author", "branch", "isolation_scope", "error_code", "node_info")  # by the author of the agent
# An agent's failure may carry any text here: ADK takes an exception's `status`, whatever it says.
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.]{0,63}|[0-9]{1,4}")
_ACTIONS = {
    "artifact_delta",
    "transfer_to_agent",
    "escalate",
    "end_of_agent",
    "rewind_before_invocation_id",
    "skip_summarization",
}
Frame = dict[str, Any]
_BY_USER, _BY_MODEL = Origin("user", "adk"), Origin("model", "adk")


class Kept(NamedTuple):
    """The message of an event: its id, and its `seq` in the conversation."""

    message_id: str
    seq: int


def said_in(event: Event) -> list[OurEvent]:
    """The event's parts as events for policy. At most one of them is a message, and it has the event's id."""
    parts = _parts(event)
    ts = datetime.fromtimestamp(event.timestamp, UTC)
    text = "\n".join(part.text for part in parts if part.text and not part.thought)
    rest = [ours for part in parts if (ours := _refused(part)) is not None]
    summary = _summary(event) if event.author == "user" else None
    if summary is not None:
        return [_medium(event, summary, text, ts), *rest]
    if text and event.author == "user":
        return [UserMessage(text, id=event.id, ts=ts, origin=_BY_USER), *rest]
    if text:
        return [ModelResponse(text, id=event.id, ts=ts, origin=_BY_MODEL), *rest]
    compacted = event.actions.compaction
    if compacted is not None and (text := _text_of(compacted.compacted_content)):
        return [ModelResponse(text, id=event.id, ts=ts, origin=_BY_MODEL)]
    media = [UserMessage(modality=_modality(part)) for part in parts if part.inline_data or part.file_data]
    return [*rest, *media]


def unsummarised(event: Event) -> str | None:
    """What a user sent and nothing can be kept of: the modality of a medium that came without its summary."""
    if event.author != "user" or _summary(event) is not None:
        return None
    return next((_modality(part) for part in _parts(event) if part.inline_data or part.file_data), None)


def session_events(event: Event) -> list[dict[str, Any]]:
    """The event as filters of session events know it: typed text beside a picture is an event of its own."""
    ours = said_in(event)
    message = None if event.partial else message_in(ours)
    if message is None:
        return [{"kind": type(one).__name__} for one in ours if not isinstance(one, UserMessage | ModelResponse)]
    if isinstance(message, ModelResponse):
        return [{"kind": "ModelResponse", "channel": "text", "text": message.text, "ts": event.timestamp}]
    medium = {"kind": "UserMessage", "modality": message.modality, "meta": message.meta, "ts": event.timestamp}
    if message.modality == "text":
        return [medium | {"text": message.text}]
    typed, summary = _typed_and_summary(_summary(event) or {}, text_of(event) or "")
    words = {"kind": "UserMessage", "modality": "text", "text": typed, "ts": event.timestamp}
    return [*([words] if typed else []), medium | {"summary": summary}]


def checked(event: Any) -> Event:
    """Raises `InvalidEvent` for what could not be read again: nothing of it is written."""
    if not isinstance(event, Event):
        raise InvalidEvent("event", f"is a {type(event).__name__}", "give an ADK Event")
    if not isinstance(event.timestamp, int | float) or not -1e11 < event.timestamp < 1e11:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidEvent("event.timestamp", "is not a time", "give seconds since 1970")
    return event


def frame_of(event: Event, message: Kept | None, state: Mapping[str, Any], redacted: Callable[[str], str]) -> Frame:
    """`state` is what of the event's state may be kept. Names that an application gives are kept as text is."""
    data = event.model_dump(mode="json", include=_FIELDS, exclude_none=True, exclude_defaults=True)
    data |= {name: masked(data[name], redacted) for name in _GIVEN if name in data}
    if not _CODE.fullmatch(data.get("error_code", "")):
        data.pop("error_code", None)
    data |= {"id": event.id, "timestamp": event.timestamp}
    actions = event.actions.model_dump(mode="json", include=_ACTIONS, exclude_none=True, exclude_defaults=True)
    actions = {name: masked(value, redacted) for name, value in actions.items()}
    actions |= {"state_delta": dict(state)} if state else {}
    frame: Frame = {"event": data | ({"actions": actions} if actions else {})}
    if event.content is not None:
        frame["role"] = event.content.role
    if event.actions.compaction is not None:
        frame["compaction"] = [event.actions.compaction.start_timestamp, event.actions.compaction.end_timestamp]
    medium = _summary(event) if event.author == "user" and message is not None else None
    if medium is not None:  # what memory keeps of it beside its summary, which is the message
        modality = medium.get("modality", "image")
        meta = medium.get("meta")
        kept = kept_meta(meta, modality)[0] if isinstance(meta, Mapping) else {}
        frame["medium"] = {"modality": modality, "meta": kept}
        if typed := _typed_and_summary(medium, text_of(event) or "")[0]:
            frame["medium"]["typed"] = len(redacted(typed))
    return frame | ({} if message is None else {"message": message.message_id, "seq": message.seq})


def rebuilt(frame: Frame, text: str | None) -> Event:
    event = Event.model_validate(frame["event"])
    content = None if text is None else types.Content(role=frame.get("role"), parts=[types.Part(text=text)])
    if "compaction" in frame and content is not None:
        start, end = frame["compaction"]
        event.actions.compaction = _compaction(start, end, content)
    elif content is not None:
        event.content = content
    if "medium" in frame and text is not None:
        event.custom_metadata = {MEDIA_SUMMARY: _medium_kept(frame, text)}
    return event


def _medium_kept(frame: Frame, text: str) -> dict[str, Any]:
    """Its summary stands below what was typed, unless masking the two together has moved where that ends."""
    medium: dict[str, Any] = dict(frame["medium"])
    typed: int = medium.pop("typed", 0)
    return {"summary": text[typed + 1 :] if typed and text[typed : typed + 1] == "\n" else text, **medium}


def without_words(event: Event, state: Mapping[str, Any]) -> bytes:
    """The event as it is stored in flight: without its text, which is in the archive alone, and with `state`."""
    copy = event.model_copy(deep=True)
    copy.actions.state_delta = dict(state)
    if message_in(said_in(event)) is not None:
        for part in _spoken(copy):
            part.text = ""
    return copy.model_dump_json(exclude_none=True).encode()


def with_words(data: bytes, text: str | None, frame: Frame | None) -> Event:
    event = Event.model_validate_json(data)
    if frame is not None and "medium" in frame and text is not None:
        event.custom_metadata = {**(event.custom_metadata or {}), MEDIA_SUMMARY: _medium_kept(frame, text)}
    spoken = [part for part in _parts(event) if part.text is not None and not part.thought]
    if text is not None and spoken:
        spoken[0].text = text
    return event


def message_in(ours: Sequence[OurEvent]) -> UserMessage | ModelResponse | None:
    return next((one for one in ours if isinstance(one, UserMessage | ModelResponse) and one.id), None)


def is_whole(frame: Frame, text: str | None, event: Event, state: Mapping[str, Any]) -> bool:
    """Whether nothing of the event is lost when only its frame and its text are kept."""
    copy = event.model_copy(deep=True)
    copy.actions.state_delta = dict(state)
    return rebuilt(frame, text) == copy


def is_only_traffic(event: Event) -> bool:
    """There is content, and nothing of it may be kept."""
    return bool(_parts(event)) and message_in(said_in(event)) is None


def has_content(event: Event) -> bool:
    return bool(_parts(event))


def text_of(event: Event) -> str | None:
    spoken = _spoken(event)
    return "\n".join(part.text or "" for part in spoken) if spoken else None


def answered_calls(event: Event) -> set[str]:
    """Ids of calls that the user's side has answered."""
    answers = event.get_function_responses() if event.author == "user" else []
    return {answer.id for answer in answers if answer.id}


def ends_turn(event: Event) -> bool:
    """Whether it looks like an agent's last event of a turn."""
    if event.author == "user" or event.long_running_tool_ids:
        return False
    return event.is_final_response() and (bool(_parts(event)) or event.error_code is not None)


def _parts(event: Event) -> list[types.Part]:
    return list(event.content.parts or []) if event.content is not None else []


def _spoken(event: Event) -> list[types.Part]:
    return [part for part in _parts(event) if part.text and not part.thought]


def _text_of(content: types.Content) -> str:
    return "\n".join(part.text for part in content.parts or [] if part.text and not part.thought)


def _refused(part: types.Part) -> OurEvent | None:
    if part.thought:
        return Thought("")
    if part.function_call is not None:
        return ToolRequest("")
    if part.function_response is not None:
        return ToolResult("")
    if part.executable_code is not None or part.code_execution_result is not None:
        return DebugTrace("")
    return None


def _summary(event: Event) -> Mapping[str, Any] | None:
    given: Any = (event.custom_metadata or {}).get(MEDIA_SUMMARY)
    return cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else None


def _medium(event: Event, given: Mapping[str, Any], text: str, ts: datetime) -> UserMessage:
    meta, (typed, summary) = given.get("meta"), _typed_and_summary(given, text)
    return UserMessage(
        modality=given.get("modality", "image"),
        summary=f"{typed}\n{summary}" if typed else summary,
        meta=cast("Mapping[str, Any]", meta) if isinstance(meta, Mapping) else {},
        id=event.id,
        ts=ts,
        origin=_BY_USER,
    )


def _typed_and_summary(given: Mapping[str, Any], text: str) -> tuple[str, Any]:
    """What was typed beside a picture is the user's own; beside a recording it is the transcript, and not kept.

    Of an event that was read again the text is both, one under the other.
    """
    summary: Any = given.get("summary")
    if given.get("modality", "image") != "image" or not isinstance(summary, str):
        return "", summary
    return text.removesuffix(summary).removesuffix("\n"), summary


def _modality(part: types.Part) -> Any:
    mime = (part.inline_data.mime_type if part.inline_data else part.file_data and part.file_data.mime_type) or ""
    return "voice" if mime.startswith("audio/") else "image"


def _compaction(start: float, end: float, content: types.Content) -> Any:
    from google.adk.events.event_actions import EventCompaction

    return EventCompaction(start_timestamp=start, end_timestamp=end, compacted_content=content)


def packed(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def unpacked(data: bytes) -> Any:
    return json.loads(data.decode("utf-8", "surrogatepass"))
