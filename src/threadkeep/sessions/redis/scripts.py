"""The Lua scripts, read once: what a server is sent, and the digest it knows each by afterwards."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from importlib.resources import files

_FOLDER = files("threadkeep.sessions.redis") / "lua"


@dataclass(frozen=True, slots=True)
class Script:
    name: str
    text: str = field(repr=False)
    sha: str


def _read(name: str) -> str:
    return (_FOLDER / f"{name}.lua").read_text("utf-8")


def _script(name: str, flags: str = "", *, on_a_talk: bool = True) -> Script:
    """The first line makes the server check memory and disk before the script runs, so it never stops half-way."""
    first = f"#!lua flags={flags}\n" if flags else "#!lua\n"
    text = first + (_COMMON if on_a_talk else "") + _read(name)
    return Script(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


_COMMON = _read("common")
# What frees room must work when there is none.
APPEND = _script("append")
REFRESH = _script("refresh")
TOUCH = _script("touch")
SEED = _script("seed")
READ = _script("read", "no-writes", on_a_talk=False)
ERASE = _script("erase", "allow-oom")
ERASE_MESSAGE = _script("erase_message", "allow-oom")
SETTLE = _script("settle", "allow-oom")
MOVE = _script("move", "allow-oom")
ERASE_USER = _script("erase_user", "allow-oom", on_a_talk=False)
CLAIM = _script("claim", "allow-oom", on_a_talk=False)
DEPTH = _script("depth", "no-writes", on_a_talk=False)
KEEP_VALUE = _script("keep_value", on_a_talk=False)
DROP_VALUES = _script("drop_values", "allow-oom", on_a_talk=False)
