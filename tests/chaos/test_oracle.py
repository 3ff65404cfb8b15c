"""The oracle itself: it is content with what is right, and sees each thing that can go wrong."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.chaos.oracle import ClientJournal, Graves, judged, sent_in
from threadkeep.model import Message
from threadkeep.testing.clock import START


def told(path: Path, *lines: tuple[str, str, int | None]) -> None:
    async def note_all() -> None:
        with ClientJournal(path) as journal:
            for turn, said, seq in lines:
                await journal.note(turn, "c1", said, **({} if seq is None else {"seq": seq}))  # type: ignore[arg-type]

    asyncio.run(note_all())


def archive(*contents: str, first: int = 1) -> dict[str, list[Message]]:
    return {"c1": [Message(first + n, f"m{n}", "user", content, START) for n, content in enumerate(contents)]}


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """`w 0` and `w 1` acknowledged, `w 2` without an answer, `w 3` refused."""
    told(tmp_path / "w", ("w 0", "try", None), ("w 0", "ack", 2), ("w 1", "try", None), ("w 1", "ack", 4))
    told(tmp_path / "w", ("w 2", "try", None), ("w 3", "try", None), ("w 3", "refuse", None))
    return tmp_path / "w"


@pytest.mark.parametrize(
    "contents", [["w 0 0", "w 0 1", "w 1 0", "w 1 1"], ["w 0 0", "w 0 1", "w 1 0", "w 1 1", "w 2 0", "w 2 1"]]
)
def test_what_was_promised_is_enough_and_an_unanswered_turn_may_be_there(journal: Path, contents: list[str]) -> None:
    verdict = judged(sent_in([journal]), archive(*contents))
    assert verdict.complaints() == {}
    assert (verdict.acknowledged, verdict.refused, verdict.ambiguous) == (2, 1, 1)


@pytest.mark.parametrize(
    ("wrong", "contents"),
    [
        ("lost", ["w 0 0", "w 0 1"]),
        ("lost", ["w 0 0", "w 0 1", "w 1 0"]),
        ("lost", ["w 0 0", "w 0 1", "w 1 0", "w 1 1", "w 2 0"]),
        ("duplicated", ["w 0 0", "w 0 1", "w 1 0", "w 1 1", "w 0 0", "w 0 1"]),
        ("phantom", ["w 0 0", "w 0 1", "w 1 0", "w 1 1", "w 9 0", "w 9 1"]),
        ("phantom", ["w 0 0", "w 0 1", "w 1 0", "w 1 1", "w 3 0", "w 3 1"]),
        ("unordered", ["w 1 0", "w 1 1", "w 0 0", "w 0 1"]),
        ("misplaced", ["w 2 0", "w 2 1", "w 0 0", "w 0 1", "w 1 0", "w 1 1"]),
    ],
)
def test_it_sees_what_is_wrong(journal: Path, wrong: str, contents: list[str]) -> None:
    assert wrong in judged(sent_in([journal]), archive(*contents)).complaints()


WHOLE = ("w 0 0", "w 0 1", "w 1 0", "w 1 1")


def graves(*ids: str, generations: int = 0) -> Graves:
    return Graves(frozenset(id_.encode() for id_ in ids), generations, lambda _, id_: id_.encode())


def test_it_sees_what_was_removed_though_nobody_asked(tmp_path: Path) -> None:
    asyncio.run(_told_ids(tmp_path / "w", "m0", "m1"))
    sent = sent_in([tmp_path / "w"])
    assert judged(sent, archive(*WHOLE[:2]), graves("m0")).removed == ["w 0"]
    assert judged(sent, archive(*WHOLE[:2]), graves("m7")).removed == ["a message of no known turn"]
    assert judged(sent, archive(*WHOLE[:2]), graves(generations=1)).removed == ["a conversation or a user"]


def test_what_was_asked_for_is_no_such_removal(tmp_path: Path) -> None:
    asyncio.run(_told_ids(tmp_path / "w", "m0", "m1"))
    told(tmp_path / "w", ("w 0", "erase", None))
    assert judged(sent_in([tmp_path / "w"]), archive(*WHOLE[:2]), graves("m0", "m1")).removed == []


async def _told_ids(path: Path, *ids: str) -> None:
    with ClientJournal(path) as journal:
        await journal.note("w 0", "c1", "try")
        await journal.note("w 0", "c1", "ack", seq=2, ids=ids)


def test_it_sees_a_gap(journal: Path) -> None:
    assert "gaps" in judged(sent_in([journal]), archive("w 0 0", "w 0 1", first=2)).complaints()


def test_a_line_cut_short_by_a_kill_was_not_told_to_anybody(journal: Path) -> None:
    with journal.open("a") as file:
        file.write('{"turn": "w 4", "conver')
    assert "w 4" not in sent_in([journal])
