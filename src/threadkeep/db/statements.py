"""What a verb is made of. A verb is a generator: it yields statements, receives their answers and returns its result.

A verb does no I/O, so it is written once for every database, and a driver that has to try again begins it anew. Its
statements have named parameters, `:name`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

T = TypeVar("T")
Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Query:
    """Answered with a list of rows. `alone`: see `Change`."""

    text: str
    values: Values = field(default_factory=dict[str, Any])
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """Answered with the number of rows it changed: 0 for an INSERT that `may_exist` and whose key is taken.

    `alone`: it may be committed by itself. A verb that may be repeated then spares a server BEGIN and COMMIT.
    """

    text: str
    values: Values = field(default_factory=dict[str, Any])
    may_exist: bool = False
    alone: bool = False


@dataclass(frozen=True, slots=True)
class ChangeEach:
    """One change for each of `rows`, in their order. Answered with nothing."""

    text: str
    rows: Sequence[Values]
    alone: ClassVar[bool] = False


Statement = Query | Change | ChangeEach
Verb = Generator[Statement, Any, T]
Steps = Verb[None]


class Raced(Exception):
    """Raised by a verb when another transaction came first in a way that a new attempt will see."""


class KeyTaken(Exception):
    """Raised in a verb at the INSERT whose key is taken. The transaction can only be rolled back."""


class ReferenceMissing(Exception):
    """Raised in a verb at the INSERT that refers to a missing row. The transaction can only be rolled back."""


class Undo(Exception):
    """Raised by a verb to roll back its transaction and return `result` all the same."""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self.result = result


def query(text: str, values: Values | None = None) -> Verb[Sequence[Any]]:
    """A verb of one query: its rows."""
    rows: Sequence[Any] = yield Query(text, values or {})
    return rows


def one_row(text: str, values: Values | None = None) -> Verb[Any | None]:
    """The first row that the query finds, or None."""
    rows: Sequence[Any] = yield Query(text, values or {})
    return rows[0] if rows else None


def changes(steps: Sequence[Change], *, only_if_first: bool = False) -> Verb[list[int]]:
    """All of them, or none; how many rows each changed.

    `only_if_first`: unless the first one changes a row, nothing is done and the answer is empty.
    """
    counts: list[int] = []
    for number, step in enumerate(steps):
        if only_if_first and not number:
            step = Change(step.text, step.values, may_exist=True)
        counts.append((yield step))
        if only_if_first and not counts[0]:
            raise Undo([])
    return counts


def raise_in(verb: Verb[Any], violation: KeyTaken | ReferenceMissing, error: Exception) -> Statement:
    """The verb's next statement, after it caught the violation. Raise the driver's `error` where it does not."""
    try:
        return verb.throw(violation)
    except (KeyTaken, ReferenceMissing) as uncaught:
        if uncaught is violation:
            raise error from None
        raise
