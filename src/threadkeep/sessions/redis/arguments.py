"""What scripts are given, in the order in which `lua/common.lua`, `append.lua` and `refresh.lua` take it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from threadkeep.model import Admission, Draft, Message, Reflection
from threadkeep.ports.hot import Seed
from threadkeep.ports.sessions import SessionLimits
from threadkeep.scope import Scope, length_prefixed
from threadkeep.sessions.redis.absorbed import Absorbed, KeepText, keep_no_text
from threadkeep.sessions.redis.encode import (
    content_digest,
    digest_of_content,
    fragment_of,
    head_of,
    items,
    numbers,
    optional_json,
    to_json,
)
from threadkeep.sessions.redis.entry import receipt_tail, scope_field
from threadkeep.sessions.redis.wire import Argument
from threadkeep.wording import NO_KEY, ErasedTexts

Tokenize = Callable[[str], Sequence[int]]
WriteTokens = Callable[[str], bytes]


def no_tokens(text: str) -> Sequence[int]:
    return ()


@dataclass(frozen=True, slots=True)
class HotOptions:
    limits: SessionLimits = field(default_factory=SessionLimits)
    latest_ttl_seconds: float = 172_800  # of the latest turn, of the counter and of receipts
    tokenize: Tokenize = no_tokens  # for the latest turn's `token_data`
    jump: int = 1_000  # past what is known, when the counter cannot be vouched for
    tokens_written: WriteTokens | None = None  # the same tokens as a JSON list, where that is to be had cheaper
    keep: KeepText = keep_no_text  # of a document that another application left
    erased_texts: ErasedTexts = NO_KEY

    def write_tokens(self) -> WriteTokens:
        return self.tokens_written or (lambda text: numbers(self.tokenize(text)))

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
    """To what a script asked: the archive's seed, under the token it asked with, and what a document says."""

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
    """Three lines for each message: id, `seq`, and the digest of role and content."""
    return b"\n".join(
        b"%b\n%d\n%b" % (to_json(id_), seq, digest_of_content(role, content).encode())
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
        scope_field(scope),
        receipt_tail(admission),
        _language(drafts),
        (b"1" if admission.new_ids else b"0") + (b"+" if allowed else b""),
        front,
        *_turn(scope, drafts, tokens),
    ]
    for draft in drafts:
        arguments += _message(scope, draft)
    return arguments


def refresh_arguments(scope: Scope, messages: Sequence[Message], tokens: WriteTokens) -> list[Argument]:
    return [
        _language(messages),
        *_turn(scope, messages, tokens),
        *(part for message in messages for part in (message.seq, *_message(scope, message))),
    ]


def restate_arguments(scope: Scope, message: Message) -> list[Argument]:
    return [message.seq, *_message(scope, message)]


def reflection_arguments(reflection: Reflection, tokens: WriteTokens) -> list[Argument]:
    """As the document shows it, and its tokens: of the canonical JSON, as in `token_data` elsewhere."""
    value = {"summary": reflection.summary, "causes": list(reflection.causes)}
    canonical = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return [to_json(value), tokens(canonical)]


def _message(scope: Scope, message: Draft | Message) -> tuple[Argument, ...]:
    id_ = to_json(message.id)
    return (
        id_,
        content_digest(message),
        tombstone(scope, message.id),
        len(message.content),
        head_of(message, id_),
        fragment_of(message),
    )


def tombstone(scope: Scope, message_id: str) -> str:
    """The digest of ("message", id) in this scope, whose own part is reckoned once."""
    digest = _begun(scope.tenant, scope.user, scope.conversation).copy()
    digest.update(length_prefixed((message_id,)))
    return digest.hexdigest()


@lru_cache(maxsize=4_096)
def _begun(tenant: str, user: str, conversation: str | None) -> hashlib.blake2b:
    return hashlib.blake2b(length_prefixed((tenant, user, conversation or "", "message")), digest_size=16)


def _language(messages: Iterable[Draft | Message]) -> bytes:
    """The first one named on a message is the talk's, unless it has one."""
    for message in messages:
        if message.language:
            return to_json(message.language)
    return b""


def _turn(scope: Scope, messages: Sequence[Draft | Message], tokens: WriteTokens) -> tuple[Argument, ...]:
    """The latest exchange among these: a question begins one, an answer completes it. Told by their places, from 1."""
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
