"""Two locks: what the service runs on, and what it is developed with. Both are hashed and name no address."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
RUNTIME, DEVELOPMENT = "requirements-runtime.lock", "requirements.lock"
PINNED = re.compile(r"(?m)^([A-Za-z0-9._-]+)==([^ \\;]+)((?:.*\\\n)+.*\n)")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
# Extras whose packages carry a model's weights. WordLlama's, which the assistant's search uses, are in `embeddings`.
WITH_WEIGHTS = ("presidio", "sentence-encoder", "small-model", "voice")


def pinned(lock: str) -> dict[str, set[str]]:
    """Return the versions by package."""
    found: dict[str, set[str]] = {}
    for name, version, _ in PINNED.findall((ROOT / lock).read_text("utf-8")):
        found.setdefault(canonicalize_name(name), set()).add(version)
    return found


def names_of(lines: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(line).name) for line in lines} - {"threadkeep"}


def group(name: str) -> set[str]:
    return names_of([one for one in PROJECT["dependency-groups"][name] if isinstance(one, str)])


def extra(name: str) -> set[str]:
    return names_of(PROJECT["project"]["optional-dependencies"][name])


@pytest.mark.parametrize("lock", [RUNTIME, DEVELOPMENT])
def test_every_package_of_a_lock_is_pinned_by_version_and_hash(lock: str) -> None:
    text = (ROOT / lock).read_text("utf-8")
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith(("#", "--hash="))]
    found = PINNED.findall(text)
    assert len(found) == len(lines) > 50
    assert [name for name, _, rest in found if not re.search(r"--hash=sha256:[0-9a-f]{64}", rest)] == []


@pytest.mark.parametrize("lock", [RUNTIME, DEVELOPMENT])
def test_a_lock_names_no_address(lock: str) -> None:
    text = (ROOT / lock).read_text("utf-8")
    assert re.findall(r"://|--(?:extra-)?index-url|--find-links|@ ", text) == []


def test_the_service_runs_on_no_tool_of_tests_checks_or_benchmarks() -> None:
    wanted = set[str]().union(*(extra(name) for name in PROJECT["project"]["optional-dependencies"]))
    tools = (group("test") | group("check") | group("bench")) - wanted
    assert {"pytest", "hypothesis", "ruff", "pyright", "playwright", "schemathesis"} <= tools
    assert pinned(RUNTIME).keys() & tools == set()


def test_the_service_runs_on_no_weights_but_its_own_searchs() -> None:
    weights = set[str]().union(*(extra(name) for name in WITH_WEIGHTS)) - {"numpy", "threadkeep"}
    assert pinned(RUNTIME).keys() & weights == set()
    assert "wordllama" in pinned(RUNTIME)


def test_weights_come_by_an_extra_of_their_own_only() -> None:
    everything = Requirement(PROJECT["project"]["optional-dependencies"]["all"][0]).extras
    assert everything & {*WITH_WEIGHTS} == set()


def test_both_locks_agree_on_every_version() -> None:
    developed = pinned(DEVELOPMENT)
    assert {name: versions for name, versions in pinned(RUNTIME).items() if not versions <= developed[name]} == {}


def test_what_the_service_needs_is_in_its_lock() -> None:
    needed = names_of(PROJECT["project"]["dependencies"]) | extra("service") | extra("assistant") | extra("mcp")
    assert needed | group("build") <= pinned(RUNTIME).keys()
