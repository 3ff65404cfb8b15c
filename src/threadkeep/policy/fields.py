"""Checks on the fields of an event. A field that could carry free text past redaction is held to a narrow form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, get_args

from threadkeep.errors import InvalidEvent, TooLarge
from threadkeep.ports.language import LANGUAGE_TAG, is_language_tag
from threadkeep.ports.media import ImageKind
from threadkeep.record import IMAGE_KIND, MEDIA_META_KEYS

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
