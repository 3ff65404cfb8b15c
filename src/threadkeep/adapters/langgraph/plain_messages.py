"""Values, and the messages in them, read from their bytes without the messages' classes: four times as fast.

What comes out is what the serializer would make of it: each field is there, of the type it has after validation, and
there is nothing that validation would change. Everything else, and everything odd, is left to the serializer.
"""

from __future__ import annotations

from typing import Any

import ormsgpack
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from threadkeep.adapters.langgraph.messages import made

_PYDANTIC = 5  # the serializer's code for a pydantic model: module, class, fields, method
_KINDS: dict[tuple[str, str], type[BaseMessage]] = {
    (kind.__module__, kind.__name__): kind for kind in (HumanMessage, AIMessage, SystemMessage, ToolMessage)
}
_FIELDS = {kind: [*kind.model_fields] for kind in _KINDS.values()}
_TYPES = {kind: kind.model_fields["type"].default for kind in _KINDS.values()}
_TEXT_OR_NONE = (str, type(None))
_TOOL_CALL = {"name", "args", "id", "type"}
_USAGE = {"input_tokens", "output_tokens", "total_tokens"}
_DICT: Any = dict  # of what is in it the type checker shall not worry
_LIST: Any = list
MORE: Any = object()


def plain_value(data: bytes) -> Any:
    """What the serializer's msgpack says; `MORE` where that is damaged, or more than plain values and messages."""
    try:
        return ormsgpack.unpackb(data, ext_hook=_message, option=ormsgpack.OPT_NON_STR_KEYS)
    except (ValueError, TypeError):
        return MORE


def as_read(message: object) -> BaseMessage | None:
    """What `plain_value` would make of this message's bytes, without them; None where that is not certain."""
    kind: Any = type(message)
    if kind not in _FIELDS:
        return None
    given: Any = message
    if given.__pydantic_extra__ or given.__pydantic_private__ is not None or not _is_simple(kind, given.__dict__):
        return None
    return made(kind, {**given.__dict__}, {*given.__dict__}, {})


def _message(code: int, data: bytes) -> BaseMessage:
    if code == _PYDANTIC:
        module, name, fields, _ = ormsgpack.unpackb(data, ext_hook=_refuse)
        kind = _KINDS.get((module, name))
        if kind is not None and _is_simple(kind, fields):
            return made(kind, fields, {*fields}, {})
    raise ValueError("more than plain values")


def _refuse(code: int, data: bytes) -> Any:
    raise ValueError("more than plain values")


def _is_simple(kind: type[BaseMessage], fields: Any) -> bool:
    return (
        type(fields) is _DICT
        and [*fields] == _FIELDS[kind]
        and type(fields["content"]) is str
        and type(fields["additional_kwargs"]) is dict
        and type(fields["response_metadata"]) is dict
        and fields["type"] == _TYPES[kind]
        and type(fields["name"]) in _TEXT_OR_NONE
        and type(fields["id"]) in _TEXT_OR_NONE
        and (kind is not AIMessage or _is_simple_answer(fields))
        and (kind is not ToolMessage or _is_simple_result(fields))
    )


def _is_simple_answer(fields: dict[str, Any]) -> bool:
    """Calls of tools in the form that validation gives them, and none hidden where it would look for them."""
    calls, others, usage = fields["tool_calls"], fields["invalid_tool_calls"], fields["usage_metadata"]
    if type(calls) is not _LIST or type(others) is not _LIST or others:
        return False
    if not calls and "tool_calls" in fields["additional_kwargs"]:
        return False
    return (usage is None or _is_usage(usage)) and (not calls or all(map(_is_tool_call, calls)))


def _is_usage(usage: Any) -> bool:
    return type(usage) is _DICT and usage.keys() == _USAGE and all(type(count) is int for count in usage.values())


def _is_tool_call(call: Any) -> bool:
    return (
        type(call) is _DICT
        and call.keys() == _TOOL_CALL
        and type(call["name"]) is str
        and type(call["args"]) is dict
        and type(call["id"]) in _TEXT_OR_NONE
        and call["type"] == "tool_call"
    )


def _is_simple_result(fields: dict[str, Any]) -> bool:
    return (
        type(fields["tool_call_id"]) is str and fields["artifact"] is None and fields["status"] in ("success", "error")
    )
