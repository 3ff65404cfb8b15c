"""The open sets as one user's turns and questions about them. Turns that answer a question are its gold."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.open_text import squad_like
from bench.recall_memory import Said

PASSAGES = ("XQuAD en", "XQuAD vi", "XQuAD vi, no marks", "XQuAD zh", "DRCD", "PoQuAD")


@dataclass(frozen=True, slots=True)
class Asked:
    question: str
    gold: frozenset[str]
    conversations: frozenset[str]  # all that the answer needs


@dataclass(frozen=True, slots=True)
class Archive:
    name: str
    said: list[Said]
    asked: list[Asked]


def locomo(data: Path) -> list[Archive]:
    """Talks of two people; a conversation is one of their sessions."""
    archives: list[Archive] = []
    for talk in json.loads((data / "locomo/locomo_open.json").read_text("utf-8")):
        said = list(_locomo_turns(talk["conversation"]))
        where = {one.id: one.conversation for one in said}
        asked: list[Asked] = []
        for item in talk["qa"]:
            named = re.findall(r"D\d+:\d+", " ".join(item.get("evidence", ())))
            gold = frozenset(turn for turn in named if turn in where)
            if gold:
                asked.append(Asked(str(item["question"]), gold, frozenset(where[turn] for turn in gold)))
        archives.append(Archive(talk["sample_id"], said, asked))
    return archives


def _locomo_turns(talk: dict[str, Any]) -> Iterator[Said]:
    sessions = (key for key in talk if re.fullmatch(r"session_\d+", key))
    for key in sorted(sessions, key=lambda key: int(key.split("_")[1])):
        when = datetime.strptime(talk[f"{key}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for turn in talk[key]:
            caption = f" [shared image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            yield Said(turn["dia_id"], key, f"{turn['speaker']}: {turn['text']}{caption}", ts=when)


def longmemeval(data: Path, answers: bool = False) -> list[Archive]:
    """A haystack of sessions for each question: the user's turns alone, or with the long answers between them."""
    with gzip.open(data / "longmemeval/longmemeval_s_open.json.gz") as file:
        items = [item for item in json.load(file) if "_abs" not in item["question_id"]]
    return [_haystack(item, answers) for item in items]


def _haystack(item: dict[str, Any], answers: bool) -> Archive:
    said: list[Said] = []
    gold: set[str] = set()
    sessions = zip(item["haystack_session_ids"], item["haystack_sessions"], item["haystack_dates"], strict=True)
    for session, turns, date in sessions:
        when = datetime.strptime(date, "%Y/%m/%d (%a) %H:%M").replace(tzinfo=UTC)
        for number, turn in enumerate(turns):
            if turn["role"] == "user" or answers:
                said.append(Said(f"{session}#{number}", session, turn["content"], turn["role"], when))
                if turn.get("has_answer"):
                    gold.add(said[-1].id)
    asked = Asked(item["question"], frozenset(gold), frozenset(item["answer_session_ids"]))
    return Archive(item["question_id"], said, [asked])


def long_answers(data: Path, together: int = 4) -> list[Archive]:
    """Several haystacks as one user's: thousands of turns, most of their text written by an assistant."""
    haystacks = longmemeval(data, answers=True)
    return [_merged(haystacks[start : start + together]) for start in range(0, len(haystacks), together)]


def _merged(haystacks: list[Archive]) -> Archive:
    said: dict[str, Said] = {}
    for one in haystacks:
        for turn in one.said:
            said.setdefault(turn.id, turn)
    asked = [question for one in haystacks for question in one.asked if question.gold]
    return Archive("+".join(one.name for one in haystacks), list(said.values()), asked)


def passages(data: Path, name: str, without_marks: Callable[[str], str] = str) -> Archive:
    """Each passage is a conversation by itself. Every question of the set is asked: a part would be another set."""
    of, _, change = name.partition(", ")
    found = squad_like(data, of, most=None)
    ids = {text: str(number) for number, text in enumerate(found.texts)}
    said = [Said(ids[text], ids[text], text) for text in found.texts]
    asked = [
        Asked(without_marks(question) if change else question, frozenset({ids[passage]}), frozenset({ids[passage]}))
        for question, passage, _ in found.questions
    ]
    return Archive(of, said, asked)


@dataclass(frozen=True, slots=True)
class FollowUp:
    question: str
    rewritten: str
    earlier: list[tuple[str, str]]  # questions before it, with the passages that answered them
    gold: str


def follow_ups(data: Path) -> tuple[list[Said], list[FollowUp]]:
    """CAsT 2021: every turn of every topic, the passages of all turns being what there is to find."""
    topics = json.loads((data / "cast/2021_manual_evaluation_topics_v1.0.json").read_text("utf-8"))
    said: list[Said] = []
    asked: list[FollowUp] = []
    for topic in topics:
        earlier: list[tuple[str, str]] = []
        for turn in topic["turn"]:
            place = f"{topic['number']}_{turn['number']}"
            said.append(Said(place, place, turn["passage"]))
            asked.append(FollowUp(turn["raw_utterance"], turn["manual_rewritten_utterance"], list(earlier), place))
            earlier.append((turn["raw_utterance"], turn["passage"]))
    random.Random(7).shuffle(said)
    return said, asked
