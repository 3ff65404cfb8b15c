"""Usage counted from a graph's state: how many questions, what was read. Two kinds of states are understood:
those that keep `queries` (a retrieval graph), and those that keep `messages`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from cachetools import LRUCache
from langchain_core.messages import HumanMessage

from threadkeep.adapters.langgraph.messages import text_of
from threadkeep.ports.threads import Thread, Usage, documents_of

_LONGEST_QUERY = 1_000  # characters
_MOST_REMEMBERED = 10_000
_MESSAGES = "messages"
_COUNTED = {_MESSAGES, "queries", "counts", "firstQuery", "retrievedContexts", "cached", "datasourceIds", "accessLevel"}


class Changes(NamedTuple):
    since: str | None  # the checkpoint before
    channels: Collection[str]  # those that have a new value


class _Reported(NamedTuple):
    """What was reported of a thread up to a checkpoint; it says nothing of one that continues from another."""

    seen: Usage  # without texts, to know it again
    first_query: bool  # whether that was reported, or never will be
    checkpoint: str | None = None


class News(NamedTuple):
    reported: Usage  # to be stored
    known: _Reported  # when it is


class UsageReporter:
    """Reports a thread's usage when it has changed, so that few checkpoints cost another statement.

    Safe to use from several threads.
    """

    def __init__(self, redact: Callable[[Thread, str], str]) -> None:
        self._redact = redact
        self._reported: LRUCache[bytes, _Reported] = LRUCache(_MOST_REMEMBERED)
        self._changing = threading.Lock()

    def news(self, thread: Thread, values: Mapping[str, Any], changes: Changes, *, open_text: bool) -> News | None:
        """None when nothing is new. Where values are encrypted, only numbers are reported."""
        if _COUNTED.isdisjoint(changes.channels):
            return None
        reported = self._reported_at(thread, changes.since)
        first = reported is None or not reported.first_query
        usage = _of_queries(values) or _of_messages(values, reported)
        if usage is None:
            return None
        query = usage.first_query if first and open_text else None
        seen = replace(usage, first_query=None)
        if reported is not None and reported.seen == seen and query is None:
            return None
        known = _Reported(seen, not first or query is not None or not open_text)
        if not open_text:
            return News(replace(seen, datasource_ids=None, documents=()), known)
        redacted = self._redact(thread, query)[:_LONGEST_QUERY] if query else None
        return News(replace(usage, first_query=redacted), known)

    def stored(self, thread: Thread, since: str | None, checkpoint: str, news: News | None) -> None:
        """With or without news: a checkpoint that continues from `since`."""
        known = news.known if news else self._reported_at(thread, since)
        with self._changing:
            if known is None:
                self._reported.pop(thread.key, None)
            else:
                self._reported[thread.key] = known._replace(checkpoint=checkpoint)

    def _reported_at(self, thread: Thread, checkpoint: str | None) -> _Reported | None:
        with self._changing:
            reported = self._reported.get(thread.key)
        return reported if reported is not None and reported.checkpoint == checkpoint else None

    def forget(self, thread: Thread) -> None:
        with self._changing:
            self._reported.pop(thread.key, None)


def _of_queries(values: Mapping[str, Any]) -> Usage | None:
    queries = _entries(values.get("queries"))
    if not queries:
        return None
    counts: Any = values.get("counts") if isinstance(values.get("counts"), dict) else {}
    contexts = _entries(values.get("retrievedContexts"))
    latest = max((_number(one.get("queryIndex")) for one in contexts), default=0)
    read = [str(one["documentId"]) for one in contexts if "documentId" in one and one.get("queryIndex") == latest]
    level = values.get("accessLevel")
    return Usage(
        query_count=max(_number(counts.get("queryCount")), len(queries)),
        first_query=_text(values.get("firstQuery")) or _text(queries[0].get("query")),
        context_count=max(_number(counts.get("contextCount")), len(contexts)),
        cache_hits=_number(counts["cacheHits"]) if "cacheHits" in counts else None,
        cached=values.get("cached") is True,
        datasource_ids=_texts(values.get("datasourceIds")),
        access_level=level if level in ("public", "private", "mixed") else None,
        documents=documents_of(read),
    )


def _of_messages(values: Mapping[str, Any], reported: _Reported | None) -> Usage | None:
    """How many questions a list of messages has, and the first one with words, unless that was reported."""
    found: Any = values.get(_MESSAGES)
    if type(found) is not list:
        return None
    messages = cast("list[Any]", found)
    count = sum(isinstance(one, HumanMessage) for one in messages)
    if not count:
        return None
    if reported is not None and reported.first_query:
        return Usage(query_count=count)
    texts = (text_of(one) for one in messages if isinstance(one, HumanMessage))
    return Usage(query_count=count, first_query=next(filter(None, texts), None))


def _entries(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        return []
    return [one for one in cast("list[Any]", value) if isinstance(one, dict)]


def _texts(value: Any) -> tuple[str, ...] | None:
    if not isinstance(value, list | tuple):
        return None
    return tuple(str(one) for one in cast("Sequence[Any]", value))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else 0
