"""The settings as they came out: each value, where it came from, secrets masked."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import AliasChoices

from threadkeep.settings import Settings, config_file

Source = Literal["env", "toml", "default"]

_PASSWORD_IN_URL = re.compile(r"(://[^:/@\s]*:).+@")
_SECRET_PARAMETER = re.compile(r"(?i)([?&][^=&]*(?:pass|pwd|secret|token|key)[^=&]*=)[^&#]*")


@dataclass(frozen=True, slots=True)
class Resolved:
    name: str  # as the environment knows it
    value: Any
    source: Source


def resolve(settings: Settings) -> list[Resolved]:
    toml = _toml()
    return [
        Resolved(names[0], masked(getattr(settings, field)), _source(names, toml)) for field, names in _names().items()
    ]


def unknown_names() -> list[str]:
    """What looks like a setting of ours and is not: a typo would otherwise be passed over in silence."""
    known = {name for names in _names().values() for name in names} | {"THREADKEEP_CONFIG"}
    ours = (name for name in os.environ if name.startswith("THREADKEEP_"))
    return sorted({*ours, *_toml()} - known)


def masked(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return _SECRET_PARAMETER.sub(r"\1***", _PASSWORD_IN_URL.sub(r"\1***@", value))


def _names() -> dict[str, list[str]]:
    return {field: list(_choices(info.validation_alias)) for field, info in Settings.model_fields.items()}


def _choices(alias: Any) -> Iterable[str]:
    assert isinstance(alias, AliasChoices)
    return (str(choice) for choice in alias.choices)


def _source(names: Iterable[str], toml: Mapping[str, Any]) -> Source:
    names = list(names)
    if any(os.environ.get(name) for name in names):
        return "env"
    return "toml" if any(name in toml for name in names) else "default"


def _toml() -> dict[str, Any]:
    path = config_file()
    return tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
