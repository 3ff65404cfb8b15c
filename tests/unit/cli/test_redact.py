"""`threadkeep redact`."""

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.cli.conftest import Command
from threadkeep.cli import redact as command


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch):
    def pipe(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))

    return pipe


def test_what_is_piped_in_comes_out_masked(threadkeep: Command, piped) -> None:
    piped("mail ann@example.org\nnothing hère\n".encode())
    ended = threadkeep("redact")
    assert (ended.code, ended.stdout) == (0, "mail [REDACTED:EMAIL]\nnothing hère\n")


def test_files_are_masked_one_after_the_other(threadkeep: Command, tmp_path: Path) -> None:
    for name, text in (("a", "a@b.org\n"), ("b", "no line end: c@d.org")):
        (tmp_path / name).write_text(text)
    ended = threadkeep("redact", "a", "b", "--style", "plain")
    assert ended.stdout == "[REDACTED]\nno line end: [REDACTED]"


def test_explain_tells_type_rule_and_place_and_never_the_value(threadkeep: Command, piped) -> None:
    piped(b"hello\nmail ann@example.org\n")
    ended = threadkeep("redact", "--explain")
    assert ended.stdout == "stdin:2:6 +15 EMAIL email.plain\n"


def test_explain_as_json(threadkeep: Command, piped) -> None:
    piped(b"mail ann@example.org\n")
    (finding,) = threadkeep("redact", "--explain", "--json").json["findings"]
    place = {"file": "stdin", "line": 1, "column": 6, "length": 15}
    assert finding == {**place, "type": "EMAIL", "rule": "email.plain"}


def test_the_masked_text_as_json(threadkeep: Command, piped) -> None:
    piped(b"mail ann@example.org\n")
    assert threadkeep("redact", "--json").json == {"text": "mail [REDACTED:EMAIL]\n"}


def test_rules_of_ones_own_are_read_from_a_file(threadkeep: Command, piped, tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text(
        '[[rule]]\nname = "ticket"\npattern = "TCK-[0-9]{6}"\nfinds = ["see TCK-123456"]\n'
    )
    piped(b"see TCK-654321")
    assert threadkeep("redact", "--rules", "rules.toml").stdout == "see [REDACTED:INTERNAL_ID]"


def test_the_language_tells_local_numbers_apart(threadkeep: Command, piped) -> None:
    piped(b"ABS 123456 to moje")
    assert threadkeep("redact", "--language", "en").stdout == "ABS 123456 to moje"
    piped(b"ABA 300000 to moje")
    assert threadkeep("redact", "--language", "pl").stdout == "[REDACTED:NATIONAL_ID] to moje"


@pytest.mark.parametrize("arguments", [("missing.txt",), ("--rules", "missing.toml")])
def test_a_file_that_cannot_be_read_is_a_clear_error(threadkeep: Command, piped, arguments: tuple[str, ...]) -> None:
    piped(b"")
    ended = threadkeep("redact", *arguments)
    assert ended.code == 1
    assert "could not be read" in ended.stderr


def test_input_that_is_not_utf_8_is_refused_with_its_line(threadkeep: Command, piped) -> None:
    piped(b"one\ntwo \xff\n")
    ended = threadkeep("redact", "--json")
    assert (ended.code, ended.problem["code"]) == (1, "invalid_input")
    assert "line 2" in ended.problem["detail"]


def test_a_secret_is_masked_whole_wherever_the_blocks_are_cut(
    threadkeep: Command, piped, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_BLOCK", 512)
    monkeypatch.setattr(command, "_MARGIN", 64)
    body = "\n".join(f"MIIEvQIBADANBgkqhkiG9w0BAQEFAASC{n:04}" for n in range(60))
    key = f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n"
    piped(("a line of talk\n" * 40 + key + "more talk\n" * 100).encode())
    ended = threadkeep("redact")
    assert ended.stdout == "a line of talk\n" * 40 + "[REDACTED:SECRET]\n" + "more talk\n" * 100


def test_characters_cut_by_a_block_stay_whole_and_lines_are_counted_on(
    threadkeep: Command, piped, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_BLOCK", 7)
    monkeypatch.setattr(command, "_MARGIN", 3)
    piped(("đậu phộng\n" * 30 + "a@b.org\n").encode())
    assert threadkeep("redact", "--explain").stdout == "stdin:31:1 +7 EMAIL email.plain\n"
