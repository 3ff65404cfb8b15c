"""Names that are not known, and the known one that is spelled most like each: for settings and configuration files."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel

_ALIKE = 0.65  # "API_KEY" and "API_KEY_SECRET" are at 0.67, unrelated names of ours mostly below 0.6


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is spelled most like this one, or None where none is. Case and dashes do not count."""
    folded = {_folded(one): one for one in known}
    found = difflib.get_close_matches(_folded(name), folded, 1, _ALIKE)
    return folded[found[0]] if found else None


def fix_for(name: str, known: Sequence[str]) -> str:
    """Return what to do about a name that is not known: the name that was probably meant, or those there are."""
    found = closest(name, known)
    return f"did you mean {found}?" if found else f"remove it, or use one of {', '.join(sorted(known))}"


def keys_beside(model: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    """Return the keys that the table holding the value at `location` may have, by the model's JSON schema."""
    schema = model.model_json_schema()
    table: dict[str, Any] = schema
    for part in location[:-1]:
        table = _inside(table, part)
        while "$ref" in table:
            table = schema["$defs"][table["$ref"].rpartition("/")[2]]
    return list(table.get("properties", ()))


def _inside(table: dict[str, Any], part: str | int) -> dict[str, Any]:
    if isinstance(part, int):
        return table["items"]
    if part in table.get("properties", {}):
        return table["properties"][part]
    of_any_key: list[dict[str, Any]] = [*table.get("patternProperties", {}).values()]
    return of_any_key[0] if of_any_key else table["additionalProperties"]


def _folded(name: str) -> str:
    return name.replace("-", "_").casefold()
