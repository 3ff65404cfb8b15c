"""`threadkeep index`, from the outside."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from threadkeep import Scope, SyncMemory, UserMessage
from threadkeep.cli.app import run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", "sqlite:///tk.db")
    monkeypatch.setenv("THREADKEEP_EMBEDDER", "none")
    folder = tmp_path / "knowledge"
    folder.mkdir()
    (folder / "warranty.md").write_text("# Warranty\n\nTwo years. Write to ann@shop.example.")
    (folder / "broken.pdf").write_bytes(b"not one")
    return folder


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run(["index", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_folder_is_added_and_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = told(capsys, "add", str(folder), "--datasource", "shop")
    assert (first["added"], first["chunks"]) == (1, 1)
    assert [one["path"] for one in first["skipped"]] == ["broken.pdf"]
    assert told(capsys, "add", str(folder), "--datasource", "shop")["unchanged"] == 1
    assert told(capsys, "status") == {
        "documents": 1,
        "chunks": 1,
        "embedder": None,
        "waiting_for_vectors": None,
        "datasources": {"shop": 1},
        "messages": None,
    }


def test_vectors_of_another_embedder_are_made_by_rebuilding(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told(capsys, "add", str(folder), "--datasource", "shop")
    monkeypatch.setenv("THREADKEEP_EMBEDDER", "offline")
    assert told(capsys, "status")["waiting_for_vectors"] == 1
    assert told(capsys, "rebuild")["embedded"] == 1
    assert told(capsys, "status")["waiting_for_vectors"] == 0


def test_messages_without_vectors_are_counted_and_get_them_by_rebuilding(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told(capsys, "add", str(folder), "--datasource", "shop")
    with SyncMemory(worker=False) as memory:
        memory.append(Scope("shop", "ann", "c1"), [UserMessage("hello"), UserMessage("peanuts")])
    monkeypatch.setenv("THREADKEEP_EMBEDDER", "offline")
    assert told(capsys, "status")["messages"] == {"waiting_for_vectors": 2, "embed_failed": []}
    assert told(capsys, "rebuild")["messages"] == {"embedded": 2, "embed_failed": 0}
    assert told(capsys, "status")["messages"] == {"waiting_for_vectors": 0, "embed_failed": []}
    assert run(["index", "status"]) == 0
    assert "messages waiting" in capsys.readouterr().out


def test_an_embedder_that_is_away_is_told_and_the_documents_are_there(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THREADKEEP_EMBEDDER", "ollama:bge-m3")
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1")
    monkeypatch.setenv("OLLAMA_PORT", "9")
    report = told(capsys, "add", str(folder), "--datasource", "shop")
    assert (report["added"], report["embedded"], report["waiting"]) == (1, 0, 1)
    assert "does not answer" in report["embed_failed"]


def test_documents_are_redacted_only_by_setting(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told(capsys, "add", str(folder), "--datasource", "open")
    assert b"ann@shop.example" in _bytes(folder)
    monkeypatch.setenv("DATABASE_URL", "sqlite:///masked.db")
    monkeypatch.setenv("THREADKEEP_KNOWLEDGE_REDACTION", "true")
    told(capsys, "add", str(folder), "--datasource", "masked")
    assert b"ann@shop.example" not in _bytes(folder, "masked.db")


def _bytes(folder: Path, name: str = "tk.db") -> bytes:
    return b"".join(path.read_bytes() for path in folder.parent.glob(f"{name}*"))


def test_people_read_a_table_and_the_reasons(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["index", "add", str(folder), "--datasource", "shop"]) == 0
    shown = capsys.readouterr().out
    assert "skipped broken.pdf: is not a sound PDF" in shown
    assert run(["index", "status"]) == 0
    assert "documents in shop" in capsys.readouterr().out


@pytest.mark.parametrize("command", [["status"], ["rebuild"], ["search", "warranty"]], ids=lambda one: one[0])
def test_a_typo_in_a_url_makes_no_empty_store(
    folder: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["index", *command, "--url", "sqlite:///typo.db", "--json"]) == 1
    assert json.loads(capsys.readouterr().err)["code"] == "not_found"
    assert not (folder.parent / "typo.db").exists()


def test_documents_are_searched_as_somebody(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "add", str(folder), "--datasource", "shop", "--access", "private", "--owner", "ann")
    assert told(capsys, "search", "two years")["hits"] == []
    assert told(capsys, "search", "two years", "--user", "Ann")["hits"] == []
    (hit,) = told(capsys, "search", "two years", "--user", "ann", "--datasource", "shop", "--budget", "200")["hits"]
    assert (hit["document_id"], hit["heading"]) == ("shop/warranty.md", "Warranty")
    assert told(capsys, "search", "two years", "--user", "ann", "--datasource", "other")["hits"] == []
    assert run(["index", "search", "two years", "--user", "ann"]) == 0
    assert "shop/warranty.md#chunk_0 Warranty" in capsys.readouterr().out
    assert run(["index", "search", ""]) == 0
    assert "Nothing found." in capsys.readouterr().out
    assert run(["index", "search", "x", "--k", "0", "--json"]) == 1
    assert json.loads(capsys.readouterr().err)["code"] == "invalid_input"


def test_two_owners_of_one_datasource_keep_their_documents(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "comet.md").write_text("# Comet\n\nA green comet.")
    (theirs / "warranty.md").write_text("# Warranty\n\nNone.")
    private = ("--datasource", "notes", "--access", "private", "--owner")
    assert told(capsys, "add", str(folder), *private, "ann")["added"] == 1

    second = told(capsys, "add", str(theirs), *private, "bob")
    third = told(capsys, "add", str(theirs), "--datasource", "notes")

    assert (second["added"], second["removed"], third["removed"]) == (1, 0, 0)
    assert "another owner" in second["skipped"][0]["reason"]
    assert [one["path"] for one in third["skipped"]] == ["comet.md", "warranty.md"]
    for user, found in (("ann", ["notes/warranty.md"]), ("bob", ["notes/comet.md"]), ("eve", [])):
        hits = [*told(capsys, "search", "warranty", "--user", user)["hits"]]
        hits += told(capsys, "search", "comet", "--user", user)["hits"]
        assert sorted({hit["document_id"] for hit in hits}) == found


def test_names_of_files_give_a_terminal_no_orders(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / os.fsdecode(b"\x1b[31mred\xff.pdf")).write_bytes(b"canary")
    assert run(["index", "add", str(folder), "--datasource", "shop"]) == 0
    shown = capsys.readouterr()
    assert "\x1b[31mred" not in shown.out
    assert "canary" not in shown.out + shown.err  # what a reader says of a file may quote it


@pytest.mark.parametrize(
    "arguments",
    [["none-such", "--datasource", "shop"], ["knowledge", "--datasource", "shop", "--access", "private"]],
    ids=["no-folder", "ownerless"],
)
def test_what_cannot_be_indexed_says_why(
    folder: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["index", "add", *arguments, "--json"]) == 1
    assert json.loads(capsys.readouterr().err)["code"] == "invalid_input"
