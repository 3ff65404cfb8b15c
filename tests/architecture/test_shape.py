"""Habits that a reader relies on: short functions, no machine's paths, no pickles."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
LONGEST_FUNCTION = 60
# Built from pieces, so that this file does not match itself.
MACHINE_PATH = re.compile("/(?:ro" + "ot|wo" + "rk|ho" + "me)/[a-z]")
TEXT_FILES = {".py", ".md", ".toml", ".txt", ".lock", ".json", ""}


def functions_of(source: str) -> list[tuple[str, int]]:
    nodes = ast.walk(ast.parse(source))
    return [
        (node.name, (node.end_lineno or 0) - node.lineno + 1)
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_function_is_longer_than_sixty_lines(path: Path) -> None:
    assert [name for name, lines in functions_of(path.read_text("utf-8")) if lines > LONGEST_FUNCTION] == []


def test_a_long_function_would_be_noticed() -> None:
    assert functions_of("def f():\n" + "    pass\n" * 60) == [("f", 61)]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_ever_unpickled(path: Path) -> None:
    modules = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert modules.isdisjoint({"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal"})


def test_no_file_names_a_path_of_the_machine_it_was_written_on() -> None:
    folders = ("src", "tests", "docs", "bench", ".ci")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    paths += [path for path in ROOT.iterdir() if path.is_file()]
    telling = [
        str(path.relative_to(ROOT))
        for path in paths
        if path.suffix in TEXT_FILES
        and "__pycache__" not in path.parts
        and MACHINE_PATH.search(path.read_text("utf-8", "replace"))
    ]
    assert telling == []
