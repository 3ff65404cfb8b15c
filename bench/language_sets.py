"""The open sets that tell languages apart, and which answer is right for each line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from threadkeep.models.language.latin import folded

LANGUAGES = ("en", "vi", "pl", "zh")
CHINESE = ("zh-Hant", "zh-Hans")
KINDS = ("single-words", "word-pairs", "sentences")

_SENTENCE = re.compile(r"[^。！？\n]+[。！？]?")
_HAN = re.compile("[\u4e00-\u9fff]")


class LanguageSet(NamedTuple):
    name: str
    gold: str
    allowed: tuple[str, ...]
    texts: list[str]


def sets(data: Path, most: int | None = None) -> Iterator[LanguageSet]:
    """As written; then Vietnamese and Polish without diacritics; then the two scripts of Chinese."""
    for kind in KINDS:
        for language in LANGUAGES:
            yield LanguageSet(kind, language, LANGUAGES, _lines(data, kind, language)[:most])
    for kind in KINDS:
        for language in ("vi", "pl"):
            plain = [folded(line) for line in _lines(data, kind, language)[:most]]
            yield LanguageSet(f"{kind}, no diacritics", language, LANGUAGES, plain)
    for path, tag in ((data / "drcd/DRCD_dev.json", "zh-Hant"), (data / "xquad/xquad.zh.json", "zh-Hans")):
        yield LanguageSet("Hant or Hans", tag, CHINESE, _sentences(path)[:most])


def _lines(data: Path, kind: str, language: str) -> list[str]:
    lines = (data / "language" / kind / f"{language}.txt").read_text("utf-8").splitlines()
    return [line for line in lines if line.strip()]


def _sentences(path: Path) -> list[str]:
    """Of the passages; what holds no Chinese character (a stray bracket, `[citation needed]`) is not one."""
    articles = json.loads(path.read_text("utf-8"))["data"]
    passages = (paragraph["context"] for article in articles for paragraph in article["paragraphs"])
    return [sentence for text in passages for sentence in _SENTENCE.findall(text) if _HAN.search(sentence)]
