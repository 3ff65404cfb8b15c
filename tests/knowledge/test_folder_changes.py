"""A folder whose documents change hands, whose names meet those of another, or which holds links."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.knowledge.test_folder import words_in
from threadkeep.knowledge.indexing import FolderIndexer, Skipped, Source
from threadkeep.knowledge.store import DatabaseKnowledge
from threadkeep.ports.knowledge import Access, Question
from threadkeep.recall.normalise import query_terms

BROKEN = b"\0 not text"
PUBLIC, PRIVATE = Source("hr"), Source("hr", access="private", owner="ann")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "hr"
    (folder / "deep").mkdir(parents=True)
    (folder / "pay.md").write_text("# Pay\n\nSalaries rise.\n")
    (folder / "deep" / "plan.md").write_text("# Plan\n\nThe office moves.\n")
    return folder


async def reads(store: DatabaseKnowledge, user: str, about: str) -> bool:
    return bool((await store.search(Access("default", user), Question(query_terms(about)))).passages)


async def test_what_cannot_be_read_any_more_is_closed_with_its_folder(store: DatabaseKnowledge, folder: Path) -> None:
    indexer = FolderIndexer(store, words_in)
    await indexer.index(folder, PUBLIC)
    text = (folder / "pay.md").read_bytes()
    (folder / "pay.md").write_bytes(BROKEN)
    assert (await indexer.index(folder, PRIVATE)).skipped == [Skipped("pay.md", "is not text")]
    assert await reads(store, "ann", "salaries"), "what it said stays"
    assert not await reads(store, "bob", "salaries"), "but not for everybody any more"
    (folder / "pay.md").write_bytes(text)
    assert len((await indexer.index(folder, PUBLIC)).skipped) == 2, "they are Ann's now"
    assert not await reads(store, "bob", "salaries")
    report = await indexer.index(folder, Source("hr", owner="ann"))
    assert (report.updated, report.unchanged) == (2, 0)
    assert await reads(store, "bob", "salaries")


async def test_no_folder_takes_the_documents_of_another(store: DatabaseKnowledge, folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "plan.md").write_text("# Plan\n\nMy secret holiday.\n")
    indexer = FolderIndexer(store, words_in)
    mine = Source("hr/deep", access="private", owner="ann")
    await indexer.index(own, mine)
    report = await indexer.index(folder, PUBLIC)
    assert (report.added, [one.path for one in report.skipped]) == (1, ["deep/plan.md"])
    assert "hr/deep" in report.skipped[0].reason
    assert await reads(store, "ann", "holiday")
    assert not await reads(store, "bob", "holiday")
    assert (await indexer.index(own, mine)).unchanged == 1


async def test_links_are_named_and_not_followed(store: DatabaseKnowledge, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.md").write_text("outside")
    (folder / "link.md").symlink_to(tmp_path / "outside" / "secret.md")
    (folder / "nowhere.md").symlink_to(tmp_path / "none.md")
    (folder / "more").symlink_to(tmp_path / "outside")
    (folder / ".hidden.md").symlink_to(tmp_path / "outside" / "secret.md")
    (folder / "picture.png").symlink_to(tmp_path / "outside" / "secret.md")
    report = await FolderIndexer(store, words_in).index(folder, PUBLIC)
    assert report.added == 2
    assert {one.path for one in report.skipped} == {"link.md", "nowhere.md", "more"}
    assert all("link" in one.reason for one in report.skipped)
