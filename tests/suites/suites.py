"""The suites: where each framework keeps its tests, what points them at ours, and which failures are not ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.suites import expected


@dataclass(frozen=True, slots=True)
class Suite:
    name: str
    distribution: str  # as pip knows it
    roots: tuple[str, ...]  # where its sources may lie, below the folder that is given
    tests: tuple[str, ...]  # of which at least the first must be there
    plugin: str
    copied: str = "tests"  # the tests with what they import; the sources themselves stay out of the run
    on: tuple[str, ...] = ("sqlite", "postgres", "mariadb")
    beside_own: bool = False  # tried with the framework's own saver and store too: what those fail is not ours
    apart: bool = False  # they import what .venv lacks (requirements.txt)
    imported: bool = False  # the checkout's package is under test, not the installed one
    expected: Mapping[str, str] = field(default_factory=dict[str, str])  # failures by the test's name, with whose


SUITES = (
    Suite(
        name="langgraph",
        distribution="langgraph",
        roots=("libs/langgraph", "*/libs/langgraph"),
        tests=("tests",),
        plugin="redirect_langgraph",
        beside_own=True,
        apart=True,
    ),
    Suite(
        name="prebuilt",
        distribution="langgraph-prebuilt",
        roots=("libs/prebuilt", "*/libs/prebuilt"),
        tests=("tests",),
        plugin="redirect_langgraph",
        beside_own=True,
        apart=True,
    ),
    Suite(
        name="store",
        distribution="langgraph-checkpoint",
        roots=("libs/checkpoint", "*/libs/checkpoint"),
        tests=("tests/test_store.py",),
        plugin="redirect_langgraph",
        beside_own=True,
        apart=True,
    ),
    Suite(
        name="conformance",
        distribution="langgraph-checkpoint-conformance",
        roots=("libs/checkpoint-conformance", "*/libs/checkpoint-conformance"),
        tests=("checkpoint_conformance.py",),
        plugin="checkpoint_conformance",
        copied="",
        imported=True,
    ),
    Suite(
        name="adk",
        distribution="google-adk",
        roots=(".", "*"),
        tests=("tests/unittests/sessions/test_session_service.py",),
        plugin="redirect_adk",
        copied="tests/unittests/sessions",
        on=("sqlite", "postgres", "mariadb", "redis"),
        expected={test: f"ADK's: {why}" for test, why in expected.ADK.items()}
        | {test: f"ours, on purpose: {why}" for test, why in expected.ADK_DIVERGENCES.items()},
    ),
    Suite(
        name="openai-agents",
        distribution="openai-agents",
        roots=("openai-agents*", "."),
        tests=(
            "tests/memory/test_session.py",
            "tests/memory/test_session_limit.py",
            "tests/memory/test_session_context_wrapper.py",
            "tests/memory/test_session_persistence_sanitize.py",
        ),
        plugin="redirect_openai_agents",
        expected={test: f"the SDK's: {why}" for test, (why, _) in expected.OPENAI_AGENTS.items()},
    ),
)
