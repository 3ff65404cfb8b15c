"""The open sets as plain texts, and as questions with the passage that answers them."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

_SQUAD_LIKE = {
    "XQuAD en": "xquad/xquad.en.json",
    "XQuAD vi": "xquad/xquad.vi.json",
    "XQuAD zh": "xquad/xquad.zh.json",
    "DRCD": "drcd/DRCD_dev.json",
    "PoQuAD": "poquad/poquad_open.json",
}
_QUESTIONS = 1_000


class Passages(NamedTuple):
    texts: list[str]
    questions: list[tuple[str, str, str]]  # question, the passage with its answer, the answer


class Talk(NamedTuple):
    turns: list[tuple[str, str]]  # id, "speaker: text [shared image: caption]"
    questions: list[tuple[str, set[str]]]  # question, ids of the turns that answer it


def texts(data: Path) -> dict[str, list[str]]:
    """Every text of the conversation and passage sets, by set."""
    found = {"LoCoMo": [turn for talk in talks(data) for _, turn in talk.turns]}
    found["LongMemEval"] = list(_longmemeval(data))
    for name in _SQUAD_LIKE:
        paragraphs = _paragraphs(data, name)
        found[name] = [paragraph["context"] for paragraph in paragraphs]
        found[name] += [asked["question"] for paragraph in paragraphs for asked in paragraph["qas"]]
    return found


def squad_like(data: Path, name: str, most: int | None = _QUESTIONS) -> Passages:
    """Every distinct passage, shuffled; the first answerable questions, or all of them."""
    paragraphs = _paragraphs(data, name)
    passages = list(dict.fromkeys(paragraph["context"] for paragraph in paragraphs))
    random.Random(7).shuffle(passages)
    questions = [
        (asked["question"], paragraph["context"], asked["answers"][0]["text"])
        for paragraph in paragraphs
        for asked in paragraph["qas"]
        if asked.get("answers") and not asked.get("is_impossible")
    ]
    return Passages(passages, questions[:most])


def _paragraphs(data: Path, name: str) -> list[dict[str, Any]]:
    articles = json.loads((data / _SQUAD_LIKE[name]).read_text("utf-8"))["data"]
    return [paragraph for article in articles for paragraph in article["paragraphs"]]


def talks(data: Path) -> Iterator[Talk]:
    for one in json.loads((data / "locomo/locomo_open.json").read_text("utf-8")):
        turns = [
            (turn["dia_id"], f"{turn['speaker']}: {turn['text']}{_caption(turn)}")
            for key, session in one["conversation"].items()
            if key.startswith("session_") and isinstance(session, list)
            for turn in session
        ]
        random.Random(7).shuffle(turns)
        ids = {turn for turn, _ in turns}
        asked = [(item["question"], ids.intersection(item.get("evidence", ()))) for item in one["qa"]]
        yield Talk(turns, [(question, gold) for question, gold in asked if gold])


def _caption(turn: dict[str, Any]) -> str:
    return f" [shared image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""


def _longmemeval(data: Path) -> Iterator[str]:
    with gzip.open(data / "longmemeval/longmemeval_s_open.json.gz") as file:
        for one in json.load(file):
            yield from (turn["content"] for session in one["haystack_sessions"] for turn in session)
