"""Admission: what may be kept of a list of events, redacted and stripped, and a count of everything else.

Pure. Only user text, a summary of voice or image, and model text pass; nothing else can, because nothing else is
ever turned into a `Draft`. A field that could carry free text past redaction is held to a narrow form.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple, get_args

import uuid_utils

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
from threadkeep.model import IMAGE_KIND, MEDIA_META_KEYS, Admission, Draft
from threadkeep.ports.models import LANGUAGE_TAG, ImageKind, is_language_tag
from threadkeep.ports.redactor import Redactor
from threadkeep.scope import Scope, length_prefixed

DEFAULT_MAX_BYTES = 1_048_576
MAX_ID_LENGTH = 255
ANSWERS = "answers"
RESPONSE_TYPES = ("clarify", "greeting")  # an answer has none
# Stand-ins for "not given", distinct from any real value; `MessageIds.complete` fills them in.
NO_ID = ""
NO_TIME = datetime.min.replace(tzinfo=UTC)

_MIME = re.compile(r"[a-z]{3,12}/[a-z0-9][a-z0-9.+-]{0,63}")
_IMAGE_KINDS = frozenset(get_args(ImageKind))
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MILLISECONDS = re.compile(r"[0-9]{1,12}")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def checked_text(field: str, value: Any, max_bytes: int) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidEvent(field, f"is a {type(value).__name__}", "give a string")
    # Four bytes a character at most, so the exact count is needed only near the limit.
    if len(value) * 4 > max_bytes and (size := len(value.encode("utf-8", "surrogatepass"))) > max_bytes:
        raise TooLarge(field, f"is {size:,} bytes", f"the limit is {max_bytes:,} (THREADKEEP_MAX_MESSAGE_BYTES)")
    return value


def checked_language(field: str, value: Any) -> str | None:
    if value is None:
        return None
    if not is_language_tag(value):
        raise InvalidEvent(field, "is not a language tag", "use BCP 47, such as vi, pl-PL or zh-Hant")
    return value


def checked_id(value: Any, field: str = "id") -> str:
    if value is None:
        return NO_ID
    if not isinstance(value, str) or not 0 < len(value) <= MAX_ID_LENGTH or _UNPRINTABLE.search(value):
        raise InvalidEvent(field, "is not a message id", f"use 1 to {MAX_ID_LENGTH} printable characters, or none")
    return value


def checked_time(value: Any) -> datetime:
    if value is None:
        return NO_TIME
    if not isinstance(value, datetime):
        raise InvalidEvent("ts", f"is a {type(value).__name__}", "give a datetime")
    if value.utcoffset() is None:
        raise InvalidEvent("ts", "has no time zone", "give an aware datetime, such as datetime.now(UTC)")
    try:
        moment = value.astimezone(UTC)
    except OverflowError:  # before year 1 or after year 9999, once it is in UTC
        moment = NO_TIME
    if moment == NO_TIME:
        raise InvalidEvent("ts", "is out of range", "give a moment within the years 1 to 9999 in UTC")
    return moment


def response_meta(type_: Any, answers: Any) -> dict[str, Any]:
    """What is kept of a response beside its text: nothing, where neither is given."""
    if type_ is not None and type_ not in RESPONSE_TYPES:
        raise InvalidEvent("type", "is not a type of response", f"use {' or '.join(RESPONSE_TYPES)}, or none")
    given = {"type": type_, ANSWERS: checked_id(answers, ANSWERS) or None}
    return {name: value for name, value in given.items() if value is not None}


def kept_meta(meta: Any, modality: str = "image") -> tuple[dict[str, Any], int]:
    """The four allowed keys, of a picture its kind too, whose values have their form; and how many were dropped.

    `lang` is another name of `language`, which wins where both are given.
    """
    if not isinstance(meta, Mapping):
        raise InvalidEvent("meta", f"is a {type(meta).__name__}", "give a mapping")
    given: dict[Any, Any] = dict(meta)  # pyright: ignore[reportUnknownArgumentType]
    if "lang" in given and given.get("language") is None:
        given["language"] = given.pop("lang")
    keys = (*MEDIA_META_KEYS, IMAGE_KIND) if modality == "image" else MEDIA_META_KEYS
    usual = {key: _in_usual_form(key, given[key]) for key in keys if key in given}
    kept = {key: value for key, value in usual.items() if _well_formed(key, value)}
    return kept, len(given) - len(kept)


def _in_usual_form(key: str, value: Any) -> Any:
    """As stores keep it, of what recorders and libraries write: `audio/webm;codecs=opus`, `vi_VN`, digits as text."""
    if not isinstance(value, str):
        return value
    if key == "mime":
        return value.partition(";")[0].strip().lower()
    if key == "sha256":
        return value.lower().removeprefix("sha256:")
    if key == "language":
        return value.replace("_", "-")
    if key == "durationMs" and _MILLISECONDS.fullmatch(value):
        return int(value)
    return value


def _well_formed(key: str, value: Any) -> bool:
    if key == "durationMs":
        return type(value) in (int, float) and 0 <= value < 1e12
    if key == IMAGE_KIND:
        return isinstance(value, str) and value in _IMAGE_KINDS
    form = {"language": LANGUAGE_TAG, "mime": _MIME, "sha256": _SHA256}[key]
    return isinstance(value, str) and form.fullmatch(value) is not None


@dataclass(frozen=True, slots=True)
class MessageIds:
    scope: Scope
    key: str | None = None

    def secret(self) -> bytes | None:
        """What keys the payload's fingerprint; None without an idempotency key."""
        return None if self.key is None else self.scope.digest("payload", self.key)

    def begun(self, id_: str, ts: datetime, now: datetime) -> tuple[str, datetime]:
        """What the caller left out is filled in at once, unless a fingerprint must first be made of what was given."""
        if self.key is not None:
            return id_, ts
        return (str(uuid_utils.uuid7()) if id_ == NO_ID else id_), (now if ts is NO_TIME else ts)

    def complete(self, draft: Draft, index: int, now: datetime) -> Draft:
        """The draft with an id and a time, where the caller gave none."""
        id_ = self._new(index) if draft.id == NO_ID else draft.id
        ts = now if draft.ts == NO_TIME else draft.ts
        return replace(draft, id=id_, ts=ts)

    def _new(self, index: int) -> str:
        parts = (self.scope.tenant, self.scope.user, self.scope.conversation or "", self.key or "", str(index))
        digest = hashlib.sha256(length_prefixed(parts)).digest()
        # RFC 9562 version 8: an id of our own making, with the version and variant bits where they belong.
        number = int.from_bytes(digest[:16], "big") & ~(0xF << 76) & ~(0x3 << 62)
        return str(uuid.UUID(int=number | 0x8 << 76 | 0x2 << 62))


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
