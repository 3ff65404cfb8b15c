"""The labelled sets, brought to one form: text, language, gold spans in our own type names."""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

Gold = tuple[int, int, str]

PRESIDIO_TYPES = {
    "EMAIL_ADDRESS": "EMAIL",
    "PHONE_NUMBER": "PHONE",
    "CREDIT_CARD": "CREDIT_CARD",
    "IBAN_CODE": "IBAN",
    "US_SSN": "SSN",
    "IP_ADDRESS": "IP",
    "STREET_ADDRESS": "ADDRESS",
    "PERSON": "NAME",
    "US_DRIVER_LICENSE": "DRIVER_LICENSE",
}
MULTIPRIV_FIELDS = {
    "emailAddress": "EMAIL",
    "phoneNumbers": "PHONE",
    "idCardNumbers": "NATIONAL_ID",
    "location": "ADDRESS",
    "name": "NAME",
    "doctor": "NAME",
}


@dataclass(frozen=True, slots=True)
class Case:
    text: str
    language: str
    gold: tuple[Gold, ...]


def synth(data: Path) -> list[Case]:
    rows = json.loads((data / "presidio" / "synth_dataset_v2.json").read_text(encoding="utf-8"))
    return [
        Case(
            row["full_text"],
            "en",
            tuple(
                (span["start_position"], span["end_position"], PRESIDIO_TYPES[span["entity_type"]])
                for span in row["spans"]
                if span["entity_type"] in PRESIDIO_TYPES
            ),
        )
        for row in rows
    ]


def multipriv(data: Path, language: str) -> list[Case]:
    name = "multipriv_open.json" if language == "en" else "multipriv_zh_open.json"
    rows = json.loads((data / "multipriv" / name).read_text(encoding="utf-8"))
    return [Case(row["naturalParagraph"], language, tuple(_fields(row))) for row in rows]


def _fields(row: dict[str, object]) -> list[Gold]:
    """Every place where a field's value stands in the paragraph; a value the paragraph altered has no gold.

    The set marks no places. Some of its e-mail fields have a blank in them (`ann_ lee@c.org`), which no address has,
    and the paragraph writes the address without it: that is the field's value.
    """
    text, found = str(row["naturalParagraph"]), []
    for field, kind in MULTIPRIV_FIELDS.items():
        value = str(row[field]).strip()
        if kind == "EMAIL" and value not in text:
            value = "".join(value.split())
        start = text.find(value)
        while value and start >= 0:
            found.append((start, start + len(value), kind))
            start = text.find(value, start + len(value))
    return found


_ADDRESS = re.compile(r"[^\s@,;:()<>]+@[^\s@,;:()<>]+[^\s@,;:()<>.!?]")


def altered(data: Path, language: str) -> list[int]:
    """Rows whose e-mail field the paragraph writes otherwise (`a_da b@c.org` as `a_da_b@c.org`): no gold."""
    cases = multipriv(data, language)
    return [place for place, case in enumerate(cases) if _unmarked(case)]


def completed(data: Path, language: str) -> list[Case]:
    """The same with gold for the addresses of the altered rows, found by nothing but their at sign."""
    return [replace(case, gold=(*case.gold, *_unmarked(case))) for case in multipriv(data, language)]


def _unmarked(case: Case) -> list[Gold]:
    if any(kind == "EMAIL" for _, _, kind in case.gold):
        return []
    return [(*match.span(), "EMAIL") for match in _ADDRESS.finditer(case.text)]


def templates(folder: Path, language: str) -> list[Case]:
    rows = (json.loads(line) for line in (folder / f"pii_{language}.jsonl").read_text(encoding="utf-8").splitlines())
    return [Case(row["text"], language, tuple((s, e, k) for s, e, k in row["spans"])) for row in rows]


def innocent_lines(data: Path, count: int = 2000) -> list[tuple[str, str, str]]:
    """Lines nobody needs to mask, as (set, language, line): an equal share of each conversation and passage set."""
    sources = [
        ("locomo", "en", _locomo(data)),
        ("xquad.en", "en", _squad(data / "xquad" / "xquad.en.json")),
        ("xquad.vi", "vi", _squad(data / "xquad" / "xquad.vi.json")),
        ("poquad", "pl", _squad(data / "poquad" / "poquad_open.json")),
        ("drcd", "zh-Hant", _squad(data / "drcd" / "DRCD_dev.json")),
    ]
    chosen: list[tuple[str, str, str]] = []
    for name, language, lines in sources:
        random.Random(name).shuffle(lines)
        chosen += [(name, language, line) for line in lines[: count // len(sources)]]
    return chosen


def _locomo(data: Path) -> list[str]:
    talks = json.loads((data / "locomo" / "locomo_open.json").read_text(encoding="utf-8"))
    return [
        turn["text"]
        for talk in talks
        for key, session in talk["conversation"].items()
        if key.startswith("session_") and isinstance(session, list)
        for turn in session
    ]


def _squad(path: Path) -> list[str]:
    articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    lines: list[str] = []
    for article in articles:
        for paragraph in article["paragraphs"]:
            lines.append(paragraph["context"])
            lines += [question["question"] for question in paragraph["qas"]]
    return lines
