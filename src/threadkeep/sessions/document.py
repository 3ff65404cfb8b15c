"""A session as the JSON document applications keep: `{createdAt, messages: [{role, content, ts}], language}`.

Documents written by others are read defensively: what has no meaning is left out, and nothing in them is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from threadkeep.model import Role, Session
from threadkeep.ports.models import as_tag, names_a_language

_ROLES: dict[Any, Role] = {"user": "user", "assistant": "assistant"}


@dataclass(frozen=True, slots=True)
class DocumentMessage:
    role: Role
    content: str
    ts: datetime | None = None


@dataclass(frozen=True, slots=True)
class SessionDocument:
    created_at: datetime | None = None
    messages: tuple[DocumentMessage, ...] = ()
    language: str | None = None


def as_document(session: Session) -> dict[str, Any]:
    """`language` is left out until one is known."""
    document: dict[str, Any] = {
        "createdAt": session.created_at.isoformat(),
        "messages": [
            {"role": message.role, "content": message.content, "ts": message.ts.isoformat()}
            for message in session.messages
        ],
    }
    return document | ({"language": session.language} if names_a_language(session.language) else {})


def read_document(document: Any) -> SessionDocument:
    """Also of `{"created": true}`, of a missing or wrong-typed `messages`, and of entries with odd roles."""
    if not isinstance(document, Mapping):
        return SessionDocument()
    fields = cast("Mapping[str, Any]", document)
    entries: Any = fields.get("messages")
    return SessionDocument(
        created_at=_time(fields.get("createdAt")),
        messages=tuple(filter(None, map(_message, cast("list[Any]", entries)))) if isinstance(entries, list) else (),
        language=as_tag(fields.get("language")),
    )


def _message(entry: Any) -> DocumentMessage | None:
    if not isinstance(entry, Mapping):
        return None
    fields = cast("Mapping[str, Any]", entry)
    role, content = fields.get("role"), fields.get("content")
    if not isinstance(role, str) or role not in _ROLES or not isinstance(content, str) or not content.strip():
        return None
    return DocumentMessage(_ROLES[role], content, _time(fields.get("ts")))


def _time(value: Any) -> datetime | None:
    """ISO 8601; one without a zone is taken as UTC, which is what such documents mean."""
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
