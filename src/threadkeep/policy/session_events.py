"""Session events as agents write them, plain objects with `kind`, `modality` and `channel`: which may be kept, and how.

`masked` redacts a text by the caller's rules; what stays, and in which shape, is the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from threadkeep.model import MEDIA_META_KEYS
from threadkeep.policy.admit import kept_meta
from threadkeep.ports.models import is_language_tag

Masked = Callable[[str], str]
SessionEvent = Mapping[str, Any]
_MEDIA = ("voice", "image")


def is_persistable(event: SessionEvent) -> bool:
    """User text, a voice or image message that has its summary, and model text; nothing else."""
    kind, modality = event.get("kind"), event.get("modality")
    if kind == "UserMessage" and modality == "text":
        return True
    if kind == "UserMessage" and modality in _MEDIA:
        return bool(event.get("summary"))
    return kind == "ModelResponse" and event.get("channel") == "text"


def kept_events(events: Iterable[SessionEvent], masked: Masked) -> list[dict[str, Any]]:
    """What may be written of these, in their order: redacted, with only the fields that are allowed to stay.

    An event whose text is none is left out: it must not cost the others.
    """
    return [_kept(event, masked) for event in events if is_persistable(event) and _has_plain_text(event)]


def _has_plain_text(event: SessionEvent) -> bool:
    return all(isinstance(event.get(name), str | None) for name in ("text", "summary"))


def kept_messages(events: Iterable[SessionEvent], masked: Masked) -> list[dict[str, Any]]:
    """As `kept_events`, without what is empty; what was typed beside a picture stands before it, as one of its own."""
    kept = kept_events((part for event in events for part in _typed_apart(event)), masked)
    return [one for one in kept if one.get("text") or one.get("summary") or one["kind"] == "ModelResponse"]


def session_record(
    session_id: str,
    events: Iterable[SessionEvent],
    masked: Masked,
    state: Any = None,
    started: Any = None,
    ended: Any = None,
) -> dict[str, Any]:
    """A session's long-term record. `state` is anything with `get`, or None."""
    persistable = [event for event in events if is_persistable(event)]
    said = [event for event in persistable if event["kind"] == "UserMessage"]
    intent = state.get("conversation.intentSummary") if state is not None else None
    locale = state.get("user.locale") if state is not None else None
    return {
        "sessionId": session_id,
        # The text of a recording is its transcript; beside a picture it is what the user typed.
        "user_messages": [masked(e["text"]) for e in said if e["modality"] != "voice" and e.get("text")],
        "user_media_summaries": [
            {"summary": masked(e["summary"]), "modality": e["modality"], "meta": _meta(e)}
            for e in said
            if e.get("summary")
        ],
        "model_responses": [masked(e.get("text") or "") for e in persistable if e["kind"] == "ModelResponse"],
        "meta": {
            "startedAt": _moment(started),
            "endedAt": _moment(ended),
            "locale": locale if is_language_tag(locale) else None,
            "intent": masked(intent) if isinstance(intent, str) else None,
        },
    }


def _typed_apart(event: SessionEvent) -> Sequence[SessionEvent]:
    if event.get("modality") == "image" and event.get("text") and is_persistable(event):
        return {"kind": event["kind"], "modality": "text", "text": event["text"], "ts": event.get("ts")}, event
    return (event,)


def _kept(event: SessionEvent, masked: Masked) -> dict[str, Any]:
    kind, modality, ts = event["kind"], event.get("modality"), _moment(event.get("ts"))
    if kind == "UserMessage" and modality in _MEDIA:
        summary = masked(event["summary"])
        return {"kind": kind, "modality": modality, "summary": summary, "meta": _meta(event), "ts": ts}
    return {"kind": kind, "text": masked(event.get("text") or ""), "ts": ts}


def _meta(event: SessionEvent) -> dict[str, Any]:
    """The four keys, None where absent, and of a picture its kind where it is known.

    Only values of the form they should have: free text would go around redaction here.
    """
    meta: Any = event.get("meta")
    kept = kept_meta(meta, event.get("modality") or "")[0] if isinstance(meta, Mapping) else {}
    return dict.fromkeys(MEDIA_META_KEYS) | kept


def _moment(value: Any) -> Any:
    """A time as agents give it: a number, a datetime, or ISO 8601."""
    if isinstance(value, str):
        try:
            datetime.fromisoformat(value)
        except ValueError:
            return None
        return value
    return value if isinstance(value, int | float | datetime) else None
