"""What stays of a thread when a turn has ended: user text and model text, redacted; no tool, no call, no thought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any, TypeGuard, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.types import Send

from threadkeep.adapters.langgraph.surrogates import fields_of, with_fields
from threadkeep.errors import InvalidEvent
from threadkeep.events import Event, ModelResponse, UserMessage
from threadkeep.policy.admit import Rules, admit
from threadkeep.policy.ids import MessageIds
from threadkeep.scope import Scope

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


def text_of(message: BaseMessage) -> str:
    """Of its text blocks; thoughts, pictures and calls are others."""
    content: Any = message.content
    if isinstance(content, str):
        return content
    blocks = (one if isinstance(one, str) else _text_block(one) for one in content)
    return "\n".join(block for block in blocks if block)


def _text_block(block: Any) -> str:
    if isinstance(block, Mapping) and cast("Mapping[str, Any]", block).get("type") == "text":
        return str(cast("Mapping[str, Any]", block).get("text") or "")
    return ""
