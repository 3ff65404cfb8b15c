"""What scripts are given and what they return: messages, receipts, arguments in the order in which Lua takes them."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from threadkeep.db.messages import origin_as_text, origin_from
from threadkeep.events import Origin
from threadkeep.model import Admission, Draft, Message, Receipt, Reflection
from threadkeep.ports.sessions import Hot, Seed, SessionLimits
from threadkeep.scope import Scope
from threadkeep.sessions.document import read_document
from threadkeep.sessions.redis.scripts import Argument
from threadkeep.wording import NO_KEY, ErasedTexts

_LINES = 6  # of an item; see lua/common.lua
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


def content_digest(role: str, content: str) -> str:
    """Equal for the same role and content: a message id may come again with these and with no others."""
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
        fields["origin"] = origin_as_text(message.origin)
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
    found: list[bytes] = []
    for message in messages:
        id_ = to_json(message.id)
        parts = (message.seq, len(message.content), id_, head_of(message, id_), fragment_of(message))
        found.append(b"%d\n%d\n\n%b\n%b\n%b" % parts)
    return b"\n".join(found)


def receipt_tail(admission: Admission) -> bytes:
    """A receipt without what only the script knows: its status and `seq` come before this."""
    return b'"kept":[%b],"refused":%b,"stripped":%b,"redacted":%b}' % (
        b",".join([to_json(draft.id) for draft in admission.drafts]),
        to_json(dict(admission.refused)) if admission.refused else b"{}",
        to_json(dict(admission.stripped)) if admission.stripped else b"{}",
        to_json(dict(admission.redacted)) if admission.redacted else b"{}",
    )


def read_receipt(text: bytes) -> Receipt:
    values: dict[str, Any] = json.loads(text)
    values["kept"] = tuple(values["kept"])
    return Receipt(**values)


def optional_json(value: str | None) -> bytes:
    return to_json(value) if value else b""


def hot_of(scope: Scope, reply: Sequence[bytes]) -> Hot:
    """Return what `read.lua` answered."""
    live, whole, stale, generation, last_seq, created, language = reply[1].split(b"\n")
    return Hot(
        scope=scope.at(int(generation)),
        window=messages_in(reply[2]),
        pending=messages_in(reply[3]),
        last_seq=int(last_seq),
        language=json.loads(language) if language else None,
        created_at=datetime.fromisoformat(json.loads(created)) if live == b"1" else None,
        whole=whole == b"1",
        stale=stale == b"1",
    )


_ABSORBED = Origin("import", "redis")
# A text, and the language of its conversation if known, to what memory may keep of it; None for nothing.
KeepText = Callable[[Scope, str, str | None], str | None]


def keep_no_text(scope: Scope, text: str, language: str | None) -> str | None:
    """Keep nothing: the default where no policy is given."""
    return None


@dataclass(frozen=True, slots=True)
class Absorbed:
    created_at: datetime | None = None
    language: str | None = None
    messages: tuple[Message, ...] = ()


def absorbed(document: bytes, scope: Scope, keep: KeepText, most: int, now: datetime) -> Absorbed:
    """The latest `most` messages, before every message of ours: their `seq` ends at nought.

    Whatever the document holds, it is no error. A message without a time has that of the document, or else `now`.
    """
    found = read_document(json_object(document))
    kept = [
        (index, message, text)
        for index, message in list(enumerate(found.messages))[-most:]
        if (text := keep(scope, message.content, found.language))
    ]
    when = found.created_at or now
    messages = tuple(
        Message(place - len(kept), f"absorbed:{index}", message.role, text, message.ts or when, origin=_ABSORBED)
        for place, (index, message, text) in enumerate(kept, 1)
    )
    return Absorbed(found.created_at, found.language, messages)


def json_object(text: bytes | None) -> dict[str, Any] | None:
    """Return None of anything else, whatever it is."""
    try:
        value = json.loads(text or b"null")
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


WriteTokens = Callable[[str], bytes]


def no_tokens(text: str) -> bytes:
    return b"[]"


@dataclass(frozen=True, slots=True)
class HotOptions:
    limits: SessionLimits = field(default_factory=SessionLimits)
    latest_ttl_seconds: float = 172_800  # of the latest turn, of the counter and of receipts
    tokens: WriteTokens = no_tokens  # for the latest turn's `token_data`: of a text, as a JSON list
    jump: int = 1_000  # past what is known, when the counter cannot be vouched for
    keep: KeepText = keep_no_text  # of a document that another application left
    erased_texts: ErasedTexts = NO_KEY

    def frame(self) -> tuple[Argument, ...]:
        limits = self.limits
        return (
            int(limits.ttl_seconds * 1_000),
            int(self.latest_ttl_seconds * 1_000),
            limits.max_messages,
            -1 if limits.max_chars is None else limits.max_chars,
            self.jump,
        )


@dataclass(frozen=True, slots=True)
class Answers:
    """To the questions of a script: the archive's seed, under the token of the question, and what a document says."""

    token: bytes = b""
    seed: Seed = field(default_factory=Seed)
    document: bytes = b""
    found: Absorbed = field(default_factory=Absorbed)

    def arguments(self) -> tuple[Argument, ...]:
        found = self.found
        created = found.created_at.isoformat() if found.created_at else None
        return (
            self.token,
            self.seed.last_seq,
            self.seed.generation,
            optional_json(self.seed.language),
            hashlib.sha1(self.document, usedforsecurity=False).hexdigest() if self.token else b"",
            optional_json(created),
            optional_json(found.language),
            items(found.messages),
            int(self.seed.active_at.timestamp() * 1_000) if self.seed.active_at else 0,
            _known(self.seed),
        )


