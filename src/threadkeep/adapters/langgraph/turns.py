"""`tool_traffic="turn"`: a turn in flight is encrypted under a key of its own; its projection stays when it has ended.

The first put begins the turn, or continues one that waits. The store accepts what was encrypted only while the key
stands, in one transaction; where another process has ended the turn, the same is written under a new key.

The projection holds user text and model text, redacted; no tool, no call, no thought.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any, TypeGuard, cast

from cachetools import LRUCache
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.types import Send

from threadkeep.adapters.langgraph.codec import IN_FLIGHT, Codec, Encoded, fields_of, is_in_flight, with_fields
from threadkeep.adapters.langgraph.messages import text_of
from threadkeep.adapters.langgraph.store_router import StoreRouter
from threadkeep.errors import CheckpointCorrupt, InvalidEvent, MissingExtra
from threadkeep.events import Event, ModelResponse, UserMessage
from threadkeep.policy.admit import MessageIds, Rules, admit
from threadkeep.ports.checkpoints import CheckpointStore
from threadkeep.ports.threads import Thread, TurnKey
from threadkeep.scope import Scope
from threadkeep.sealing import KEY_BYTES, Sealer, key_from, new_key

_BARE, _SEALED = b"\x00", b"\x01"


class TurnCodec(Codec):
    """Reads what was stored either way; writes under the key. Without one nothing is in flight."""

    def __init__(self, inner: Codec, key: bytes | None) -> None:
        super().__init__(inner.serde, inner.types)
        self.plain = False
        self._sealer = None if key is None else _sealer(key)

    def encode(self, value: Any, where: str) -> Encoded:
        kind, data, same = super().encode(value, where)
        assert self._sealer is not None
        return Encoded(kind + IN_FLIGHT, self._sealer.seal(data, kind.encode()), same)

    def opened(self, kind: str, data: bytes, where: str) -> tuple[str, bytes]:
        if not is_in_flight(kind):
            return super().opened(kind, data, where)
        plain_kind = kind.removesuffix(IN_FLIGHT)
        plain = None if self._sealer is None else self._sealer.open(data, plain_kind.encode())
        if plain is None:
            raise CheckpointCorrupt(f"{where} belongs to a turn that has ended, or to another key")
        return super().opened(plain_kind, plain, where)


class TurnSeal:
    """A turn's key as it rests in the database: sealed with `THREADKEEP_SLOT_KEY`, where there is one."""

    def __init__(self, setting: str | None) -> None:
        self._master = None if setting is None else _sealer(key_from(setting))

    def new(self, thread_key: bytes) -> bytes:
        key = new_key()
        return _BARE + key if self._master is None else _SEALED + self._master.seal(key, thread_key)

    def opened(self, sealed: bytes, thread_key: bytes) -> bytes:
        """Raises `CheckpointCorrupt` for one that another setting has sealed."""
        how, rest = sealed[:1], sealed[1:]
        if how == _BARE and len(rest) == KEY_BYTES:
            return rest
        key = None if self._master is None or how != _SEALED else self._master.open(rest, thread_key)
        if key is None:
            raise CheckpointCorrupt(
                "a turn in flight was sealed with another THREADKEEP_SLOT_KEY, or its key is damaged; restore it, or"
                " abandon the turn"
            )
        return key


def _sealer(key: bytes) -> Sealer:
    try:
        return Sealer(key)
    except ModuleNotFoundError:
        raise MissingExtra("langgraph", 'tool_traffic="turn"') from None


_MOST_REMEMBERED = 10_000


class Turns:
    def __init__(self, router: StoreRouter[CheckpointStore], seal: TurnSeal) -> None:
        self._router = router
        self._seal = seal
        # sealed keys written under here
        self._begun: LRUCache[bytes, tuple[Thread, bytes]] = LRUCache(_MOST_REMEMBERED)
        self._changing = threading.Lock()

    async def key(self, thread: Thread) -> TurnKey | None:
        return await self._router.use(lambda store: store.turn_keys.get(thread))

    async def stands(self, thread: Thread, sealed: bytes | None) -> bool:
        """Whether that is still the key of the thread's turn."""
        key = await self.key(thread)
        return key is not None and key.sealed == sealed

    def opened(self, thread: Thread, key: TurnKey) -> bytes:
        """Raises `CheckpointCorrupt` where it was sealed with another setting."""
        return self._seal.opened(key.sealed, thread.key)

    async def reading(self, thread: Thread, codec: Codec) -> TurnCodec:
        key = await self.key(thread)
        return TurnCodec(codec, None if key is None else self.opened(thread, key))

    async def writing(self, thread: Thread, codec: Codec) -> tuple[TurnCodec, bytes]:
        """And the sealed key, for the store to see that it still stands."""
        with self._changing:
            _, sealed = self._begun.get(thread.key, (thread, None))
        if sealed is not None:
            return TurnCodec(codec, self._seal.opened(sealed, thread.key)), sealed
        new = self._seal.new(thread.key)
        key = await self._router.use(lambda store: store.turn_keys.begin(thread, new))
        opened = self.opened(thread, key)  # or it is not ours, and not remembered: others may end that turn
        with self._changing:
            self._begun[thread.key] = (thread, key.sealed)
        return TurnCodec(codec, opened), key.sealed

    def begun_as(self, thread_id: str) -> list[Thread]:
        """Threads of this name, of whomever, that are in flight in this process."""
        with self._changing:
            return [thread for thread, _ in self._begun.values() if thread.id == thread_id]

    def forget(self, thread: Thread) -> None:
        with self._changing:
            self._begun.pop(thread.key, None)


