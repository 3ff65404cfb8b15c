"""The settings as they came out: each value, where it came from, secrets masked."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from threadkeep.settings import CONFIG_FILE_VARIABLE, Settings, config_file, read_config_file, setting_names

Source = Literal["env", "toml", "default"]

_MASK = "***"
_PATHS = ("CHROMA_PATH", "THREADKEEP_OUTWARD_LOG", "THREADKEEP_REDACTION_RULES")  # of what any process may use
_SECRET = re.compile(r"(?i)(KEY|SECRET|TOKEN|PASSWORD)$")  # how the names of such settings end
# Passwords are often not escaped: before the last @ anything may stand, and an @ after ? or # proves nothing.
_URL = re.compile(
    r"""(?P<scheme>[a-z][a-z0-9+.-]*://)
        (?P<user>[^?#]*@)?
        (?P<place>(?:[\w.-]*|\[[0-9a-f:.]+\])(?::\d{1,5})?(?:,[\w.-]+(?::\d{1,5})?)*(?:/[^?#@]*)?)
        (?P<query>\?[^#@]*)?
        (?P<fragment>\#[^@]*)?""",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Resolved:
    name: str  # as the environment knows it
    value: Any
    source: Source


def resolve(settings: Settings) -> list[Resolved]:
    toml = read_config_file()
    return [
        Resolved(names[0], _shown(names[0], getattr(settings, field)), _source(names, toml))
        for field, names in setting_names().items()
    ]


def for_elsewhere(settings: Settings) -> tuple[dict[str, str], list[str]]:
    """The environment in which a process that is started in another folder has the same settings; and the names of
    what it must get by other means, since it holds secrets. Not which stores: these have options of their own."""
    environment = {CONFIG_FILE_VARIABLE: str(config_file().absolute())} if config_file().is_file() else {}
    secret: list[str] = []
    for one in resolve(settings):
        if one.source == "default" or one.name in ("DATABASE_URL", "REDIS_URL"):
            continue
        if one.name in _PATHS and "://" not in one.value:
            environment[one.name] = str(Path(one.value).absolute())
        elif one.source == "env" and _MASK in str(one.value):
            secret.append(one.name)
        elif one.source == "env":
            environment[one.name] = os.environ[one.name]
    return environment, secret


def masked(url: str) -> str:
    """Without user, password, query and fragment; nothing at all of what cannot be read as a URL."""
    parts = _URL.fullmatch(url)
    if parts is None:
        return _MASK
    user, query = parts["user"] and f"{_MASK}@", (parts["query"] or parts["fragment"]) and f"?{_MASK}"
    return f"{parts['scheme']}{user or ''}{parts['place']}{query or ''}"


def shown_path(path: Path) -> str:
    """Of a store's file, as its URL named it: what looks like a query may be a key."""
    name, asked, _ = str(path).partition("?")
    return f"{name}?{_MASK}" if asked else name


def _shown(name: str, value: Any) -> Any:
    if value is not None and _SECRET.search(name):
        return _MASK
    return masked(value) if isinstance(value, str) and (name.endswith("URL") or "://" in value) else value


def _source(names: Iterable[str], toml: Mapping[str, Any]) -> Source:
    names = list(names)
    if any(os.environ.get(name) for name in names):
        return "env"
    return "toml" if any(name in toml for name in names) else "default"
