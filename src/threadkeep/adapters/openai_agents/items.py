"""Items of the Agents SDK as events, and back. An item's shape is kept apart from its text."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from threadkeep.errors import InvalidEvent
from threadkeep.events import (
    DebugTrace,
    Event,
    ModelResponse,
    Origin,
    SystemNote,
    Thought,
    ToolRequest,
    ToolResult,
    UserMessage,
)
from threadkeep.model import Message

Item = dict[str, Any]
_BY_USER, _BY_MODEL = Origin("user", "openai_agents"), Origin("model", "openai_agents")
_TEXT_PARTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
_MEDIA_PARTS = {"input_image": "image", "input_audio": "voice"}
# What the SDK's `EncryptedSession` makes of an item; its payload is a token of Fernet: version, time, IV, blocks, HMAC.
_ENVELOPE = frozenset(("__enc__", "v", "kid", "payload"))
_KEY_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)
_FERNET_VERSION, _FERNET_FRAME, _FERNET_BLOCK = 0x80, 1 + 8 + 16 + 32, 16


@dataclass(frozen=True, slots=True)
class Split:
    """One item: the event for policy, the shape that goes with its text, or an item whole.

    What the application encrypted has no event, as policy cannot read it.
    """

    event: Event | None
    shape: bytes | None = None
    tool: Item | None = None
    encrypted: Item | None = None


def split(item: Any, id_: str) -> Split:
    """Raises `InvalidEvent` for what is no item at all. Kinds that are not known are refused by policy, not kept."""
    if not isinstance(item, Mapping):
        raise InvalidEvent("item", f"is a {type(item).__name__}", "give items as the Agents SDK makes them")
    given: Item = dict(item)  # pyright: ignore[reportUnknownArgumentType]
    if given.keys() == _ENVELOPE:
        return Split(None, encrypted=_envelope(given))
    kind = given.get("type", "message")
    if kind == "message":
        return _said(given, id_)
    if not isinstance(kind, str):
        raise InvalidEvent("item.type", f"is a {type(kind).__name__}", "give a string")
    if kind == "reasoning":
        return Split(Thought(""))
    if kind.endswith(("_output", "_response")):
        return Split(ToolResult(kind), tool=_json(given))
    if kind.endswith(("_call", "_request")) or kind in ("compaction", "mcp_list_tools"):
        return Split(ToolRequest(kind), tool=_json(given))
    return Split(DebugTrace(""))


def _said(item: Item, id_: str) -> Split:
    role, content = item.get("role"), item.get("content")
    if role in ("system", "developer"):
        return Split(SystemNote(""))
    if role not in ("user", "assistant"):
        raise InvalidEvent(
            "item.role", "is not one that the Agents SDK knows", "use user, assistant, system, developer"
        )
    if not isinstance(content, str | list):
        raise InvalidEvent("item.content", f"is a {type(content).__name__}", "give a string or a list of parts")
    text, part = _text_of(content)
    shape = {"type": "type" in item, "part": part} | ({"status": "completed"} if item.get("status") else {})
    if role == "assistant":
        return Split(ModelResponse(text, id=id_, origin=_BY_MODEL), _packed(shape))
    if not text and (modality := _medium(content)) is not None:
        return Split(UserMessage(modality=modality, id=id_), _packed(shape))
    return Split(UserMessage(text, id=id_, origin=_BY_USER), _packed(shape))


def _envelope(item: Item) -> Item:
    """Raises `InvalidEvent` where anything in it could be read: what can be read goes by policy."""
    version, key, payload = item["v"], item["kid"], item["payload"]
    named = type(version) is int and isinstance(key, str) and _KEY_NAME.fullmatch(key)
    if item["__enc__"] != 1 or not named or not isinstance(payload, str) or not _is_fernet(payload):
        raise InvalidEvent("item", "is not encrypted, though it says so", "give items as EncryptedSession makes them")
    return item


def _is_fernet(token: str) -> bool:
    try:
        data = base64.b64decode(token, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return False
    blocks, rest = divmod(len(data) - _FERNET_FRAME, _FERNET_BLOCK)
    return blocks > 0 and rest == 0 and data[0] == _FERNET_VERSION


def _parts(content: Any) -> list[Item]:
    parts: list[Any] = content if isinstance(content, list) else []  # pyright: ignore[reportUnknownVariableType]
    return [part for part in parts if isinstance(part, dict)]


def _text_of(content: Any) -> tuple[str, str | None]:
    """The text, and the kind of part it was in; None where the content was the text itself."""
    if isinstance(content, str):
        return content, None
    found = [part for part in _parts(content) if part.get("type") in _TEXT_PARTS]
    texts = [part.get(_TEXT_PARTS[part["type"]]) for part in found]
    kind: str = found[0]["type"] if found else "input_text"
    return "\n".join(text for text in texts if isinstance(text, str)), kind


def _medium(content: Any) -> Any:
    kinds = [part.get("type") for part in _parts(content)]
    return next((_MEDIA_PARTS[kind] for kind in kinds if kind in _MEDIA_PARTS), None)


def _json(item: Item) -> Item:
    """Without the provider's own id: it would ask for reasoning that is never kept."""
    bare = {key: value for key, value in item.items() if key != "id" or "call_id" not in item}
    try:
        return json.loads(json.dumps(bare))
    except (TypeError, ValueError, RecursionError):
        raise InvalidEvent("item", "is not JSON", "give items as the Agents SDK makes them") from None


def _packed(shape: Mapping[str, Any]) -> bytes:
    return json.dumps(shape, separators=(",", ":")).encode()


def unpacked(row: bytes | None) -> dict[str, Any]:
    """Nothing, of a row that is not there or that is damaged: one of them must not take the whole session along."""
    try:
        found: Any = {} if row is None else json.loads(row)
    except ValueError:
        return {}
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}


def rebuilt(message: Message, shape: bytes | None) -> Item:
    """The item as it was, but for what policy took out of its text; a plain one where no shape can be read."""
    kept = unpacked(shape)
    part = kept.get("part")
    content: Any = message.content
    if part is not None:
        field = _TEXT_PARTS.get(part, "text")
        content = [{"type": part, field: message.content} | ({"annotations": []} if part == "output_text" else {})]
    item: Item = {"type": "message"} if kept.get("type") else {}
    item |= {"role": message.role, "content": content}
    return item | ({"status": kept["status"]} if "status" in kept else {})


def in_pairs(items: Sequence[Item]) -> list[Item]:
    """Without calls that have no result and results that have no call: a model would refuse the whole list.

    An id may come again, in another turn: a result is that of the last call before it that waits for one.
    """
    waiting: dict[str, list[int]] = {}
    alone: set[int] = set()
    for place, item in enumerate(items):
        id_ = item.get("call_id")
        if not isinstance(id_, str):
            continue
        calls = waiting.setdefault(id_, [])
        if not str(item.get("type")).endswith("_output"):
            calls.append(place)
        elif calls:
            calls.pop()
        else:
            alone.add(place)
    alone.update(place for calls in waiting.values() for place in calls)
    return [item for place, item in enumerate(items) if place not in alone]
