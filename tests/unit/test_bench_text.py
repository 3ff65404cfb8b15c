"""The benchmarks of text run on any data of the sets' shapes, and find what is there to be found."""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path

import pytest

from bench import normalise, summary, tokens
from bench.bm25 import Bm25

SAID = {
    "en": ("The red train to Gdynia leaves at noon on Mondays.", "When does the red train leave?", "noon"),
    "vi": ("Tôi bị dị ứng đậu phộng từ nhỏ.", "dị ứng với gì?", "đậu phộng"),
    "zh": ("我對花生過敏，已經十年了。", "對什麼過敏？", "花生"),
    "pl": ("Jestem uczulony na orzeszki ziemne.", "Na co jesteś uczulony?", "orzeszki"),
}
FILES = {
    "xquad/xquad.en.json": "en",
    "xquad/xquad.vi.json": "vi",
    "xquad/xquad.zh.json": "zh",
    "drcd/DRCD_dev.json": "zh",
    "poquad/poquad_open.json": "pl",
}


@pytest.fixture(scope="module")
def args(tmp_path_factory: pytest.TempPathFactory) -> argparse.Namespace:
    data = tmp_path_factory.mktemp("data")
    for name, language in FILES.items():
        passage, question, answer = SAID[language]
        told = f"{passage} One. Two is a number. Three is another one. Four is even."
        about = [
            {"context": told, "qas": [{"question": question, "answers": [{"text": answer}]}]},
            {"context": "Something else altogether was told here. Nothing of it matters. So. It. Goes.", "qas": []},
        ]
        write(data / name, json.dumps({"data": [{"paragraphs": about}]}).encode())
    turns = [{"dia_id": f"D1:{i}", "speaker": "Ann", "text": said[0]} for i, said in enumerate(SAID.values())]
    talk = {"conversation": {"session_1": turns}, "qa": [{"question": SAID["en"][1], "evidence": ["D1:0"]}]}
    write(data / "locomo/locomo_open.json", json.dumps([talk]).encode())
    long = json.dumps([{"haystack_sessions": [[{"role": "user", "content": said[0]} for said in SAID.values()]]}])
    write(data / "longmemeval/longmemeval_s_open.json.gz", gzip.compress(long.encode()))
    return argparse.Namespace(data=data, json=True, quick=True, rounds=None)


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


@pytest.mark.slow
def test_tokens_compares_the_numbers_with_tiktokens(args: argparse.Namespace) -> None:
    result = tokens.main(args)
    assert set(result["must_show"].values()) == {0}
    assert set(result["encodings"]) == {"cl100k_base", "o200k_base"}
    assert "cl100k_base" in tokens.rendered(result)


@pytest.mark.slow
def test_normalise_measures_every_contestant_on_every_set(args: argparse.Namespace) -> None:
    result = normalise.main(args)
    ours = result["contestants"]["Threadkeep"]
    assert set(ours["recall_at_1"].values()) == {1.0}
    assert ours["locomo"]["R@5"] == 1.0
    assert result["contestants"]["words, lower case"]["recall_at_1"]["XQuAD vi, asked without marks"] == 0.0
    assert all(size > 0 for one in result["contestants"].values() for size in one["bytes_per_message"].values())
    assert "LoCoMo" in normalise.rendered(result)


def test_summary_measures_every_contestant_on_every_set(args: argparse.Namespace) -> None:
    result = summary.main(args)
    for its in result["contestants"].values():
        assert set(its) == {"XQuAD en", "XQuAD vi", "PoQuAD", "DRCD"}
    assert result["contestants"]["the first three"]["XQuAD en"]["answers_kept"] == 1.0
    assert "PoQuAD" in summary.rendered(result)


def test_bm25_prefers_the_rarer_word_and_the_shorter_text() -> None:
    search = Bm25([["a", "b"], ["a", "c"], ["a", "c", "d", "e"], ["f"]])
    assert search.best(["a", "b"], 3) == [0, 1, 2]
    assert search.best(["c"], 5) == [1, 2]
    assert search.best(["x"], 5) == []
