"""Running one suite on each database: in a process and a folder of its own, in a single worker."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from tests.servers.locate import MARIADB, POSTGRES, REDIS, Kind, Missing, locate
from tests.servers.server import Server
from tests.suites.suites import Suite

HERE = Path(__file__).parent
PLUGINS = HERE / "plugins"
EXTRA = HERE.parents[1] / ".cache/suites"  # what the tests import and .venv lacks
PLACES = ("sqlite", "postgres", "mariadb", "redis")  # Redis: in front of SQLite
OWN = "its own"
_SECONDS_PER_TEST = 120


class SuiteMissing(RuntimeError):
    """The folder holds no source of that suite."""


class SuiteDidNotRun(RuntimeError):
    """pytest ended without a report, or ran none of its tests; carries the end of what it printed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    suite: str
    version: str
    place: str
    passed: int
    skipped: int
    failed: Mapping[str, str]  # by the test's name: whose it is, empty where it is ours
    unsteady: Collection[str]  # failed, and passed when run once more

    @property
    def ours(self) -> list[str]:
        return [test for test, whose in self.failed.items() if not whose]

    def __str__(self) -> str:
        head = f"{self.suite} {self.version} on {self.place}: {self.passed} passed, {len(self.failed)} failed"
        lines = [head + f", {self.skipped} skipped"]
        lines += [f"  failed: {test} ({whose or 'ours'})" for test, whose in self.failed.items()]
        lines += [f"  passed when run again: {test}" for test in self.unsteady]
        return "\n".join(lines)


class Places:
    """Servers, each started when a suite first asks for it and stopped with the stack."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._started: dict[str, str] = {}

    def environment(self, place: str, folder: Path) -> dict[str, str]:
        if place in ("postgres", "mariadb"):
            return {"SUITE_URL": self._url(place)}
        told = {} if place == OWN else {"SUITE_URL": f"sqlite:///{folder / 'suite.db'}"}
        return told | ({"SUITE_REDIS": self._url("redis")} if place == "redis" else {})

    def _url(self, name: str) -> str:
        if name not in self._started:
            self._started[name] = self._stack.enter_context(_server(name)).url
        return self._started[name]


def run(suite: Suite, folder: Path, places: Places, wanted: Collection[str]) -> Iterator[Outcome]:
    """One outcome for each database, the framework's own first. Raises `SuiteMissing` and `SuiteDidNotRun`."""
    root = source_of(suite, folder)
    whose = dict(suite.expected)
    if suite.beside_own:
        own = _on(suite, root, OWN, places, whose)
        whose |= dict.fromkeys(own.failed, f"{suite.distribution}'s: its own fails it too")
        yield replace(own, failed={test: whose[test] for test in own.failed})
    for place in (one for one in suite.on if one in wanted):
        yield _on(suite, root, place, places, whose)


def source_of(suite: Suite, folder: Path) -> Path:
    """The source of the version that is installed, where there is one. Raises `SuiteMissing`."""
    exact = f"{suite.distribution.replace('-', '_')}-{version(suite.distribution)}"
    for pattern in (exact, *suite.roots):
        for root in sorted(folder.glob(pattern)) if pattern != "." else [folder]:
            if (root / _proof_of(suite)).exists():
                return root.resolve()
    raise SuiteMissing(
        f"{suite.name}: missing, {folder} holds no {_proof_of(suite)} in {exact} or {' or '.join(suite.roots)};"
        f" put a checkout there, or an unpacked source distribution of {suite.distribution}"
    )


def _proof_of(suite: Suite) -> str:
    return "langgraph/checkpoint/conformance/validate.py" if suite.imported else suite.tests[0]


def _on(suite: Suite, root: Path, place: str, places: Places, expected: Mapping[str, str]) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="threadkeep-suite-") as name:
        folder = Path(name)
        _copy(suite, root, folder)
        told = places.environment(place, folder)
        first = _tried(suite, root, folder, told)
        again = _tried(suite, root, folder, told, "--last-failed") if first.failed else first
    failed = {test: whose(test, expected) for test in sorted(first.failed & again.failed)}
    unsteady = sorted(first.failed - again.failed)
    return Outcome(suite.name, _version_in(root), place, first.passed + len(unsteady), first.skipped, failed, unsteady)


