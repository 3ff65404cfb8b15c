"""Messages read from their bytes without their classes, four times as fast.

What comes out is what the class would make of it: each field is there, of the type it has after validation, and there
is nothing that validation would change. Everything else, and everything odd, is left to the serializer.
"""

from __future__ import annotations

from typing import Any, cast

import ormsgpack
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from threadkeep.adapters.langgraph.messages import made

_PYDANTIC = 5  # the serializer's code for a pydantic model: module, class, fields, method
_KINDS: dict[tuple[str, str], type[BaseMessage]] = {
    (kind.__module__, kind.__name__): kind for kind in (HumanMessage, AIMessage, SystemMessage, ToolMessage)
}
_FIELDS = {kind: kind.model_fields.keys() for kind in _KINDS.values()}
_TYPES = {kind: kind.model_fields["type"].default for kind in _KINDS.values()}
_TEXT_OR_NONE = (str, type(None))
_TOOL_CALL = {"name", "args", "id", "type"}
_USAGE = {"input_tokens", "output_tokens", "total_tokens"}


def plain_message(data: bytes) -> BaseMessage | None:
    """None unless these bytes are one simple message."""
    try:
        inner: Any = ormsgpack.unpackb(data, ext_hook=_payload)
        if not isinstance(inner, tuple):  # nothing else comes back as one
            return None
        module, name, fields, _ = ormsgpack.unpackb(cast("tuple[bytes]", inner)[0], ext_hook=_refuse)
        kind = _KINDS.get((module, name))
        return made(kind, fields, set(fields), {}) if kind is not None and _is_simple(kind, fields) else None
    except (ValueError, TypeError):
        return None


def as_read(message: object) -> BaseMessage | None:
    """What `plain_message` would make of this message's bytes, without them; None where that is not certain."""
    if type(message) not in _FIELDS:
        return None
    given = cast("BaseMessage", message)
    if (
        given.__pydantic_extra__
        or given.__pydantic_private__ is not None
        or not _is_simple(type(given), given.__dict__)
    ):
        return None
    return made(type(given), {**given.__dict__}, {*given.__dict__}, {})


def _payload(code: int, data: bytes) -> Any:
    return (data,) if code == _PYDANTIC else None


def _refuse(code: int, data: bytes) -> Any:
    raise ValueError("more than plain values")


def _is_simple(kind: type[BaseMessage], given: object) -> bool:
    if type(given) is not dict:
        return False
    fields = cast("dict[str, Any]", given)
    return (
        fields.keys() == _FIELDS[kind]
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
    if type(calls) is not list or type(others) is not list or others:
        return False
    if not calls and "tool_calls" in fields["additional_kwargs"]:
        return False
    return _is_usage(usage) and all(map(_is_tool_call, cast("list[Any]", calls)))


def _is_usage(usage: object) -> bool:
    if usage is None:
        return True
    return (
        type(usage) is dict
        and cast("dict[str, Any]", usage).keys() == _USAGE
        and all(type(count) is int for count in cast("dict[str, Any]", usage).values())
    )


def _is_tool_call(given: object) -> bool:
    if type(given) is not dict:
        return False
    call = cast("dict[str, Any]", given)
    return (
        call.keys() == _TOOL_CALL
        and type(call["name"]) is str
        and type(call["args"]) is dict
        and type(call["id"]) in _TEXT_OR_NONE
        and call["type"] == "tool_call"
    )


def _is_simple_result(fields: dict[str, Any]) -> bool:
    return (
        type(fields["tool_call_id"]) is str and fields["artifact"] is None and fields["status"] in ("success", "error")
    )
