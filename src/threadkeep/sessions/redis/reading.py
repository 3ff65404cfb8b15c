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

_RUN = re.compile(rb"master_replid:([0-9a-f]+)")


def commands(keys: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    document, meta = keys[0], keys[1]
    return ("HGET", meta, "seq"), ("GET", document), ("HGET", meta, "shown"), ("INFO", "replication")


def hot_from(scope: Scope, answers: list[Any]) -> Hot | None:
    """None when the answers do not say it all: no session, a document of another's making, or a write in between."""
    seq, document, shown, info = answers
    if document is None or shown is None or seq is None:
        return None
    generation, last_seq, created, language, gap, floor, seen, length, index = shown.split(b"\n", 8)
    if last_seq != seq or int(length) != len(document) or not created:
        return None
    run = _RUN.search(info)
    whole = run is not None and run[1] == seen and (gap == b"0" or int(floor) > int(gap))
    texts: list[dict[str, Any]] = json.loads(document)["messages"]
    rest: list[dict[str, Any]] = json.loads(b"[%b]" % index)
    window = tuple(map(_message, texts, rest))
    if len(texts) != len(rest):
        return None
    began = optional_time(created)
    return Hot(scope.at(int(generation)), window, (), int(seq), optional_text(language), began, whole)


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
