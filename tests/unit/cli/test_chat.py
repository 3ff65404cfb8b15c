"""`threadkeep chat`: a talk through pipes, as a script would hold it."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from threadkeep.cli.app import run

SHOP = str(Path(__file__).parents[3] / "examples" / "pc_shop")


@pytest.fixture
def talk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("THREADKEEP_EMBEDDER", "none")

    def said(*lines: str, options: tuple[str, ...] = ("--json",)) -> str:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        code = run(["chat", "--assistant", SHOP, "--url", f"sqlite:///{tmp_path}/a.db", "--user", "ann", *options])
        assert code == 0
        return capsys.readouterr().out

    return said


def test_a_talk_is_greeted_once_and_gone_on_with_later(talk) -> None:
    first = [json.loads(line) for line in talk("RTX 5060 giá bao nhiêu?", "/quit").splitlines()]
    assert [answer["kind"] for answer in first] == ["greeting", "answer"]
    (second,) = [json.loads(line) for line in talk("Thế còn RTX 5070?").splitlines()]
    assert "15.490.000" in second["reply"]


def test_for_people_the_text_stands_alone(talk) -> None:
    said = talk("RTX 5060 giá bao nhiêu?", "không, cảm ơn", options=())
    assert "8.990.000" in said
    assert "Hẹn gặp lại quý khách" in said


def test_a_folder_that_cannot_be_used_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["chat", "--assistant", str(tmp_path), "--url", f"sqlite:///{tmp_path}/a.db"]) == 1
    assert "assistant.toml: is missing" in capsys.readouterr().err.replace("\n", " ")


def test_what_others_have_written_gives_no_orders_to_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a greeting, and in a document that is quoted piece by piece: a title for the window, a colour, a way back."""
    monkeypatch.setenv("THREADKEEP_EMBEDDER", "none")
    folder = tmp_path / "assistant"
    (folder / "knowledge").mkdir(parents=True)
    (folder / "assistant.toml").write_text('name = "a"\nlanguages = ["en"]\ndefault_language = "en"\n')
    (folder / "prompt.txt").write_text("You answer questions.\n")
    (folder / "persona.md").write_text("Greeting: Hello \x1b]0;owned\x07 [bold]you[/bold]\nA guide.\n")
    (folder / "knowledge" / "pool.md").write_text("The pool opens at \x1b[31mnine\x1b[0m o'clock \x9b2J in summer.\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("When does the pool open?\n"))

    code = run(["chat", "--assistant", str(folder), "--url", f"sqlite:///{tmp_path}/a.db", "--user", "ann"])

    said = capsys.readouterr()
    assert code == 0, said.err
    assert "[bold]you[/bold]" in said.out
    assert "The pool opens at" in said.out
    assert not {"\x1b", "\x07", "\x9b"} & {*said.out, *said.err}


def test_a_line_that_cannot_be_kept_is_told_and_ends_no_talk(talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THREADKEEP_MAX_MESSAGE_BYTES", "4096")
    _, refused, answer = [json.loads(line) for line in talk("x" * 5_000, "RTX 5060 giá bao nhiêu?").splitlines()]

    assert refused["error"] == "too_large"
    assert "8.990.000" in answer["reply"]


def test_an_interrupt_ends_a_talk_that_waits_for_a_line(tmp_path: Path) -> None:
    command = ["-m", "threadkeep.cli", "chat", "--assistant", SHOP, "--url", f"sqlite:///{tmp_path}/a.db", "--json"]
    with subprocess.Popen(
        [sys.executable, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"THREADKEEP_EMBEDDER": "none"},
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()  # the greeting: it asks for a line next
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(timeout=20) == 130
        finally:
            process.kill()
