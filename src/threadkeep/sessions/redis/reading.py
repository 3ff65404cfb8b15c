"""The window by native commands in one go, where that is possible: half the cost of a script.

The mark is read before the window and after it: while it stands, what was read in between belongs together. The
document must be as long as the window's messages make it, or one of the two is not as it was left.
"""

from __future__ import annotations

import re
from typing import Any

from threadkeep.ports.hot import Hot
from threadkeep.scope import Scope
from threadkeep.sessions.redis.encode import messages_in, optional_text, optional_time
from threadkeep.sessions.redis.recent import Copy, Mark, RecentWindows

_RUN = re.compile(rb"master_replid:[0-9a-f]+")
_FRAME, _LANGUAGE = b'{"createdAt":,"messages":[]}', b',"language":'


def commands(keys: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    document, meta, window, pending = keys[:4]
    front = keys[6]
    return (
        ("HGET", meta, "shown"),
        ("ZRANGE", window, "0", "-1"),
        ("STRLEN", document),
        ("HMGET", meta, "shown", "blank"),
        ("INFO", "replication"),
        ("HGET", front, "missed"),
        ("EXISTS", document, pending),
    )


def nothing_is_hot(answers: list[Any]) -> bool:
    """As of every talk that begins; told without asking the script as well."""
    return answers[-1] == 0


def mark_commands(keys: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    document, meta, front = keys[0], keys[1], keys[6]
    return ("HGET", meta, "shown"), ("STRLEN", document), ("INFO", "replication"), ("HGET", front, "missed")


def still_holds(copy: Copy, answers: list[Any]) -> bool:
    shown, length, info, missed = answers
    return shown == copy.shown and length == int(copy.mark.length) and _run_in(info, missed) == copy.run


def hot_from(scope: Scope, answers: list[Any], recent: RecentWindows) -> Hot | None:
    """None when the answers do not say it all: no session, a document of another's making, or a write in between.

    Nor when one of them is an error, as all are while the server loads its data: the script will tell it.
    """
    if any(isinstance(answer, Exception) for answer in answers):
        return None
    before, items, length, (shown, blank), info, missed, _ = answers
    if shown is None or shown != before:
        return None
    mark = Mark.of(shown)
    if not mark.created or length != int(mark.length) or length != _length(mark, items, int(blank or 0)):
        return None
    run = _run_in(info, missed)
    place = scope.at(int(mark.generation))
    language, began = optional_text(mark.language), optional_time(mark.created)
    window, whole, stale = messages_in(b"\n".join(items)), mark.is_whole(run), mark.is_stale(run)
    hot = Hot(place, window, (), int(mark.seq), language, began, whole, stale)
    recent.keep(scope, shown, run, hot)
    return hot


def _length(mark: Mark, items: list[bytes], blank: int) -> int:
    """Of the document that shows these messages; see `lua/session.lua`."""
    language = len(_LANGUAGE) + len(mark.language) if mark.language else 0
    fragments = [len(item) - item.rindex(b"\n") for item in items]  # and the comma after each, but for the last
    return len(_FRAME) + len(mark.created) + blank + language + sum(fragments) - (1 if items else 0)


def _run_in(info: Any, missed: Any) -> bytes:
    """As `this_run` in `lua/common.lua`."""
    found = _RUN.search(info) if isinstance(info, bytes) else None
    return found[0] + (missed or b"") if found and not isinstance(missed, Exception) else b"unknown"


def hot_of(scope: Scope, reply: list[Any]) -> Hot:
    """From what the script answered."""
    live, whole, stale, generation, last_seq, created, language = reply[1].split(b"\n")
    return Hot(
        scope=scope.at(int(generation)),
        window=messages_in(reply[2]),
        pending=messages_in(reply[3]),
        last_seq=int(last_seq),
        language=optional_text(language),
        created_at=optional_time(created) if live == b"1" else None,
        whole=whole == b"1",
        stale=stale == b"1",
    )
