"""Habits that a reader relies on: short functions, no machine's paths, no pickles."""

import ast
import re
from pathlib import Path

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


def test_no_function_is_longer_than_sixty_lines() -> None:
    found = [(path.name, *function) for path in SOURCES for function in functions_of(path.read_text("utf-8"))]
    assert [(path, name) for path, name, lines in found if lines > LONGEST_FUNCTION] == []


def test_a_long_function_would_be_noticed() -> None:
    assert functions_of("def f():\n" + "    pass\n" * 60) == [("f", 61)]


def test_nothing_is_ever_unpickled() -> None:
    unpickling = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal"}
    assert [path for path in SOURCES if not modules_in(path).isdisjoint(unpickling)] == []


def modules_in(path: Path) -> set[str]:
    found = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    names = [alias.name for node in found if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in found if isinstance(node, ast.ImportFrom)]
    return {name.split(".")[0] for name in names}


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
