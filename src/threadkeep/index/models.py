"""Embedding models by number, as rows of vectors refer to them."""

from __future__ import annotations

from typing import Any

from threadkeep.db.dialects import Dialect
from threadkeep.db.statements import Change, Raced, Verb, one_row
from threadkeep.ports.embedder import EmbeddingModel
from threadkeep.recall.vectors import ENCODING

OF_MODEL = "name = :name AND dimensions = :dimensions AND encoding = :encoding"


def of_model(model: EmbeddingModel, dialect: Dialect) -> dict[str, Any]:
    """The values of `OF_MODEL`."""
    return {"name": dialect.id(model.name), "dimensions": model.dimensions, "encoding": ENCODING}


def model_number(model: EmbeddingModel, dialect: Dialect) -> Verb[int | None]:
    row = yield from one_row(f"SELECT model FROM tk_models WHERE {OF_MODEL}", of_model(model, dialect))  # noqa: S608
    return row[0] if row else None


def number_for(model: EmbeddingModel, dialect: Dialect) -> Verb[int]:
    """Create the number if need be. Two transactions that create it at once get the same one."""
    number = yield from model_number(model, dialect)
    if number is None:
        insert = "INSERT INTO tk_models (name, dimensions, encoding) VALUES (:name, :dimensions, :encoding)"
        yield Change(insert + dialect.if_absent("name"), of_model(model, dialect))
        number = yield from model_number(model, dialect)
    if number is None:
        raise Raced
    return number
