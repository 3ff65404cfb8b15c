"""The product as it stands: turns stored by `append`, embedded by its worker, asked for by `recall`.

Each archive is a user of one database. The same file or server is opened a second time without an embedder, to see what
words find alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import groupby

from bench.recall_measure import DEPTH, Ranked
from bench.recall_memory import Said
from bench.recall_sets import Archive
from bench.sessions_stores import OPEN
from threadkeep import ModelResponse, Scope, Settings, SyncMemory, UserMessage

_LONGEST_WAIT = 3_600  # seconds for the vectors of one archive


class Product:
    def __init__(self, memory: SyncMemory, words_only: SyncMemory) -> None:
        self._memory, self._words_only = memory, words_only
        self._stored: set[str] = set()
        self.spent: list[float] = []

    def ranker(self, archive: Archive) -> Callable[[str], Ranked]:
        return self._asking(archive, self._memory, self.spent)

    def by_words(self, archive: Archive) -> Callable[[str], Ranked]:
        return self._asking(archive, self._words_only, [])

    def _asking(self, archive: Archive, memory: SyncMemory, spent: list[float]) -> Callable[[str], Ranked]:
        user = Scope("bench", archive.name)
        ids = self._store(user, archive)

        def ask(question: str) -> Ranked:
            begun = time.perf_counter()
            hits = memory.recall(user, question, k=DEPTH).hits
            spent.append(time.perf_counter() - begun)
            return [ids[hit.conversation, hit.seq] for hit in hits]

        return ask

    def _store(self, user: Scope, archive: Archive) -> dict[tuple[str, int], str]:
        """Once for each archive: sets that differ in their questions share their texts."""
        ids: dict[tuple[str, int], str] = {}
        said_something = (one for one in archive.said if one.text.strip())
        in_order = sorted(said_something, key=lambda one: one.conversation)  # stable: turns stay in theirs
        for name, said in groupby(in_order, key=lambda one: one.conversation):
            turns = list(said)
            ids |= {(name, number): one.id for number, one in enumerate(turns, 1)}
            if archive.name not in self._stored:
                receipt = self._memory.append(user.with_conversation(name), [_event(one) for one in turns])
                assert len(receipt.kept) == len(turns), f"{archive.name}: not all of {name} was kept"
        if archive.name not in self._stored:
            self._memory.flushed(_LONGEST_WAIT)
            self._stored.add(archive.name)
        return ids


def _event(one: Said) -> UserMessage | ModelResponse:
    return (UserMessage if one.role == "user" else ModelResponse)(one.text, ts=one.ts)


@contextmanager
def product(store: str) -> Iterator[Product]:
    """On a new SQLite file, or on a server started for it."""
    with ExitStack() as opened:
        place = opened.enter_context(OPEN[store]()).place(0)
        url = f"sqlite:///{place}" if store == "sqlite" else place
        memory = opened.enter_context(SyncMemory(url, settings=Settings()))
        words_only = opened.enter_context(SyncMemory(url, settings=Settings(embedder="none")))
        yield Product(memory, words_only)
