"""The Lua scripts, read once: what a server is sent, and the digest it knows each by afterwards."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from importlib.resources import files

Argument = str | bytes | int | float
_FOLDER = files("threadkeep.sessions.redis") / "lua"


@dataclass(frozen=True, slots=True)
class Script:
    name: str
    text: str = field(repr=False)
    sha: str


def _read(name: str) -> str:
    return (_FOLDER / f"{name}.lua").read_text("utf-8")


def _script(name: str, flags: str = "", before: str = "") -> Script:
    """The shebang makes the server check memory and disk before the script runs, so it never stops half-way."""
    first = f"#!lua flags={flags}\n" if flags else "#!lua\n"
    text = first + before + _read(name)
    return Script(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


_TALK = _read("common")
_TURN = _read("turn")
_SESSION = _TURN + _TALK + _read("session")
# What frees room must work when there is none.
APPEND = _script("append", before=_TURN + _read("ordinary") + _TALK + _read("session"))
REFRESH = _script("refresh", before=_SESSION)
TOUCH = _script("touch", before=_SESSION)
REFLECT = _script("reflect", before=_SESSION)
RESTATE = _script("restate", before=_SESSION)
SEED = _script("seed", before=_TALK)
READ = _script("read", "no-writes")
ERASE = _script("erase", "allow-oom", _TALK)
ERASE_MESSAGE = _script("erase_message", "allow-oom", _SESSION)
ERASE_USER = _script("erase_user", "allow-oom")
SETTLE = _script("settle", "allow-oom", _TALK)
EVICT = _script("evict", "allow-oom", _TALK)
MOVE = _script("move", "allow-oom", _TALK)
CLAIM = _script("claim", "allow-oom")
GIVE_BACK = _script("give_back", "allow-oom")
RETIRE = _script("retire", "allow-oom")
FRONT = _script("front")
DETACH = _script("detach", "allow-oom")
LEAVE = _script("leave", "allow-oom")
CLEAR = _script("clear", "allow-oom")
DEPTH = _script("depth", "no-writes")
TAKES = _script("takes")
CALL = _script("call")
KEEP_VALUE = _script("keep_value")
DROP_VALUES = _script("drop_values", "allow-oom")
HOLD = _script("hold")
KEEP_TURN = _script("keep_turn")
NEXT_MOMENT = _script("next_moment")
SETTLE_TURNS = _script("settle_turns", "allow-oom")
REPLAY_TURNS = _script("replay_turns")
