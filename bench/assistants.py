"""Offline assistants: the turns of `tests/data/assistants` held with the examples as they are installed.

Each conversation is held as its user would, on a store of its own; the folder's documents are indexed anew. Every turn
is printed with its answer and with what its authors expect. The strings beside an expectation count what a program can
tell; a reader judges the rest.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.report import table
from threadkeep import Scope, Settings, open_memory
from threadkeep.compose.assistant import open_assistant
from threadkeep.ports.chat import Answer, Asked

_ROOT = Path(__file__).parents[1]
_TURNS = _ROOT / "tests" / "data" / "assistants" / "offline_turns.jsonl"
_FOLDERS = {"shop": "pc_shop", "hotel": "hotel_concierge"}
_QUICK = 3  # conversations


@dataclass(frozen=True, slots=True)
class Judged:
    """`holds` is None where the data names no string that an answer usually holds."""

    name: str
    asked: str
    answer: Answer
    expected: Mapping[str, Any]
    holds: bool | None
    forbidden: Sequence[str]

    @property
    def in_language(self) -> bool:
        return self.answer.language.split("-")[0] == self.expected["language"]


def main(args: argparse.Namespace) -> dict[str, Any]:
    began = time.monotonic()
    turns = asyncio.run(_held(_QUICK if args.quick else None))
    counts = {name: _counted([turn for turn in turns if turn.name.startswith(name)]) for name in _FOLDERS}
    result = {"bench": "assistants", "seconds": time.monotonic() - began, "assistants": counts}
    if not args.json:
        print("\n\n".join(map(_shown, turns)))
        print(_rendered(counts))
    return result


async def _held(most: int | None) -> list[Judged]:
    talks = [json.loads(line) for line in _TURNS.read_text("utf-8").splitlines()]
    turns: list[Judged] = []
    for name, folder in _FOLDERS.items():
        own = [talk for talk in talks if talk["assistant"] == name][:most]
        with tempfile.TemporaryDirectory() as place:
            url = f"sqlite:///{place}/memory.db"
            settings = Settings().model_copy(update={"database_url": url})
            async with (
                open_memory(url, settings=settings) as memory,
                open_assistant(memory, settings, _ROOT / "examples" / folder, url=url) as assistant,
            ):
                for talk in own:
                    scope = Scope("default", talk["id"], talk["id"])
                    for number, turn in enumerate(talk["turns"], 1):
                        answer = await assistant.respond(Asked(scope, turn["say"]))
                        turns.append(_judged(f"{talk['id']}.{number}", turn, answer))
    return turns


def _judged(name: str, turn: Mapping[str, Any], answer: Answer) -> Judged:
    text = answer.text.casefold()
    usual = [one.casefold() in text for one in turn["any"]]
    forbidden = [one for one in turn["never"] if one.casefold() in text]
    return Judged(name, turn["say"], answer, turn, any(usual) if usual else None, forbidden)


def _counted(turns: Sequence[Judged]) -> dict[str, int]:
    return {
        "turns": len(turns),
        "hold one of `any`, none of `never`": sum(turn.holds is not False and not turn.forbidden for turn in turns),
        "hold one of `never`": sum(bool(turn.forbidden) for turn in turns),
        "in another language": sum(not turn.in_language for turn in turns),
    }


def _shown(turn: Judged) -> str:
    return "\n".join(_lines(turn))


def _lines(turn: Judged) -> Iterator[str]:
    yield f"{turn.name}  {turn.asked}"
    yield from (f"    > {line}" for line in turn.answer.text.splitlines())
    yield f"    expected [{turn.expected['language']}] {turn.expected['expect']}"
    notes = ["holds none of `any`"] if turn.holds is False else []
    notes += [f"holds {one!r}" for one in turn.forbidden]
    notes += [] if turn.in_language else [f"answered in {turn.answer.language}"]
    yield f"    {', '.join(notes) or 'strings fit'}"


def _rendered(counts: Mapping[str, Mapping[str, int]]) -> str:
    rows = [[name, *map(str, counted.values())] for name, counted in counts.items()]
    return table("Offline assistants: what strings tell", ["", *next(iter(counts.values()))], rows)
