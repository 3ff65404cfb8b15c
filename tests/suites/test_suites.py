"""The runner of the frameworks' own tests, on a small suite of ours that stands where one of theirs would."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from tests.adapters.openai_agents import test_session_storage as storage
from tests.suites import __main__ as command
from tests.suites.expected import OPENAI_AGENTS
from tests.suites.running import Places, SuiteMissing, run, whose
from tests.suites.suites import SUITES

LANGGRAPH = replace(next(suite for suite in SUITES if suite.name == "langgraph"), apart=False)
SMALL = """
def test_that_asks_for_ours(sync_checkpointer, sync_store):
    assert type(sync_checkpointer).__name__ == "ThreadkeepSaver"
    assert type(sync_store).__name__ == "ThreadkeepStore"

async def test_that_asks_for_ours_in_a_loop(async_checkpointer):
    assert await async_checkpointer.aget_tuple({"configurable": {"thread_id": "1"}}) is None

def test_that_nobody_passes(sync_checkpointer):
    assert sync_checkpointer is None

def test_that_only_theirs_passes(sync_checkpointer):
    assert type(sync_checkpointer).__name__ == "SqliteSaver"

def test_that_asks_for_neither():
    assert False
"""


def test_a_suite_is_run_with_ours_beside_the_frameworks_own(tmp_path: Path) -> None:
    tests = tmp_path / "libs/langgraph/tests"
    tests.mkdir(parents=True)
    (tests / "test_small.py").write_text(SMALL)
    with ExitStack() as stack:
        own, ours = run(LANGGRAPH, tmp_path, Places(stack), ["sqlite"])
    assert (own.passed, [*own.failed]) == (
        2,
        ["test_small::test_that_asks_for_ours", "test_small::test_that_nobody_passes"],
    )
    assert ours.passed == 2
    assert ours.failed == {
        "test_small::test_that_nobody_passes": "langgraph's: its own fails it too",
        "test_small::test_that_only_theirs_passes": "",
    }
    assert ours.ours == ["test_small::test_that_only_theirs_passes"]


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_a_suite_whose_source_is_not_there_is_named(suite: object, tmp_path: Path) -> None:
    with ExitStack() as stack, pytest.raises(SuiteMissing, match=f"{suite.name}: missing, {tmp_path} holds no"):  # type: ignore[attr-defined]
        next(run(suite, tmp_path, Places(stack), ["sqlite"]))  # type: ignore[arg-type]


def test_a_folder_without_any_suite_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["suites", str(tmp_path)])
    assert command.main() == 1
    assert capsys.readouterr().out.count("missing") == len(SUITES)


def test_what_we_cannot_run_of_the_sdks_we_have_a_test_of_our_own_for() -> None:
    assert len(OPENAI_AGENTS) == 17
    for _, twin in OPENAI_AGENTS.values():
        assert twin.startswith("test_")  # or pytest would not run it
        assert callable(getattr(storage, twin))


def test_a_failure_is_attributed_by_name_with_or_without_its_parameters() -> None:
    expected = {"test_a[add]": "theirs: one", "test_b": "theirs: all"}
    assert whose("test_session::test_a[add]", expected) == "theirs: one"
    assert whose("test_session::test_a[pop]", expected) == ""
    assert whose("test_session::test_b[pop]", expected) == "theirs: all"
