"""Admission: what may be kept of a list of events, redacted and stripped, and a count of everything else.

Pure. Only user text, a summary of voice or image, and model text pass; nothing else can, because nothing else is
ever turned into a `Draft`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from threadkeep.errors import InvalidEvent, InvalidInput, TooLarge
from threadkeep.events import (
    AUTHORS,
    IN_PROCESS,
    Author,
    DebugTrace,
    ModelResponse,
    Origin,
    SystemNote,
    Thought,
    ToolRequest,
    ToolResult,
    UserMessage,
)
from threadkeep.model import Admission, Draft
from threadkeep.policy.fields import (
    ANSWERS,
    DEFAULT_MAX_BYTES,
    checked_id,
    checked_language,
    checked_text,
    checked_time,
    kept_meta,
    response_meta,
)
from threadkeep.policy.ids import MessageIds
from threadkeep.ports.redactor import Redactor
from threadkeep.scope import Scope

_COUNTER = re.compile(r"(?<![0-9A-Za-z])[0-9A-Fa-f]*[0-9][0-9A-Fa-f]*(?:-[0-9A-Fa-f]+)*(?![0-9A-Za-z@])")
REFUSED_KINDS: dict[type[Any], str] = {
    ToolRequest: "tool_request",
    ToolResult: "tool_result",
    SystemNote: "system_note",
    Thought: "thought",
    DebugTrace: "debug_trace",
}


@dataclass(frozen=True, slots=True)
class Rules:
    """What admission needs to know besides the events."""

    redactor: Redactor
    max_bytes: int = DEFAULT_MAX_BYTES  # of one message
    max_events: int = 1_000  # of one append
    redactor_for: Callable[[Scope], Redactor] | None = None  # where it differs by scope

    def redactor_at(self, scope: Scope) -> Redactor:
        return self.redactor if self.redactor_for is None else self.redactor_for(scope)

    def kept_text(self, scope: Scope, text: str, language: str | None) -> str | None:
        """The text as memory keeps it, for text stored by another program; None where it is too large or empty."""
        try:
            checked = checked_text("text", text, self.max_bytes)
        except InvalidInput:
            return None
        return self.redactor_at(scope)(checked, language).text if checked.strip() else None


class Through(NamedTuple):
    """How an append reached memory."""

    surface: str
    credential: str | None = None
    by_operator: bool = False  # an administrator writes on behalf of the user


DIRECTLY = Through(IN_PROCESS)
_LONGEST_SURFACE, _LONGEST_CREDENTIAL = 32, 128
_SURFACE = re.compile(r"[a-z][a-z0-9_-]*")


@dataclass(slots=True)
class _AppendState:
    """One append on its way through: what it is held to, and what was counted of it."""

    rules: Rules
    ids: MessageIds
    now: datetime
    language: str | None
    through: Through
    refused: dict[str, int]
    stripped: dict[str, int]
    redacted: dict[str, int]


def admit(
    events: Any,
    rules: Rules,
    ids: MessageIds,
    now: datetime,
    language: str | None = None,
    through: Through = DIRECTLY,
) -> Admission:
    """Raises `InvalidEvent` or `TooLarge`, naming `events[i].field`, when an event is malformed: then nothing passes.

    `language` is the session's: it selects the redactor's national formats. `through` is the surface and
    the credential of the caller, recorded as the origin of every event that names none of its own.
    """
    if rules.redactor_for is not None:
        rules = replace(rules, redactor=rules.redactor_for(ids.scope))
    state = _AppendState(rules, ids, now, language, through, {}, {}, {})
    given = _checked_list(events, rules.max_events)
    drafts: list[Draft] = []
    for index, event in enumerate(given):
        try:
            draft = _admit_one(event, state)
        except InvalidInput as error:
            raise error.inside(f"events[{index}]") from None
        if draft is not None:
            drafts.append(draft)
    secret = ids.secret()
    if secret is None:
        new_ids = all(getattr(event, "id", None) is None for event in given)
        return Admission(tuple(drafts), NO_DIGEST, state.refused, state.stripped, state.redacted, new_ids)
    digest = digest_of(drafts, state.refused, secret)
    placed = tuple(ids.complete(draft, index, now) for index, draft in enumerate(drafts))
    return Admission(placed, digest, state.refused, state.stripped, state.redacted)


def _count(counts: dict[str, int], what: str, times: int = 1) -> None:
    counts[what] = counts.get(what, 0) + times


def _checked_list(events: Any, most: int) -> list[Any]:
    if not isinstance(events, list | tuple):
        raise InvalidEvent("events", f"is a {type(events).__name__}", "give a list of events")
    given: list[Any] = list(events)  # pyright: ignore[reportUnknownArgumentType]
    if len(given) > most:
        raise TooLarge("events", f"holds {len(given):,} events", f"the limit is {most:,} an append")
    return given


def _admit_one(event: Any, state: _AppendState) -> Draft | None:
    kind: Any = type(event)  # pyright: ignore[reportUnknownVariableType]
    if (reason := REFUSED_KINDS.get(kind)) is not None:
        _count(state.refused, reason)
        return None
    if isinstance(event, ModelResponse):
        return _admit_response(event, state)
    if isinstance(event, UserMessage):
        return _admit_message(event, state)
    raise InvalidEvent("kind", f"is {kind.__name__}", "use one of the event kinds threadkeep exports")


def _admit_response(event: ModelResponse, state: _AppendState) -> Draft | None:
    if event.function_calls:
        _count(state.stripped, "function_call_arguments", _how_many(event.function_calls))
    if event.channel != "text":
        _count(state.refused, "non_text_channel")
        return None
    draft = _draft(event, event.text, "text", state)
    meta = response_meta(event.type, event.answers)
    if ANSWERS in meta:
        _harmless(meta[ANSWERS], state.rules, ANSWERS)
    return replace(draft, meta=meta) if draft is not None and meta else draft


def _admit_message(event: UserMessage, state: _AppendState) -> Draft | None:
    if event.modality not in ("text", "voice", "image"):
        raise InvalidEvent("modality", "is not one that memory knows", "use text, voice or image")
    if event.data is not None:
        _count(state.stripped, "raw_media")
    if event.modality == "text":
        if event.meta:
            _count(state.stripped, "meta", _how_many(event.meta))
        return _draft(event, event.text, "text", state)
    if event.text:
        _count(state.stripped, "media_text")  # a transcript is not a summary
    if not event.summary:
        _count(state.refused, "media_without_summary")
        return None
    return _draft(event, event.summary, event.modality, state)


def _harmless(id_: str, rules: Rules, field: str = "id") -> str:
    """An id is kept as it is and read by many: one that would be masked as text is refused. Not for its counters and
    random numbers, which look like anything: one UUID in a hundred holds what could be a phone number."""
    named = id_ if " " in id_ or "+" in id_ else _COUNTER.sub("", id_)
    if named and rules.redactor(named).text != named:
        raise InvalidEvent(field, "holds personal data or a secret", "use an id without personal data, or none")
    return id_


def _how_many(stripped: Any) -> int:
    """The size of something that is dropped anyway, so a wrong type is no error."""
    return len(stripped) if isinstance(stripped, Sized) else 1


def _draft(event: UserMessage | ModelResponse, text: str | None, modality: Any, state: _AppendState) -> Draft | None:
    checked = checked_text("text" if modality == "text" else "summary", text, state.rules.max_bytes)
    if not checked or checked.isspace():
        _count(state.refused, "empty_text")
        return None
    own_language = checked_language("language", event.language)
    redacted = state.rules.redactor(checked, own_language or state.language)
    for kind, times in redacted.counts.items():
        _count(state.redacted, kind, times)
    meta, dropped = (
        kept_meta(event.meta, modality) if isinstance(event, UserMessage) and modality != "text" else ({}, 0)
    )
    if dropped:
        _count(state.stripped, "meta", dropped)
    id_, ts = state.ids.begun(_harmless(checked_id(event.id), state.rules), checked_time(event.ts), state.now)
    role = "user" if isinstance(event, UserMessage) else "assistant"
    origin = _origin(event, state)
    stored_at = ts if origin.author == "import" and event.ts is not None else state.now
    return Draft(id_, role, redacted.text, ts, modality, own_language, meta, origin, stored_at)


def _origin(event: UserMessage | ModelResponse, state: _AppendState) -> Origin:
    surface, credential, by_operator = state.through
    own: Any = event.origin
    if own is None:
        user: Author = "operator" if by_operator else "user"
        return Origin(user if isinstance(event, UserMessage) else "model", surface, credential)
    if not isinstance(own, Origin) or own.author not in AUTHORS:
        raise InvalidEvent("origin", "does not say who wrote it", f"give an Origin whose author is one of {AUTHORS}")
    if len(own.surface) > _LONGEST_SURFACE or not _SURFACE.fullmatch(own.surface):
        raise InvalidEvent("origin.surface", "is not the name of a surface", "use a short name of a-z, 0-9, _ and -")
    if own.credential is None:
        return replace(own, credential=credential)
    if len(own.credential) > _LONGEST_CREDENTIAL or not own.credential.isprintable():
        raise InvalidEvent("origin.credential", "is too long or not printable", "name the credential in a few words")
    return own


NO_DIGEST = bytes(16)  # of an append without a key, which is never compared


def digest_of(drafts: Sequence[Draft], refused: Mapping[str, int], secret: bytes = b"") -> bytes:
    """Equal for a retry: ids and times that the caller did not give are not in it yet.

    `secret` is made of the scope and the idempotency key, which is not stored: equal texts of two users, or under two
    keys, have nothing in common, and who does not know the key cannot try texts against the digest.
    """
    parts = [[d.id, d.role, d.content, d.ts.isoformat(), d.modality, d.language, dict(d.meta)] for d in drafts]
    canonical = json.dumps([parts, dict(refused)], sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(canonical.encode("utf-8", "surrogatepass"), digest_size=16, key=secret).digest()
