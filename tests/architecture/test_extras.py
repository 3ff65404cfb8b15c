"""An extra brings all that its part needs: whoever installs it alone, as the pages say, can use the part.

Every other distribution of this environment is hidden from a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
HIDING = """
import importlib, sys

class Hiding:
    def __init__(self, finder):
        self.finder = finder
    def __getattr__(self, name):
        return getattr(self.finder, name)
    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in sys.argv[2:] else self.finder.find_spec(name, path, target)

sys.meta_path[:] = map(Hiding, sys.meta_path)
importlib.import_module(sys.argv[1])
"""


def declared() -> Iterator[str]:
    """Yield what this tree's pyproject.toml requires; the metadata of an editable install may be older."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    yield from project["dependencies"]
    for extra, lines in project["optional-dependencies"].items():
        for line in map(Requirement, lines):
            line.marker = Marker(f'({line.marker}) and extra == "{extra}"' if line.marker else f'extra == "{extra}"')
            yield str(line)


def brought(name: str, extras: frozenset[str], seen: set[tuple[str, frozenset[str]]]) -> Iterator[str]:
    """The distributions that come with one, itself included."""
    if (name, extras) in seen:
        return
    seen.add((name, extras))
    yield name
    try:
        needed = [Requirement(line) for line in (declared() if name == "threadkeep" else requires(name) or ())]
    except PackageNotFoundError:  # for another system
        return
    for one in needed:
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras or {""}):
            yield from brought(canonicalize_name(one.name), frozenset(one.extras), seen)


def hidden_beside(extra: str, *others: str) -> list[str]:
    here = {*brought("threadkeep", frozenset({extra}), set())}
    here |= {name for other in others for name in brought(other, frozenset(), set())}
    provided = packages_distributions()
    return [module for module, by in provided.items() if not {canonicalize_name(one) for one in by} & here]


@pytest.mark.parametrize(
    ("extra", "module"),
    [
        ("", "threadkeep"),
        ("cli", "threadkeep.cli.app"),
        ("service", "threadkeep.http.app"),
        ("service", "threadkeep.http.mounting"),
        ("service", "threadkeep.http.server"),
        ("metrics", "threadkeep.metrics.prometheus"),
        ("postgres", "threadkeep.compose.server"),
        ("mysql", "threadkeep.compose.server"),
        ("redis", "threadkeep.compose.redis"),
        ("tokens", "threadkeep.models.tokens"),
        ("langgraph", "threadkeep.adapters.langgraph"),
        ("adk", "threadkeep.adapters.adk"),
        ("openai-agents", "threadkeep.adapters.openai_agents"),
        ("embeddings", "threadkeep.compose.knowledge"),
        ("embeddings", "threadkeep.compose.vectors"),
        ("mcp", "threadkeep.compose.retrieval"),
        ("mcp", "threadkeep.mcp.stdio"),
        ("mcp", "threadkeep.mcp.gateway"),
        ("assistant", "threadkeep.compose.assistant"),
    ],
)
def test_an_extra_is_enough_for_its_part(extra: str, module: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", HIDING, module, *hidden_beside(extra)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr[-2000:]


def test_an_assistant_without_its_parts_names_the_extra_that_is_enough() -> None:
    asked = """
import asyncio
from threadkeep.compose.memory import open_memory
from threadkeep.compose.assistant import open_assistant

async def main():
    async with open_memory("sqlite://") as memory, open_assistant(memory, folder="examples/pc_shop"):
        pass

asyncio.run(main())
"""
    hidden = hidden_beside("service")
    ended = subprocess.run(
        [sys.executable, "-c", HIDING + asked, "threadkeep", *hidden], capture_output=True, text=True, check=False
    )
    assert "MissingExtra: an assistant needs" in ended.stderr
    assert "threadkeep[assistant]" in ended.stderr


def test_mounting_memory_without_its_parts_names_the_extra_that_is_enough() -> None:
    """An application that has FastAPI of its own lacks the rest."""
    hidden = hidden_beside("", "fastapi")
    ended = subprocess.run(
        [sys.executable, "-c", HIDING, "threadkeep.http.mounting", *hidden], capture_output=True, text=True, check=False
    )
    assert "MissingExtra: threadkeep.http.mounting needs" in ended.stderr
    assert "threadkeep[service]" in ended.stderr


def test_what_an_extra_does_not_bring_is_hidden() -> None:
    assert {"fastapi", "mcp", "numpy"} <= {*hidden_beside("cli")}
