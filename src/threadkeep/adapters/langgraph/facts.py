"""Metadata as facts that a database can filter by without knowing any key or value: eight bytes for each entry."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import ormsgpack

from threadkeep.errors import InvalidInput

_OPTIONS = ormsgpack.OPT_NON_STR_KEYS | ormsgpack.OPT_SORT_KEYS
_BYTES = 8
_SHORT = 64  # characters


def facts_of(metadata: Mapping[str, Any]) -> bytes:
    """Side by side; what cannot be encoded this way is left out, and matches nothing in a filter."""
    return b"".join(fact for key, value in metadata.items() if (fact := fact_of(key, value)) is not None)


def fact_of(key: str, value: Any) -> bytes | None:
    """None for what cannot be encoded. Equal for values that Python calls equal, such as 1, 1.0 and True."""
    return _short_fact(key, value) if type(value) is str and len(value) <= _SHORT else _fact(key, value)


def _fact(key: str, value: Any) -> bytes | None:
    try:
        data = ormsgpack.packb([key, _canonical(value)], None, _OPTIONS)
    except (TypeError, ValueError, RecursionError):
        return None
    return hashlib.blake2b(data, digest_size=_BYTES).digest()


_short_fact = lru_cache(maxsize=512)(_fact)  # the run, the source: the same in every step


def _canonical(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _canonical(one) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list | tuple):
        return [_canonical(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def checked_filter(given: Any) -> dict[str, Any]:
    """Any text may be a key. Raises `InvalidInput` on what is no mapping from text."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidInput("filter", f"is a {type(given).__name__}", "give a mapping of metadata keys to values")
    for key in given:  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(key, str):
            raise InvalidInput("filter", f"has a key that is a {type(key).__name__}", "keys are texts")  # pyright: ignore[reportUnknownArgumentType]
    return dict(given)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def wanted_facts(wanted: Mapping[str, Any]) -> tuple[bytes, ...]:
    """Those that a matching checkpoint must have. None also matches a key that is not there: Python looks later."""
    facts = (fact_of(key, value) for key, value in wanted.items() if value is not None)
    return tuple(fact for fact in facts if fact is not None)


def matches(metadata: Mapping[str, Any], wanted: Iterable[tuple[str, Any]]) -> bool:
    return all(_equal(metadata.get(key), value) for key, value in wanted)


def _equal(stored: Any, wanted: Any) -> bool:
    return stored == wanted or (isinstance(wanted, tuple) and stored == list(wanted))  # pyright: ignore[reportUnknownArgumentType]
