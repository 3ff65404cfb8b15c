"""The held-back redaction sets, through the public `redact`: leak and false alarms per language.

`python -m bench redaction --set held-back [--list] [--tell-language]`

A private value leaks if any letter or digit of it stays unmasked; a message leaks if any of its values does.
A false alarm is a message without private data in which anything is masked.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.redaction_score import covered
from threadkeep.policy.redact import redact

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from bench.redaction_score import Spans

FOLDER = Path(__file__).parents[1] / "tests" / "data" / "redaction" / "held_back"
LANGUAGES = ("en", "vi", "pl", "zh")


@dataclass(slots=True)
class Figures:
    values: int = 0
    messages: int = 0
    innocents: int = 0
    leaking_messages: int = 0
    leaks: list[tuple[str, str, str]] = field(default_factory=list)
    """Class, type and the message with the leaking value in brackets."""
    alarms: list[tuple[str, str, str]] = field(default_factory=list)
    """Class, types and the message with what was masked in brackets."""

    def rates(self) -> dict[str, Any]:
        return {
            "values": self.values,
            "leak_percent": _percent(len(self.leaks), self.values),
            "messages": self.messages,
            "leaking_messages_percent": _percent(self.leaking_messages, self.messages),
            "innocents": self.innocents,
            "false_alarms_percent": _percent(len(self.alarms), self.innocents),
            "leaks_by_class": dict(Counter(name for name, _, _ in self.leaks).most_common()),
            "false_alarms_by_type": dict(Counter(kinds for _, kinds, _ in self.alarms).most_common()),
        }


def main(args: argparse.Namespace) -> dict[str, Any]:
    figures = {language: measure(language, language if args.tell_language else None) for language in LANGUAGES}
    if not args.json:
        _print_rates(figures)
        if args.list:
            _print_list(figures)
    return {language: one.rates() for language, one in figures.items()}


def measure(language: str, told: str | None) -> Figures:
    figures = Figures()
    for row in (FOLDER / f"{language}.jsonl").read_text(encoding="utf-8").splitlines():
        _count(figures, json.loads(row), told)
    return figures


def _count(figures: Figures, row: dict[str, Any], told: str | None) -> None:
    text: str = row["text"]
    spans: Spans = [(span.start, span.end, span.type) for span in redact(text, language=told).spans]
    if not row["private"]:
        figures.innocents += 1
        if spans:
            kinds = ", ".join(sorted({kind for _, _, kind in spans}))
            figures.alarms.append((row["class"], kinds, _bracketed(text, spans)))
        return
    gold = list(_gold(row))
    leaks = [one for one in gold if not covered(text, one[0], one[1], spans)]
    figures.messages += 1
    figures.values += len(gold)
    figures.leaking_messages += bool(leaks)
    figures.leaks += [(row["class"], one[2], _bracketed(text, [one])) for one in leaks]


def _gold(row: dict[str, Any]) -> Iterator[tuple[int, int, str]]:
    """Yield the spans of the private values, which a row lists in the order of its text."""
    end = 0
    for private in row["private"]:
        start = row["text"].index(private["value"], end)
        end = start + len(private["value"])
        yield start, end, private["type"]


def _bracketed(text: str, spans: Spans) -> str:
    for start, end, _ in sorted(spans, reverse=True):
        text = f"{text[:start]}⟦{text[start:end]}⟧{text[end:]}"
    return text.replace("\n", "⏎")


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 1)


def _print_rates(figures: dict[str, Figures]) -> None:
    print(f"{'':6}{'values':>8}{'leak %':>8}{'messages':>10}{'leak %':>8}{'innocents':>11}{'false alarms %':>16}")
    for language, one in figures.items():
        rates = one.rates()
        print(
            f"{language:6}{one.values:>8}{rates['leak_percent']:>8}{one.messages:>10}"
            f"{rates['leaking_messages_percent']:>8}{one.innocents:>11}{rates['false_alarms_percent']:>16}"
        )


def _print_list(figures: dict[str, Figures]) -> None:
    for language, one in figures.items():
        for title, found in (("leaks", one.leaks), ("false alarms", one.alarms)):
            print(f"\n{language}: {title}")
            for name, kinds, text in found:
                print(f"  {name:12} {kinds:16} {text}")
