"""One contestant in a process of its own, so that load time and memory are its alone.

`python -m bench.language_measure NAME DATA MOST` prints its figures as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

import threadkeep  # noqa: F401
from bench.language_peers import PEERS

if TYPE_CHECKING:
    from bench.language_sets import LanguageSet


def measured(name: str, data: Path, most: int | None) -> dict[str, Any]:
    """`threadkeep` itself is imported by then for all of them: the application that asks has it."""
    before = psutil.Process().memory_info().rss
    start = time.perf_counter()
    tell = PEERS[name]()
    tell("a first call", ("en", "vi", "pl", "zh"))
    load = time.perf_counter() - start
    memory = (psutil.Process().memory_info().rss - before) / 2**20
    from bench.language_sets import sets  # not before: it needs a part of ours

    return {"load_seconds": load, "rss_mb": memory, "sets": [_accuracy(tell, one) for one in sets(data, most)]}


def _accuracy(tell: Any, one: LanguageSet) -> dict[str, Any]:
    start = time.perf_counter()
    right = sum(_same(tell(text, one.allowed), one.gold) for text in one.texts)
    seconds = time.perf_counter() - start
    return {
        "set": one.name,
        "language": one.gold,
        "texts": len(one.texts),
        "accuracy": right / len(one.texts),
        "microseconds": seconds / len(one.texts) * 1e6,
    }


def _same(tag: str, gold: str) -> bool:
    """A peer that names the script where only Chinese was asked for is right, too."""
    return tag == gold or (gold == "zh" and tag.startswith("zh-"))


if __name__ == "__main__":
    contestant, folder, limit = sys.argv[1:]
    print(json.dumps(measured(contestant, Path(folder), int(limit) or None)))
