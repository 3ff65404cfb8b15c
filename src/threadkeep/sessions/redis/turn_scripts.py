"""The Lua scripts of the reflection module's keys."""

from __future__ import annotations

import hashlib
from importlib.resources import files

from threadkeep.sessions.redis.scripts import Script

_FOLDER = files("threadkeep.sessions.redis") / "lua"


def _script(name: str, first: str = "#!lua\n") -> Script:
    text = first + (_FOLDER / f"{name}.lua").read_text("utf-8")
    return Script(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


_FREES_ROOM = "#!lua flags=allow-oom\n"
KEEP_TURN = _script("keep_turn")
NEXT_MOMENT = _script("next_moment")
TAKE_TURNS = _script("take_turns", _FREES_ROOM)
SETTLE_TURNS = _script("settle_turns", _FREES_ROOM)
GIVE_BACK_TURNS = _script("give_back_turns", _FREES_ROOM)
REPLAY_TURNS = _script("replay_turns")
