"""Retrieval through its graph: follow-ups found, a thread of a thousand queries, and the route under load.

The peers of the first are the same questions as they were asked, without a talk, and as a person rewrote them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.recall_sets import FollowUp, Said, follow_ups
from bench.report import median, p95, table
from bench.service_load import Requests, loaded, post
from bench.sessions_stores import missing, started
from threadkeep.agent.retrieval import Retrieval
from threadkeep.agent.retrieval_turn import RetrievalRequest
from threadkeep.compose.knowledge import open_knowledge
from threadkeep.compose.retrieval import open_retrieval
from threadkeep.knowledge.indexing import embed_documents
from threadkeep.ports.knowledge import Access, Chunk, Document, Part
from threadkeep.ports.models import model_of
from threadkeep.scope import Scope
from threadkeep.settings import Settings

ME, MINE = Scope("default", "ann"), Access("default", "ann")
_SERVERS = ("postgres", "mariadb")
_TABLES = ("conversation_checkpoints", "tk_checkpoint_items", "tk_checkpoint_writes")
_THREAD_ROWS = {
    "wall_ms": "wall ms, median",
    "ms": "CPU ms, median",
    "bytes_a_query": "bytes stored a query",
}
_STRETCH = 100  # queries at each end of the long thread


def main(args: argparse.Namespace) -> dict[str, Any]:
    result = asyncio.run(_measured(args))
    if not args.json:
        print(rendered(result))
    return result


async def _measured(args: argparse.Namespace) -> dict[str, Any]:
    """Follow-ups also on servers, as far as they are asked for and there."""
    said, asked = follow_ups(args.data)
    asked = asked[:20] if args.quick else asked
    servers = [name for name in _SERVERS if args.store in (name, "all")]
    left_out = missing(servers)
    on_servers = {name: await _on_server(name, said, asked) for name in servers if name not in left_out}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "retrieval.db"
        url = f"sqlite:///{path}"
        await _index(url, said)
        async with open_retrieval(url, Settings()) as retrieval:
            found = await _follow_ups(retrieval, asked)
            thread = await _long_thread(retrieval, path, asked, 250 if args.quick else 1_000)
        load = await _load(url, asked, 0.4 if args.quick else 10.0)
    return {"follow_ups": {"sqlite": found, **on_servers}, "left_out": left_out, "thread": thread, "load": load}


async def _on_server(name: str, said: Sequence[Said], asked: Sequence[FollowUp]) -> dict[str, float]:
    with started(name) as url:
        await _index(url, said)
        async with open_retrieval(url, Settings()) as retrieval:
            return await _follow_ups(retrieval, asked)


async def _index(url: str, said: Sequence[Said]) -> None:
    async with open_knowledge(url, Settings()) as knowledge:
        for one in said:
            document = Document(one.id, "cast", "", one.id.encode(), (Part("", one.text),), (Chunk(0, one.text),))
            await knowledge.store.put("default", document)
        assert knowledge.embedder is not None, "the offline embedder comes with the extra `embeddings`"
        model = await model_of(knowledge.embedder)
        await embed_documents(knowledge.store, knowledge.embedder, model, None, None)


def _request(query: str, conversation: str | None, top_k: int = 5) -> RetrievalRequest:
    return RetrievalRequest(ME, MINE, query, top_k, use_cache=False, conversation=conversation)


async def _follow_ups(retrieval: Retrieval, asked: Sequence[FollowUp]) -> dict[str, float]:
    """R@5 of CAsT 2021. What a turn goes by is what the graph itself found before, not what was right."""

    async def found(one: FollowUp, query: str, conversation: str | None) -> bool:
        result = await retrieval.ask(_request(query, conversation))
        return one.gold in [context["documentId"] for context in result.contexts]

    return {
        "as asked": fmean([await found(one, one.question, None) for one in asked]),
        "in its conversation": fmean([await found(one, one.question, one.gold.split("_")[0]) for one in asked]),
        "rewritten by a person": fmean([await found(one, one.rewritten, None) for one in asked]),
    }


async def _long_thread(retrieval: Retrieval, path: Path, asked: Sequence[FollowUp], queries: int) -> dict[str, Any]:
    """Both ends ask the same. Of time there is the wall's and this process's own: others use the machine too."""
    spent: list[float] = []
    waited: list[float] = []
    sizes = [_stored_bytes(path)]
    for number in range(queries):
        began, from_ = time.process_time(), time.perf_counter()
        await retrieval.ask(_request(asked[number % min(_STRETCH, len(asked))].question, "long", 10))
        waited.append((time.perf_counter() - from_) * 1_000)
        spent.append((time.process_time() - began) * 1_000)
        if number + 1 in (_STRETCH, queries - _STRETCH, queries):
            sizes.append(_stored_bytes(path))
    growth = {"first": (sizes[1] - sizes[0]) / _STRETCH, "last": (sizes[3] - sizes[2]) / _STRETCH}
    return {
        "queries": queries,
        "wall_ms": _ends(waited),
        "ms": _ends(spent),
        "bytes_a_query": growth | {"ratio": growth["last"] / growth["first"]},
    }


def _ends(spent: Sequence[float]) -> dict[str, float]:
    first, last = median(spent[:_STRETCH]), median(spent[-_STRETCH:])
    return {"first": first, "last": last, "ratio": last / first}


def _stored_bytes(path: Path) -> int:
    """What the checkpoints' tables hold; a file grows by whole pages, whenever it likes."""
    with sqlite3.connect(path) as connection:
        return sum(_table_bytes(connection, name) for name in _TABLES)


