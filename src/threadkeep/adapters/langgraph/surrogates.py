"""Lone surrogates, which serializers replace by `?`: spelled out before, put back after.

They come with text that was cut in the middle of an emoji, or read from a file name. Only where a value holds one is
it rewritten, and marked as such.
"""

from __future__ import annotations

import dataclasses
import re
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

from langgraph.types import Send

_LONE = re.compile("[\ud800-\udfff]")
_MARK = "\x1a"  # itself spelled out too, so that the way back is certain
_UNFIT = re.compile(f"[\ud800-\udfff{_MARK}]")
_SPELLED = re.compile(f"{_MARK}([0-9a-f]{{4}})")


def has_lone(value: Any) -> bool:
    """Whether any text in it holds one, however deep. Copies are looked through: other threads may change the value."""
    if isinstance(value, str):
        return not value.isascii() and _LONE.search(value) is not None
    if isinstance(value, Mapping):
        return any(has_lone(key) or has_lone(one) for key, one in [*value.items()])  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple | set | frozenset | deque):
        return any(has_lone(one) for one in [*value])  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, PurePath):
        return has_lone(str(value))
    fields = fields_of(value)
    return fields is not None and any(has_lone(one) for one in fields.values())


def spelled(value: Any) -> Any:
    """A copy in which every lone surrogate is spelled out."""
    return _mapped(value, lambda text: _UNFIT.sub(lambda found: f"{_MARK}{ord(found[0]):04x}", text))


def unspelled(value: Any) -> Any:
    return _mapped(value, lambda text: _SPELLED.sub(lambda found: chr(int(found[1], 16)), text))


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {_mapped(key, change): _mapped(one, change) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, tuple) and hasattr(value, "_fields"):  # pyright: ignore[reportUnknownArgumentType]
        return type(value)(*(_mapped(one, change) for one in value))  # pyright: ignore
    if isinstance(value, list | tuple | set | frozenset | deque):
        return type(value)(_mapped(one, change) for one in value)  # pyright: ignore
    if isinstance(value, PurePath):
        return type(value)(change(str(value)))
    fields = fields_of(value)
    return value if fields is None else with_fields(value, {name: _mapped(one, change) for name, one in fields.items()})


def with_fields(value: Any, fields: dict[str, Any]) -> Any:
    """A copy of a value that has fields, with these."""
    if isinstance(value, Send):
        return type(value)(**fields)
    if hasattr(value, "model_copy"):
        return value.model_copy(update=fields)
    return dataclasses.replace(value, **fields)


def fields_of(value: Any) -> dict[str, Any] | None:
    """Of a pydantic model or a dataclass, or of a task that is to be done."""
    if isinstance(value, Send):
        return {"node": value.node, "arg": value.arg, "timeout": value.timeout}
    if hasattr(value, "model_copy") and hasattr(value, "__dict__"):
        extra: Any = getattr(value, "__pydantic_extra__", None) or {}
        return {**value.__dict__, **extra}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
    return None
