"""Rows by many values at once.

PostgreSQL takes lists as arrays, so that a statement's text is the same for any number of values: what SQLAlchemy has
compiled and what the server has prepared for it serve every batch. Others get a list in the text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Column, ColumnElement, any_, bindparam, func, select, tuple_
from sqlalchemy.dialects import postgresql


def among(column: Column[Any], name: str, *, postgres: bool) -> ColumnElement[bool]:
    """`column` is one of the values of the list `name`."""
    if postgres:
        return column == any_(bindparam(name, type_=postgresql.ARRAY(column.type)))
    return column.in_(bindparam(name, expanding=True))


def pair_among(columns: tuple[Column[Any], Column[Any]], name: str, *, postgres: bool) -> ColumnElement[bool]:
    """The two columns are one of the pairs that `pairs` has made for `name`."""
    if not postgres:
        return tuple_(*columns).in_(bindparam(name, expanding=True))
    lists = (
        bindparam(f"{name}_{number}", type_=postgresql.ARRAY(column.type)) for number, column in enumerate(columns)
    )
    return tuple_(*columns).in_(select(*(func.unnest(one) for one in lists)))


def pairs(name: str, values: Iterable[tuple[Any, Any]], *, postgres: bool) -> dict[str, Any]:
    """What to pass to a statement with `pair_among`."""
    listed = list(values)
    if not postgres:
        return {name: listed}
    return {f"{name}_{number}": [value[number] for value in listed] for number in (0, 1)}
