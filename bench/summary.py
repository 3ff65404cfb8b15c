"""Summaries: how many of the answers people were asked for are still in three sentences of the passage."""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from statistics import fmean
from typing import Any

from bench.open_text import squad_like
from bench.report import table
from threadkeep.models.sentences import sentences
from threadkeep.models.summary import summarise

_SETS = ("XQuAD en", "XQuAD vi", "PoQuAD", "DRCD")
_SENTENCES = 3
_FEWEST = 5  # sentences in a passage worth summarising


def _first(passage: str) -> str:
    return " ".join(sentences(passage)[:_SENTENCES])


def _any(passage: str) -> str:
    found = sentences(passage)
    return " ".join(random.Random(len(passage)).sample(found, _SENTENCES))


CONTESTANTS: dict[str, Callable[[str], str]] = {
    "Threadkeep": lambda passage: summarise(passage, _SENTENCES, longest=100_000),
    "the first three": _first,
    "any three": _any,
}


def main(args: argparse.Namespace) -> dict[str, Any]:
    most = 60 if args.quick else None
    result: dict[str, Any] = {"bench": "summary", "contestants": {name: {} for name in CONTESTANTS}}
    for which in _SETS:
        passages = squad_like(args.data, which)
        asked = [(p, answer) for _, p, answer in passages.questions if len(sentences(p)) >= _FEWEST][:most]
        for name, summarised in CONTESTANTS.items():
            started = time.process_time()
            summaries = {passage: summarised(passage) for passage, _ in asked}
            seconds = time.process_time() - started
            result["contestants"][name][which] = {
                "answers_kept": fmean(float(answer in summaries[passage]) for passage, answer in asked),
                "length": fmean(len(summary) / len(passage) for passage, summary in summaries.items()),
                "ms": seconds / len(summaries) * 1e3,
            }
    if not args.json:
        print(rendered(result))
    return result


def rendered(result: dict[str, Any]) -> str:
    titles = {
        "answers_kept": "share of answers kept",
        "length": "length over the passage's",
        "ms": "ms a passage",
    }
    rows = {
        key: [(name, *(its[which][key] for which in _SETS)) for name, its in result["contestants"].items()]
        for key in titles
    }
    return "\n".join(table(titles[key], ("three sentences of five or more", *_SETS), rows[key]) for key in titles)
