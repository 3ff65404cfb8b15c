"""A scripted load on one service or on several in turn, with a count of its own of what it did, made from answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import httpx

from tests.mcp.library import ANN

EVENTS: list[dict[str, Any]] = [
    {"kind": "UserMessage", "text": "My mail is ann@example.com, the other one is ann@example.org"},
    {"kind": "Thought", "text": "she has two"},
    {"kind": "ToolResult", "name": "search", "result": {"rows": []}},
    {"kind": "ModelResponse", "text": "Call +48 601 234 567 for the rest."},
]
QUESTIONS = ("What is RAG?", "How does it work?", "What is the budget of the astronomy club?")
APPENDS, RECALLS, TALKS = 20, 8, 8


@dataclass
class Counted:
    """By what the services answered, not by what they measured."""

    statuses: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    redacted: Counter[str] = field(default_factory=Counter[str])
    recalls: int = 0
    asked: Counter[str] = field(default_factory=Counter[str])
    looked_up: Counter[str] = field(default_factory=Counter[str])
    queries: Counter[str] = field(default_factory=Counter[str])  # of each conversation
    ids: set[str] = field(default_factory=lambda: {ANN, "shop"})


def run(clients: list[httpx.Client], counted: Counted, first: int = 0) -> Counted:
    turns = cycle(clients)
    _append(turns, counted, first)
    for number in range(RECALLS):
        body = {"scope": {"user": ANN}, "query": f"which mail {number}"}
        next(turns).post("/v1/memory/recall", json=body).raise_for_status()
        counted.recalls += 1
    for number in range(first, first + TALKS):
        for question in QUESTIONS[: 1 + number % len(QUESTIONS)]:
            _ask(next(turns), f"talk-{number}", question, counted)
    _ask(next(turns), "talk-fresh", QUESTIONS[0], counted, useCache=False)
    return counted


def _append(turns: Iterator[httpx.Client], counted: Counted, first: int) -> None:
    """Some of them twice, some malformed: a replay masks nothing anew, and what is malformed is told as a failure."""
    for number in range(first, first + APPENDS):
        place = {"user": ANN, "conversation": f"c{number}"}
        body = {"scope": place, "events": EVENTS, "key": f"k{number}"}
        counted.ids |= {f"c{number}"}
        for again in range(1 + (number % 4 == 0)):
            receipt = next(turns).post("/v1/memory/append", json=body).raise_for_status().json()
            counted.statuses[receipt["status"]] += 1
            if not again:
                counted.refused.update(receipt["refused"])
                counted.redacted.update(receipt["redacted"])
    broken = {
        "scope": {"user": ANN, "conversation": "c"},
        "events": [{"kind": "UserMessage", "text": "x", "id": "m"}] * 2,
    }
    broken["events"][1] = {"kind": "UserMessage", "text": "y", "id": "m"}
    assert next(turns).post("/v1/memory/append", json=broken).status_code == 409
    counted.statuses["failed"] += 1


def _ask(client: httpx.Client, talk: str, question: str, counted: Counted, **more: Any) -> None:
    headers = {"X-User-ID": ANN, "X-Conversation-ID": talk}
    answer = (
        client.post("/retrieval/query", json={"query": question, **more}, headers=headers).raise_for_status().json()
    )
    counted.queries[talk] += 1
    counted.ids |= {talk}
    counted.asked["cached" if answer["cached"] else "found"] += 1
    if more.get("useCache", True):
        counted.looked_up["hit" if answer["cached"] else "miss"] += 1
    assert answer["metrics"]["queryCount"] == counted.queries[talk]