_ANY_SIZE = 1 << 30
_OF_LANGGRAPH = ("__", "branch:to:", "join:")
_SAVED = "__previous__"  # by a function of the functional API, for its next call
_DEEPEST = 100


@dataclass(frozen=True, slots=True)
class Projection:
    """`keeps`: channels that hold no messages and stay all the same, their texts redacted."""

    rules: Rules
    scope: Scope
    keeps: frozenset[str] = frozenset()

    def state(self, values: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
        """`before` was projected already: what it has is not looked at again."""
        kept: dict[str, Any] = {}
        texts: dict[str, str] = {}  # what was looked at outside of lists, for the channels that follow
        for channel, value in values.items():
            if channel.startswith(_OF_LANGGRAPH) and channel != _SAVED:
                continue
            if is_messages(value):
                kept[channel] = self.messages(value, before.get(channel))
            elif isinstance(value, BaseMessage):
                if (message := self.message(value)) is not None:
                    kept[channel] = message
            elif channel in self.keeps:
                kept[channel] = self._redacted_since(before.get(channel), value, texts)
        return kept

    def _redacted_since(self, before: object, value: Any, texts: dict[str, str]) -> Any:
        """What a list began with, or continued from, is not looked at again; nor is a text that its entries had."""
        if not isinstance(before, list) or not isinstance(value, list):
            return self._redacted(value, texts, 0)
        known, values = cast("list[Any]", before), cast("list[Any]", value)
        known = known[known.index(values[0]) :] if values and values[0] in known else []
        common = next((n for n, (old, new) in enumerate(zip(known, values, strict=False)) if old != new), len(known))
        known_texts = texts | {text: text for one in known[common:] for text in _texts_of(one)}
        return values[:common] + [self._redacted(one, known_texts, 1) for one in values[common:]]

    def messages(self, values: Sequence[BaseMessage], before: object = None) -> list[BaseMessage]:
        known = {one.id: one for one in before if one.id} if is_messages(before) else {}
        kept: list[BaseMessage] = []
        for message in values:
            done = known.get(message.id) if message.id else None
            projected = done if done is not None and done == message else self.message(message)
            if projected is not None:
                kept.append(projected)
        return kept

    def message(self, message: BaseMessage) -> BaseMessage | None:
        """None for what does not stay: a tool's answer, a call without words, a picture without any."""
        text = text_of(message)
        if not text or not isinstance(message, HumanMessage | AIMessage):
            return None
        kind = HumanMessage if isinstance(message, HumanMessage) else AIMessage
        told = UserMessage(text) if isinstance(message, HumanMessage) else ModelResponse(text)
        rules, ids = replace(self.rules, max_bytes=_ANY_SIZE), MessageIds(self.scope)
        try:
            named = cast("Event", replace(told, id=message.id)) if message.id else told
            drafts = admit([named], rules, ids, datetime.now(UTC)).drafts
        except InvalidEvent:  # an id that holds personal data: it gets another
            drafts = admit([told], rules, ids, datetime.now(UTC)).drafts
        return kind(content=drafts[0].content, id=drafts[0].id) if drafts else None

    def _redacted(self, value: Any, texts: dict[str, str], depth: int) -> Any:
        if isinstance(value, str):
            found = texts.get(value)
            if found is None:
                redactor = self.rules.redactor_for(self.scope) if self.rules.redactor_for else self.rules.redactor
                found = texts[value] = redactor(value).text
            return found
        if depth > _DEEPEST or isinstance(value, BaseMessage):
            return None
        if isinstance(value, Mapping):
            items = cast("Mapping[Any, Any]", value).items()
            return {self._redacted(key, texts, depth + 1): self._redacted(one, texts, depth + 1) for key, one in items}
        if isinstance(value, list | tuple):
            return [self._redacted(one, texts, depth + 1) for one in cast("Sequence[Any]", value)]
        if (fields := fields_of(value)) is not None and not isinstance(value, Send):
            kept = {name: self._redacted(one, texts, depth + 1) for name, one in fields.items()}
            return with_fields(value, kept)
        return value if value is None or isinstance(value, bool | int | float | datetime | Enum) else None


def _texts_of(value: Any) -> list[str]:
    """Of an entry such as a chat's: its own, and those it holds by name."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, Mapping):
        return []
    items = cast("Mapping[Any, Any]", value).items()
    return [text for item in items for text in item if isinstance(text, str)]


def is_messages(value: object) -> TypeGuard[list[BaseMessage]]:
    if not isinstance(value, list):
        return False
    return all(isinstance(one, BaseMessage) for one in cast("list[Any]", value))