def _table_bytes(connection: sqlite3.Connection, name: str) -> int:
    columns = [row[1] for row in connection.execute("SELECT * FROM pragma_table_info(?)", (name,))]
    lengths = " + ".join(f"coalesce(length(CAST({column} AS BLOB)), 0)" for column in columns)
    return connection.execute(f"SELECT coalesce(sum({lengths}), 0) FROM {name}").fetchone()[0]  # noqa: S608


async def _load(url: str, asked: Sequence[FollowUp], seconds: float) -> dict[str, Any]:
    """Each client in a conversation of its own, on one process of the service."""

    def request(client: int, sent: int) -> bytes:
        query = asked[(client * 7 + sent) % len(asked)].question
        data = post("/retrieval/query", {"query": query, "topK": 10})
        return data.replace(b"Content-Type", f"X-Conversation-ID: load-{client}\r\nContent-Type".encode(), 1)

    told: dict[str, Any] = {}
    requests = Requests(request, lambda _: [])
    with _service(url) as service:
        await loaded(service, requests, 2, min(2.0, seconds))  # opens the graph and its embedder
        for clients in (8, 64):
            found = await loaded(service, requests, clients, seconds)
            told[str(clients)] = {
                "p50_ms": median(found.answers),
                "p95_ms": p95(found.answers),
                "answers_a_second": found.per_second,
            }
    return told


@contextmanager
def _service(url: str) -> Iterator[tuple[int, int]]:
    """Its port and process id."""
    command = [sys.executable, "-m", "threadkeep.cli", "serve", "--json", "--port", "0", "--url", url]
    unlimited = os.environ | {"THREADKEEP_RATE_LIMIT": "1000000/second"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=unlimited)
    assert process.stdout is not None
    try:
        yield int(json.loads(process.stdout.readline())["url"].rsplit(":", 1)[1]), process.pid
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


def rendered(result: dict[str, Any]) -> str:
    found, thread, load = result["follow_ups"], result["thread"], result["load"]
    ends = [
        (name, *(f"{thread[key][end]:,.1f}" for end in ("first", "last")), f"{thread[key]['ratio']:.2f}")
        for key, name in _THREAD_ROWS.items()
    ]
    rows = [(f"{n} clients", one["p50_ms"], one["p95_ms"], one["answers_a_second"]) for n, one in load.items()]
    asked = [(way, *(f"{one[way]:.3f}" for one in found.values())) for way in found["sqlite"]]
    title = f"A thread of {thread['queries']:,} queries"
    return "\n".join(
        [
            table("Follow-ups (CAsT 2021), R@5", ("", *found), asked),
            *(f"{name}: left out, {why}" for name, why in result["left_out"].items()),
            table(title, ("", f"first {_STRETCH}", f"last {_STRETCH}", "ratio"), ends),
            table("POST /retrieval/query, one process", ("", "p50 ms", "p95 ms", "answers/s"), rows),
        ]
    )
