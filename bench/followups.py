"""Chains of follow-up questions over their own documents, each asked through the retrieval graph.

What is measured is how often the right document stands in the first three contexts: of follow-ups, of turns that change
the topic, and of the questions that begin a chain. The peer of a change of topic is the same question asked alone: one
that is found alone and not in its conversation is lost.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.report import table
from threadkeep.agent.retrieval import Retrieval
from threadkeep.agent.retrieval_turn import RetrievalRequest
from threadkeep.compose.knowledge import open_knowledge
from threadkeep.compose.retrieval import open_retrieval
from threadkeep.knowledge.indexing import Source
from threadkeep.ports.knowledge import Access
from threadkeep.scope import Scope
from threadkeep.settings import Settings

DATA = Path(__file__).parents[1] / "tests" / "data" / "followups"
FIRST = 3  # contexts
_ME, _MINE = Scope("default", "ann"), Access("default", "ann")


@dataclass(frozen=True, slots=True)
class Turn:
    language: str
    kind: str  # opening, follow-up, change
    query: str
    found: bool
    alone: bool  # found without its conversation


def main(args: argparse.Namespace) -> dict[str, Any]:
    turns = asyncio.run(measured(every=5 if args.quick else 1))
    result = {language: figures(one for one in turns if one.language == language) for language in languages(turns)}
    result["all"] = figures(turns)
    if args.list:
        for one in turns:
            if not one.found:
                print(f"{one.language} {one.kind}: {one.query}")
    if not args.json:
        print(rendered(result))
    return result


async def measured(settings: Settings | None = None, every: int = 1) -> list[Turn]:
    """The turns of every chain, or of each fifth one."""
    settings = settings or Settings()
    chains = [json.loads(line) for line in (DATA / "chains.jsonl").read_text("utf-8").splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/followups.db"
        async with open_knowledge(url, settings) as knowledge:
            await knowledge.indexer.index(DATA, Source("documents"))
        async with open_retrieval(url, settings) as retrieval:
            return [turn for chain in chains[::every] for turn in await _asked(retrieval, chain)]


async def _asked(retrieval: Retrieval, chain: dict[str, Any]) -> list[Turn]:
    turns: list[Turn] = []
    for number, turn in enumerate(chain["turns"]):
        kind = "change" if turn["change"] else "follow-up" if number else "opening"
        found, alone = [
            f"documents/{turn['document']}.md" in await _first(retrieval, turn["query"], conversation)
            for conversation in (chain["id"], None)
        ]
        turns.append(Turn(chain["language"], kind, turn["query"], found, alone))
    return turns


async def _first(retrieval: Retrieval, query: str, conversation: str | None) -> Sequence[str]:
    request = RetrievalRequest(_ME, _MINE, query, FIRST, use_cache=False, conversation=conversation)
    return [context["documentId"] for context in (await retrieval.ask(request)).contexts]


def languages(turns: Iterable[Turn]) -> list[str]:
    return list(dict.fromkeys(one.language for one in turns))


def figures(turns: Iterable[Turn]) -> dict[str, int]:
    """How many there are of each kind, how many were right, and how many changes of topic were lost."""
    turns = list(turns)
    kinds = {kind: [one for one in turns if one.kind == kind] for kind in ("opening", "follow-up", "change")}
    counted = {name: len(some) for name, some in kinds.items()}
    right = {f"{name} right": sum(one.found for one in some) for name, some in kinds.items()}
    lost = sum(one.alone and not one.found for one in kinds["change"])
    return counted | right | {"follow-up right alone": sum(one.alone for one in kinds["follow-up"]), "lost": lost}


def rendered(result: dict[str, dict[str, int]]) -> str:
    rows = [
        (
            language,
            *(f"{one[f'{kind} right']} of {one[kind]}" for kind in ("opening", "follow-up", "change")),
            one["follow-up right alone"],
            one["lost"],
        )
        for language, one in result.items()
    ]
    head = ("", "openings", "follow-ups", "changes of topic", "follow-ups alone", "changes lost")
    return table(f"The right document in the first {FIRST}", head, rows)
