"""Messages as the strings that scripts keep and join, and back."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from threadkeep.events import origin_from
from threadkeep.model import Draft, Message

_LINES = 6  # of an item; see lua/common.lua
_MOST_NUMBERS = 250_000
_readable = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_ascii = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode
# Two lone surrogates that look like a pair: JSON would bring them back as the character they are not.
_FALSE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def to_json(value: Any) -> bytes:
    """Readable UTF-8; lone surrogates, which UTF-8 cannot carry, are escaped."""
    try:
        return _readable(value).encode()
    except UnicodeEncodeError:
        return _ascii(value).encode()


def content_digest(message: Draft | Message) -> str:
    """Equal for the same role and content: a message id may come again with these and with no others."""
    return digest_of_content(message.role, message.content)


def digest_of_content(role: str, content: str) -> str:
    text = f"{role}\n{content}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def fragment_of(message: Draft | Message) -> bytes:
    """The message as the session document shows it."""
    return b'{"role":"%b","content":%b,"ts":"%b"}' % (
        message.role.encode(),
        to_json(message.content),
        message.ts.isoformat().encode(),
    )


def head_of(message: Draft | Message, id_: bytes) -> bytes:
    """Its other fields, without the braces: the script puts them between `seq` and the fragment. `id_` is JSON."""
    fields: dict[str, Any] = {}
    if message.origin is not None:
        fields["origin"] = message.origin.as_text()
    if message.stored_at is not None:
        fields["stored_at"] = message.stored_at.isoformat()
    if message.modality != "text":
        fields["modality"] = message.modality
    if message.language is not None:
        fields["language"] = message.language
    if message.meta:
        fields["meta"] = dict(message.meta)
    if _FALSE_PAIR.search(message.content):
        fields["exact"] = base64.b64encode(message.content.encode("utf-8", "surrogatepass")).decode()
    return b'"id":%b,%b' % (id_, to_json(fields)[1:-1]) if fields else b'"id":' + id_


def messages_in(joined: bytes) -> tuple[Message, ...]:
    """From items as a script joined them."""
    if not joined:
        return ()
    lines = joined.split(b"\n")
    texts = (
        b'{"seq":%b,%b,%b' % (lines[first], lines[first + 4], lines[first + 5][1:])
        for first in range(0, len(lines), _LINES)
    )
    return messages_from_json(b"[" + b",".join(texts) + b"]")


def messages_from_json(text: bytes) -> tuple[Message, ...]:
    """Raises `ValueError`, `KeyError` or `TypeError` when it is not what we wrote."""
    return tuple(_message(fields) for fields in json.loads(text))


def exact(fields: dict[str, Any]) -> str | None:
    """The content, where JSON could not carry it."""
    carried = fields.get("exact")
    return None if carried is None else base64.b64decode(carried).decode("utf-8", "surrogatepass")


def _message(fields: dict[str, Any]) -> Message:
    origin, stored_at = fields.get("origin"), fields.get("stored_at")
    return Message(
        seq=fields["seq"],
        id=fields["id"],
        role=fields["role"],
        content=exact(fields) or fields["content"],
        ts=datetime.fromisoformat(fields["ts"]),
        modality=fields.get("modality", "text"),
        language=fields.get("language"),
        meta=fields.get("meta") or {},
        origin=origin_from(origin) if origin else None,
        stored_at=datetime.fromisoformat(stored_at) if stored_at else None,
    )


def items(messages: Iterable[Message]) -> bytes:
    """As the window holds them."""
    return b"\n".join(map(_item, messages))


def _item(message: Message) -> bytes:
    id_ = to_json(message.id)
    parts = (message.seq, len(message.content), id_, head_of(message, id_), fragment_of(message))
    return b"%d\n%d\n\n%b\n%b\n%b" % parts


def optional_json(value: str | None) -> bytes:
    return to_json(value) if value else b""


def optional_text(stored: bytes) -> str | None:
    return json.loads(stored) if stored else None


def optional_time(stored: bytes) -> datetime | None:
    return datetime.fromisoformat(json.loads(stored)) if stored else None


class _Digits(dict[int, bytes]):
    """Numbers as text, each written once: token ids are as many as a dictionary has entries."""

    def __missing__(self, number: int) -> bytes:
        text = b"%d" % number
        if len(self) < _MOST_NUMBERS:
            self[number] = text
        return text


_digits = _Digits()


def numbers(values: Sequence[int]) -> bytes:
    return b"[" + b",".join(map(_digits.__getitem__, values)) + b"]"
