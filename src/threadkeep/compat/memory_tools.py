"""The memory tools of an ADK-style agent: they work on plain dict events and on any session-like object."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from threadkeep.policy.fields import is_language_tag, kept_meta
from threadkeep.policy.redact import RedactionRules, Redactor
from threadkeep.record import MEDIA_META_KEYS

_redactor = Redactor(RedactionRules(placeholder="plain"))
# Callers know this form of an address from their own code; it allows hosts that no mail could reach, such as `x_y.com`.
# It starts only where a run of such characters does: a long run without an `@` is walked once, not once per character.
_ADDRESS_LIKE = re.compile(r"(?<![\w.%+-])[\w.%+-]++@[\w.-]+\.[A-Za-z]{2,}")


def redact(text: str) -> str:
    """The text with personal data and secrets replaced by `[REDACTED]`."""
    return _ADDRESS_LIKE.sub("[REDACTED]", _redactor(text).text) if text else text


def is_persistable_event(e: Mapping[str, Any]) -> bool:
    """User text, a voice or image message that has its summary, and model text; nothing else."""
    kind, modality = e.get("kind"), e.get("modality")
    if kind == "UserMessage" and modality == "text":
        return True
    if kind == "UserMessage" and modality in ("voice", "image"):
        return bool(e.get("summary"))
    return kind == "ModelResponse" and e.get("channel") == "text"


def before_persist(events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What may be written of these events: redacted, with only the fields that are allowed to stay."""
    return [_kept(event) for event in events if is_persistable_event(event)]


def _kept(event: Mapping[str, Any]) -> dict[str, Any]:
    kind, modality = event["kind"], event.get("modality")
    if modality in ("voice", "image"):
        meta = _meta_of(event)
        return {
            "kind": kind,
            "modality": modality,
            "summary": redact(event["summary"]),
            "meta": meta,
            "ts": event.get("ts"),
        }
    return {"kind": kind, "text": redact(event.get("text") or ""), "ts": event.get("ts")}


def persist_memory_from_session(session: Any) -> None:
    """Build the session's memory record from what may be kept and hand it to `session.memory.upsert`, if there is one.

    `session` needs `id` and `events`; `state`, `startedAt`, `endedAt` and `memory` are used when present.
    """
    memory = getattr(session, "memory", None)
    if memory is not None:
        memory.upsert(memory_record(session))


def memory_record(session: Any) -> dict[str, Any]:
    events = [event for event in session.events if is_persistable_event(event)]
    said = [event for event in events if event["kind"] == "UserMessage"]
    state = getattr(session, "state", None)
    intent = state.get("conversation.intentSummary") if state is not None else None
    locale = state.get("user.locale") if state is not None else None
    return {
        "sessionId": session.id,
        "user_messages": [redact(e["text"]) for e in said if e["modality"] == "text" and e.get("text")],
        "user_media_summaries": [_media_summary(e) for e in said if e.get("summary")],
        "model_responses": [redact(e.get("text") or "") for e in events if e["kind"] == "ModelResponse"],
        "meta": {
            "startedAt": _moment(getattr(session, "startedAt", None)),
            "endedAt": _moment(getattr(session, "endedAt", None)),
            "locale": locale if is_language_tag(locale) else None,
            "intent": redact(intent) if isinstance(intent, str) else None,
        },
    }


def _media_summary(event: Mapping[str, Any]) -> dict[str, Any]:
    meta = _meta_of(event)
    return {
        "summary": redact(event["summary"]),
        "modality": event.get("modality"),
        "meta": {key: meta.get(key) for key in MEDIA_META_KEYS},
    }


def _meta_of(event: Mapping[str, Any]) -> dict[str, Any]:
    """The four keys, and only values of the form they should have: free text would go around redaction here."""
    meta: Any = event.get("meta")
    return kept_meta(meta)[0] if isinstance(meta, Mapping) else {}


def _moment(value: Any) -> Any:
    """A time as agents give it: a number, a datetime, or ISO 8601."""
    if isinstance(value, str):
        try:
            datetime.fromisoformat(value)
        except ValueError:
            return None
        return value
    return value if isinstance(value, int | float | datetime) else None


def put_tool_cache(state: Any, key: str, value: Any, ttl_seconds: int = 900) -> None:
    """Keep a tool's result for the next turns: under `tool.temp.`, with a TTL, never persisted."""
    state.set(f"tool.temp.{key}", value, ttl=ttl_seconds, persist=False, ephemeral=True)
