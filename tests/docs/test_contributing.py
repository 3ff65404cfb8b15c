"""CONTRIBUTING.md names files and functions that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = re.sub(r"```.*?```", "", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), flags=re.DOTALL)
FILE = r"[\w.-]+(?:/[\w.-]+)*\.(?:py|lua|md|toml|json|lock)"
# Made by make, or of another tool.
ELSEWHERE = {".cache/npm"}
NAMED = sorted(set(re.findall(rf"`({FILE}|[\w.]+/(?:[\w.]+/?)*)`", TEXT)) - ELSEWHERE)
CALLED = sorted(set(re.findall(rf"`({FILE})` `(\w+)\(\)`", TEXT)))


def place_of(name: str) -> Path:
    """Names are those of the repository, or of the package."""
    found = [folder / name for folder in (ROOT, ROOT / "src" / "threadkeep") if (folder / name).exists()]
    assert found, f"CONTRIBUTING.md names {name}, and there is no such file"
    return found[0]


@pytest.mark.parametrize("name", NAMED)
def test_every_path_that_it_names_is_there(name: str) -> None:
    assert place_of(name)


@pytest.mark.parametrize(("name", "function"), CALLED)
def test_every_function_that_it_names_is_in_its_file(name: str, function: str) -> None:
    assert re.search(rf"\bdef {function}\b", place_of(name).read_text("utf-8")), f"{name} has no {function}()"


def test_the_names_are_found() -> None:
    assert {"memory.py", "tests/architecture/"} <= {*NAMED}
    assert ("memory.py", "append") in CALLED
