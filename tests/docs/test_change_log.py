"""The change log has the form of Keep a Changelog: versions, five kinds of change, one line for each."""

import re
from pathlib import Path

LINES = (Path(__file__).parents[2] / "CHANGELOG.md").read_text("utf-8").splitlines()
KINDS = ["Added", "Changed", "Fixed", "Removed", "Security"]
VERSION = re.compile(r"\[Unreleased\]|\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}")
LONGEST = 160


def versions() -> list[tuple[str, list[str]]]:
    found: list[tuple[str, list[str]]] = []
    for line in LINES:
        if line.startswith("## "):
            found.append((line.removeprefix("## "), []))
        elif line and found:
            found[-1][1].append(line)
    return found


def test_every_version_is_named_in_the_usual_way_and_unreleased_comes_first() -> None:
    names = [name for name, _ in versions()]
    assert names[0] == "[Unreleased]"
    assert [name for name in names if not VERSION.fullmatch(name)] == []


def test_every_kind_of_change_stands_once_in_the_usual_order() -> None:
    for name, lines in versions():
        kinds = [line.removeprefix("### ") for line in lines if line.startswith("#")]
        assert kinds == [kind for kind in KINDS if kind in kinds], name


def test_every_change_is_one_line_under_a_kind() -> None:
    for name, lines in versions():
        assert lines[0].startswith("### "), name
        assert [line for line in lines if not line.startswith(("### ", "- "))] == [], name


def test_no_change_is_a_story() -> None:
    assert [line for line in LINES if len(line) > LONGEST] == []


def test_no_change_is_told_twice() -> None:
    changes = [line for line in LINES if line.startswith("- ")]
    assert len(changes) == len(set(changes))