@dataclass(frozen=True, slots=True)
class _Report:
    passed: int
    skipped: int
    failed: frozenset[str]


def _tried(suite: Suite, root: Path, folder: Path, told: Mapping[str, str], *more: str) -> _Report:
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    path = [str(PLUGINS), *([str(_extra())] if suite.apart else []), *([str(root)] if suite.imported else [])]
    options = [
        "-o",
        "addopts=",
        "-o",
        "asyncio_mode=auto",
        "-o",
        "junit_family=legacy",
        f"--timeout={_SECONDS_PER_TEST}",
    ]
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            suite.plugin,
            *options,
            f"--junitxml={report}",
            *more,
            *suite.tests,
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path), "NO_DOCKER": "true", **told},
        capture_output=True,
        text=True,
    )
    if not report.exists():
        raise SuiteDidNotRun(f"{suite.name}: {(ran.stdout + ran.stderr)[-2000:]}")
    read = _read(report)
    if not read.passed and not read.failed:
        raise SuiteDidNotRun(f"{suite.name}: none of its tests ran\n{ran.stdout[-2000:]}")
    return read


def _read(report: Path) -> _Report:
    """Without those that never asked for ours, where the plugin counts that."""
    cases = [
        case
        for case in ElementTree.parse(report).iter("testcase")
        if not any(one.get("name") == "ours" and one.get("value") == "0" for one in case.iter("property"))
    ]
    failed = frozenset(_name(case) for case in cases if _has(case, "failure") or _has(case, "error"))
    skipped = {_name(case) for case in cases if _has(case, "skipped")}
    return _Report(len({_name(case) for case in cases} - failed - skipped), len(skipped), failed)


def _name(case: ElementTree.Element) -> str:
    return f"{str(case.get('classname')).rpartition('.')[2]}::{case.get('name')}"


def _has(case: ElementTree.Element, outcome: str) -> bool:
    return case.find(outcome) is not None


def whose(test: str, expected: Mapping[str, str]) -> str:
    """Expected failures are listed by the test's name alone, with its parameters, or with its file and parameters."""
    name = test.rpartition("::")[2]
    return expected.get(test) or expected.get(name) or expected.get(name.partition("[")[0]) or ""


def _copy(suite: Suite, root: Path, folder: Path) -> None:
    """Only the tests: beside them their own sources would be imported instead of what is installed."""
    if suite.copied:
        shutil.copytree(root / suite.copied, folder / suite.copied)
    else:
        shutil.copy(PLUGINS / suite.tests[0], folder)


def _version_in(root: Path) -> str:
    lines = (root / "pyproject.toml").read_text("utf-8").splitlines() if (root / "pyproject.toml").exists() else []
    told = [line.partition("=")[2].strip(' "') for line in lines if line.startswith("version =")]
    return told[0] if told else root.name


def _extra() -> Path:
    if not (EXTRA / "syrupy").is_dir():
        listed = str(HERE / "requirements.txt")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--require-hashes", "--target", str(EXTRA), "--requirement", listed], check=True)
    return EXTRA


def _server(name: str) -> Server:
    from tests.servers.mariadb import MariaDbServer
    from tests.servers.postgres import PostgresServer
    from tests.servers.redis import RedisServer

    kinds: dict[str, tuple[Kind, Callable[[str], Server]]] = {
        "postgres": (POSTGRES, PostgresServer),
        "mariadb": (MARIADB, MariaDbServer),
        "redis": (REDIS, RedisServer),
    }
    kind, own = kinds[name]
    found = locate(kind)
    if isinstance(found, Missing):
        raise SuiteDidNotRun(str(found))
    if found.by_variable:
        raise SuiteDidNotRun(f"{kind.name}: {kind.variable} names a server; these suites use only servers of their own")
    return own(found.place)
