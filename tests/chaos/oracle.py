"""The oracle: what writers were told, beside what the archive holds in the end.

Writers keep a journal, a line for each attempt and each answer, on the disk before they go on:

    {"turn": "w3 17", "conversation": "c5", "said": "try"}
    {"turn": "w3 17", "conversation": "c5", "said": "ack", "seq": 35, "ids": ["…", "…"]}

A turn with an `ack` is acknowledged. One whose last word is `refuse` was refused. All others are ambiguous: they may
be stored or not, but never twice. A turn is two messages, `<turn> 0` and `<turn> 1`, unless its `ack` says
`"parts": 1`. `erase` notes that the writer asked for its removal: nothing else may leave a tombstone or a generation.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from threadkeep.model import Message

Said = Literal["try", "ack", "refuse", "ambiguous", "erase"]
PARTS = 2  # messages in a turn
WRONGS = ("lost", "removed", "duplicated", "phantom", "misplaced", "unordered", "gaps")


class ClientJournal:
    """What the writers of a process were told. A line is on the disk before its writer goes on, kill or not.

    Writers that wait at the same time share one fsync.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._waiting: list[asyncio.Future[None]] = []
        self._syncing: asyncio.Task[None] | None = None

    async def note(self, turn: str, conversation: str, said: Said, **more: Any) -> None:
        self._file.write(json.dumps({"turn": turn, "conversation": conversation, "said": said, **more}) + "\n")
        self._file.flush()
        on_the_disk = asyncio.get_running_loop().create_future()
        self._waiting.append(on_the_disk)
        if self._syncing is None or self._syncing.done():
            self._syncing = asyncio.create_task(self._sync())
        await on_the_disk

    async def _sync(self) -> None:
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            await asyncio.to_thread(os.fsync, self._file.fileno())
            for one in waiting:
                if not one.done():
                    one.set_result(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


@dataclass(slots=True)
class Sent:
    """One turn, as its writer knows it."""

    conversation: str
    answers: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def state(self) -> Said:
        if any(line["said"] == "ack" for line in self.answers):
            return "ack"
        tries = [line for line in self.answers if line["said"] == "try"]
        refusals = [line for line in self.answers if line["said"] == "refuse"]
        return "refuse" if refusals and len(refusals) == len(tries) else "ambiguous"

    @property
    def parts(self) -> int:
        """How many messages an acknowledgement is of."""
        return max((line.get("parts", PARTS) for line in self.answers if line["said"] == "ack"), default=PARTS)

    @property
    def erasure_asked(self) -> bool:
        return any(line["said"] == "erase" for line in self.answers)

    @property
    def seqs(self) -> set[int]:
        """Where receipts say it stands; empty where the surface tells none."""
        return {line["seq"] for line in self.answers if line["said"] == "ack" and "seq" in line}


@dataclass(slots=True)
class Verdict:
    """Turns, by what is wrong with them; all empty when nothing is."""

    acknowledged: int = 0
    refused: int = 0
    ambiguous: int = 0
    attempts: int = 0  # more than turns, where writers had to try again
    stored: int = 0  # messages
    lost: list[str] = field(default_factory=list[str])  # acknowledged, not stored whole
    removed: list[str] = field(default_factory=list[str])  # though nobody asked: see `Graves`
    duplicated: list[str] = field(default_factory=list[str])
    phantom: list[str] = field(default_factory=list[str])  # stored, never sent or clearly refused
    misplaced: list[str] = field(default_factory=list[str])  # not under a seq that a receipt named
    unordered: list[str] = field(default_factory=list[str])  # before an earlier turn of the same writer
    gaps: list[str] = field(default_factory=list[str])  # conversations whose seq is not 1, 2, 3, …

    def complaints(self, *ignored: str) -> dict[str, list[str]]:
        found = {name: getattr(self, name) for name in WRONGS if name not in ignored}
        return {name: turns[:5] for name, turns in found.items() if turns}

    def line(self) -> str:
        turns = f"{self.acknowledged} acknowledged, {self.refused} refused, {self.ambiguous} ambiguous"
        counts = ", ".join(f"{len(getattr(self, name))} {name}" for name in WRONGS)
        return f"{turns} in {self.attempts} attempts, {self.stored} messages stored: {counts}"


@dataclass(frozen=True, slots=True)
class Graves:
    """What an archive has noted as erased: a tombstone for each message, a generation for each conversation or user."""

    tombstones: frozenset[bytes] = frozenset()
    generations: int = 0
    tombstone_of: Callable[[str, str], bytes] = lambda conversation, message_id: b""


NO_GRAVES = Graves()


def sent_in(paths: Iterable[Path]) -> dict[str, Sent]:
    """A line that a kill cut short was never answered by anybody: it is left out."""
    sent: dict[str, Sent] = {}
    for path in sorted(paths):
        for text in path.read_text("utf-8").splitlines(keepends=True):
            if text.endswith("\n"):
                line = json.loads(text)
                sent.setdefault(line["turn"], Sent(line["conversation"])).answers.append(line)
    return sent


def judged(sent: Mapping[str, Sent], stored: Mapping[str, Sequence[Message]], graves: Graves = NO_GRAVES) -> Verdict:
    """`stored`: by conversation, everything the archive holds, in its order."""
    verdict = Verdict(stored=sum(map(len, stored.values())))
    places = _places(stored)
    for turn, one in sent.items():
        _judge_turn(verdict, turn, one, places.get(turn, []))
    verdict.phantom += [turn for turn in places if turn not in sent]
    for conversation, messages in stored.items():
        if [message.seq for message in messages] != list(range(1, len(messages) + 1)):
            verdict.gaps.append(conversation)
    _judge_order(verdict, sent, places)
    _judge_removals(verdict, sent, graves)
    return verdict


def _places(stored: Mapping[str, Sequence[Message]]) -> dict[str, list[tuple[str, int, str]]]:
    """By turn: conversation, seq and part of each of its messages."""
    places: dict[str, list[tuple[str, int, str]]] = defaultdict(list)
    for conversation, messages in stored.items():
        for message in messages:
            turn, _, part = message.content.rpartition(" ")
            places[turn].append((conversation, message.seq, part))
    return places


def _judge_turn(verdict: Verdict, turn: str, one: Sent, found: list[tuple[str, int, str]]) -> None:
    parts = [part for _, _, part in found]
    verdict.attempts += sum(line["said"] == "try" for line in one.answers)
    whole = {str(part) for part in range(one.parts)} <= set(parts)
    if len(parts) > len(set(parts)):
        verdict.duplicated.append(turn)
    if parts and not whole:
        verdict.lost.append(turn)  # torn apart
    if one.state == "ack":
        verdict.acknowledged += 1
        if not parts:
            verdict.lost.append(turn)
        elif whole and one.seqs and max(seq for _, seq, _ in found) not in one.seqs:
            verdict.misplaced.append(turn)
    elif one.state == "refuse":
        verdict.refused += 1
        if parts:
            verdict.phantom.append(turn)
    else:
        verdict.ambiguous += 1
    if any(conversation != one.conversation for conversation, _, _ in found):
        verdict.phantom.append(turn)


def _judge_order(verdict: Verdict, sent: Mapping[str, Sent], places: Mapping[str, list[tuple[str, int, str]]]) -> None:
    """A writer sends one turn after the other, and each only after the last was acknowledged."""
    last: dict[tuple[str, str], int] = {}
    for turn, one in sent.items():
        if one.state == "ack" and places.get(turn):
            writer = turn.partition(" ")[0], one.conversation
            first = min(seq for _, seq, _ in places[turn])
            if first <= last.get(writer, 0):
                verdict.unordered.append(turn)
            last[writer] = max(seq for _, seq, _ in places[turn])


def _judge_removals(verdict: Verdict, sent: Mapping[str, Sent], graves: Graves) -> None:
    """Every tombstone must be of a turn whose writer asked for it. Most surfaces tell no ids: there it has no name."""
    unexplained = set(graves.tombstones)
    for turn, one in sent.items():
        ids = [id_ for line in one.answers for id_ in line.get("ids", ())]
        found = {graves.tombstone_of(one.conversation, id_) for id_ in ids} & graves.tombstones
        unexplained -= found
        if found and not one.erasure_asked:
            verdict.removed.append(turn)
    verdict.removed += ["a message of no known turn"] * len(unexplained)
    if not any(one.erasure_asked for one in sent.values()):
        verdict.removed += ["a conversation or a user"] * graves.generations
