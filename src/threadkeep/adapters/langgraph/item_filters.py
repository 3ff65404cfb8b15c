"""What a search asks of an item's value, and of its namespace. Everything is compared in Python, with no key in SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import ge, gt, le, lt
from typing import Any, cast

from langgraph.store.base import MatchCondition

from threadkeep.adapters.langgraph.facts import fact_of
from threadkeep.errors import InvalidInput

_ORDER: dict[str, Callable[[Any, Any], bool]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
_OPERATORS = {"$eq", "$ne", *_ORDER}


def checked(given: Any) -> dict[str, Any]:
    """Raises `InvalidInput` on what is no filter: another type, or an operator that is not known."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in cast("Iterable[Any]", given)):
        raise InvalidInput("filter", "is not a mapping of texts", "give the fields of a value, and what they should be")
    _check_operators(given)
    return dict(cast("Mapping[str, Any]", given))


def _check_operators(value: Any) -> None:
    if isinstance(value, Mapping):
        asked = cast("Mapping[Any, Any]", value)
        if any(_is_operator(key) and key not in _OPERATORS for key in asked):
            raise InvalidInput("filter", "has an unknown operator", f"use {', '.join(sorted(_OPERATORS))}")
        if len({_is_operator(key) for key in asked}) > 1:
            raise InvalidInput("filter", "has operators and fields side by side", "give one or the other")
        for inner in asked.values():
            _check_operators(inner)


def _is_operator(key: object) -> bool:
    return isinstance(key, str) and key.startswith("$")


def facts_in(wanted: Mapping[str, Any]) -> tuple[bytes, ...]:
    """Those that a matching item must have: of fields that are to equal a plain value."""
    plain = {key: value for key, value in wanted.items() if isinstance(value, str | int | float)}
    return tuple(fact for key, value in plain.items() if (fact := fact_of(key, value)) is not None)


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(_fits(value.get(key), asked) for key, asked in wanted.items())


def _fits(value: Any, asked: Any) -> bool:
    if isinstance(asked, Mapping):
        return _fits_mapping(value, cast("Mapping[str, Any]", asked))
    if isinstance(asked, list | tuple):
        inner = cast("Sequence[Any]", asked)
        if not isinstance(value, list | tuple) or len(cast("Sequence[Any]", value)) != len(inner):
            return False
        return all(_fits(one, other) for one, other in zip(cast("Sequence[Any]", value), inner, strict=True))
    return bool(value == asked)


def _fits_mapping(value: Any, asked: Mapping[str, Any]) -> bool:
    if any(map(_is_operator, asked)):
        return all(_compares(value, operator, other) for operator, other in asked.items())
    if not isinstance(value, Mapping):
        return False
    return all(_fits(cast("Mapping[str, Any]", value).get(key), other) for key, other in asked.items())


def _compares(value: Any, operator: str, other: Any) -> bool:
    if operator in ("$eq", "$ne"):
        return (value == other) is (operator == "$eq")
    number, other_number = _number(value), _number(other)
    if number is not None and other_number is not None:
        return _ORDER[operator](number, other_number)
    return isinstance(value, str) and isinstance(other, str) and _ORDER[operator](value, other)


def _number(value: Any) -> float | None:
    """Also of a text that tells one, as LangGraph's own stores do; None of anything else. Large ones as they are."""
    if isinstance(value, int | float):
        return value
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def fits_namespace(namespace: Sequence[str], conditions: Sequence[MatchCondition]) -> bool:
    return all(_has_end(namespace, condition) for condition in conditions)


def _has_end(namespace: Sequence[str], condition: MatchCondition) -> bool:
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    if condition.match_type not in ("prefix", "suffix"):
        raise InvalidInput("match_type", "is not a choice", 'use "prefix" or "suffix"')
    end = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(end, path, strict=True))


def fixed_prefix(conditions: Sequence[MatchCondition]) -> tuple[str, ...]:
    """Labels that every matching namespace begins with."""
    longest: tuple[str, ...] = ()
    for condition in conditions:
        path = tuple(condition.path)
        fixed = path[: path.index("*")] if "*" in path else path
        if condition.match_type == "prefix" and len(fixed) > len(longest):
            longest = fixed
    return longest
