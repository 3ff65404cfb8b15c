"""The window by native commands in one go, where that is possible: half the cost of a script.

The document shows role, content and time of each message; an index beside it holds the rest. The counter is read before
the document and after it: when it has not moved, what was read in between belongs together.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

from threadkeep.model import Message
from threadkeep.ports.hot import Hot
from threadkeep.scope import Scope
from threadkeep.sessions.redis.encode import exact, messages_in, optional_text, optional_time
from threadkeep.sessions.redis.recent import Copy, Mark, RecentWindows

_RUN = re.compile(rb"master_replid:[0-9a-f]+")


def commands(keys: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    document, meta = keys[0], keys[1]
    return ("HGET", meta, "seq"), ("GET", document), ("HMGET", meta, "shown", "index"), ("INFO", "replication")


def mark_commands(keys: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    document, meta = keys[0], keys[1]
    return ("HGET", meta, "shown"), ("STRLEN", document), ("INFO", "replication")


def still_holds(copy: Copy, answers: list[Any]) -> bool:
    shown, length, info = answers
    return shown == copy.shown and length == int(copy.mark.length) and type(info) is bytes and copy.run in info


def hot_from(scope: Scope, answers: list[Any], recent: RecentWindows) -> Hot | None:
    """None when the answers do not say it all: no session, a document of another's making, or a write in between.

    Nor when one of them is an error, as all are while the server loads its data: the script will tell it.
    """
    if any(isinstance(answer, Exception) for answer in answers):
        return None
    seq, document, (shown, index), info = answers
    if not document or shown is None or seq is None:
        return None
    mark = Mark.of(shown)
    if mark.seq != seq or int(mark.length) != len(document) or not mark.created:
        return None
    run = _run_in(info)
    texts: list[dict[str, Any]] = json.loads(document)["messages"]
    rest: list[dict[str, Any]] = json.loads(b"[%b]" % index)
    if len(texts) != len(rest):
        return None
    place = scope.at(int(mark.generation))
    language, began = optional_text(mark.language), optional_time(mark.created)
    window, whole = tuple(map(_message, texts, rest)), mark.is_whole(run)
    hot = Hot(place, window, (), int(seq), language, began, whole)
    recent.keep(scope, shown, run, hot)
    return hot


def _run_in(info: Any) -> bytes:
    found = _RUN.search(info) if isinstance(info, bytes) else None
    return found[0] if found else b"unknown"


def _message(text: dict[str, Any], rest: dict[str, Any]) -> Message:
    when = datetime.fromisoformat(text["ts"])
    if len(rest) == 2:  # seq and id: the usual case
        return Message(rest["seq"], rest["id"], text["role"], text["content"], when)
    return Message(
        rest["seq"],
        rest["id"],
        text["role"],
        exact(rest) or text["content"],
        when,
        rest.get("modality", "text"),
        rest.get("language"),
        rest.get("meta") or {},
    )


def hot_of(scope: Scope, reply: list[Any]) -> Hot:
    """From what the script answered."""
    live, whole, generation, last_seq, created, language = reply[1].split(b"\n")
    return Hot(
        scope=scope.at(int(generation)),
        window=messages_in(reply[2]),
        pending=messages_in(reply[3]),
        last_seq=int(last_seq),
        language=optional_text(language),
        created_at=optional_time(created) if live == b"1" else None,
        whole=whole == b"1",
    )