NO_ANSWERS: tuple[Argument, ...] = (b"-",)


def _known(seed: Seed) -> bytes:
    """Write each message as id, `seq`, and the digest of role and content, separated by newlines."""
    return b"\n".join(
        b"%b\n%d\n%b" % (to_json(id_), seq, content_digest(role, content).encode())
        for id_, (seq, role, content) in seed.messages.items()
    )


def append_arguments(
    scope: Scope, admission: Admission, key: str | None, tokens: WriteTokens, front: str = "", *, allowed: bool = False
) -> list[Argument]:
    """`allowed`: none of the drafts says what the user has erased."""
    drafts = admission.drafts
    arguments: list[Argument] = [
        b"" if key is None else scope.digest("key", key).hex(),
        admission.digest.hex(),
        to_json([scope.tenant, scope.user, scope.conversation]),
        receipt_tail(admission),
        _language(drafts),
        (b"1" if admission.new_ids else b"0") + (b"+" if allowed else b""),
        front,
        *_turn(scope, drafts, tokens),
    ]
    for draft in drafts:
        arguments += _message_arguments(scope, draft)
    return arguments


def refresh_arguments(scope: Scope, messages: Sequence[Message], tokens: WriteTokens) -> list[Argument]:
    return [
        _language(messages),
        *_turn(scope, messages, tokens),
        *(part for message in messages for part in (message.seq, *_message_arguments(scope, message))),
    ]


def restate_arguments(scope: Scope, message: Message) -> list[Argument]:
    return [message.seq, *_message_arguments(scope, message)]


def reflection_arguments(reflection: Reflection, tokens: WriteTokens) -> list[Argument]:
    """As the document shows it, and its tokens: of the canonical JSON, as in `token_data` elsewhere."""
    value = {"summary": reflection.summary, "causes": list(reflection.causes)}
    canonical = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return [to_json(value), tokens(canonical)]


def _message_arguments(scope: Scope, message: Draft | Message) -> tuple[Argument, ...]:
    id_ = to_json(message.id)
    return (
        id_,
        content_digest(message.role, message.content),
        tombstone(scope, message.id),
        len(message.content),
        head_of(message, id_),
        fragment_of(message),
    )


def tombstone(scope: Scope, message_id: str) -> str:
    """Return what stands for an erased message, whose id must not be kept."""
    return scope.digest("message", message_id).hex()


def _language(messages: Iterable[Draft | Message]) -> bytes:
    """Return the first language named on a message; Lua ignores it where the conversation has one."""
    for message in messages:
        if message.language:
            return to_json(message.language)
    return b""


def _turn(scope: Scope, messages: Sequence[Draft | Message], tokens: WriteTokens) -> tuple[Argument, ...]:
    """The latest exchange among these, as numbers from 1: a question begins one, an answer completes it."""
    user = assistant = 0
    for number, message in enumerate(messages, 1):
        if message.role == "user":
            user, assistant = number, 0
        else:
            assistant = number
    last = assistant or user
    return (
        user or b"",
        tokens(messages[user - 1].content) if user else b"",
        assistant or b"",
        tokens(messages[assistant - 1].content) if assistant else b"",
        to_json(scope.user),
        int(messages[last - 1].ts.timestamp()) if last else 0,
    )
