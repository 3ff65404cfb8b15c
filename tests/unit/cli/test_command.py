"""The command itself: version, help, wrong usage, errors; the same for every subcommand."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Command
from threadkeep import __version__

SUBCOMMANDS = ("serve", "demo", "doctor", "stats", "export", "erase", "migrate")


def test_the_version_is_the_packages(threadkeep: Command) -> None:
    assert threadkeep("--version").stdout == f"threadkeep {__version__}\n"


def test_without_a_subcommand_it_shows_its_help(threadkeep: Command) -> None:
    ended = threadkeep()

    assert ended.code == 2
    assert all(name in ended.stdout + ended.stderr for name in SUBCOMMANDS)


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_every_subcommand_takes_a_url_and_speaks_json(threadkeep: Command, name: str) -> None:
    shown = threadkeep(name, "--help").stdout

    assert "--url" in shown
    assert "--json" in shown


def test_wrong_usage_is_told_as_json_on_stderr(threadkeep: Command) -> None:
    ended = threadkeep("erase", "--json")

    assert (ended.code, ended.stdout) == (2, "")
    assert ended.problem["code"] == "usage"
    assert "--user" in ended.problem["detail"]


@pytest.mark.parametrize("name", ["stats", "export", "erase --user ann --yes"])
def test_a_store_that_is_not_there_is_an_error_and_is_not_made(threadkeep: Command, tmp_path: Path, name: str) -> None:
    ended = threadkeep(*name.split(), "--url", "sqlite:///typo.db", "--json")

    assert (ended.code, ended.stdout) == (1, "")
    assert ended.problem["code"] == "not_found"
    assert list(tmp_path.iterdir()) == []


def test_an_invalid_setting_is_named_and_its_value_is_not_shown(
    threadkeep: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SESSION_MAX_MESSAGES", "hunter2")
    ended = threadkeep("doctor", "--json")

    assert ended.code == 1
    assert ended.problem["code"] == "invalid_setting"
    assert "SESSION_MAX_MESSAGES" in ended.problem["detail"]
    assert "hunter2" not in ended.stderr


def test_a_database_this_version_does_not_know_is_told_plainly(threadkeep: Command) -> None:
    ended = threadkeep("stats", "--url", "oracle://ann:hunter2@db/memory")

    assert ended.code == 1
    assert "is not a database URL" in ended.stderr
    assert "hunter2" not in ended.stderr


def test_without_the_cli_extra_it_says_how_to_get_it(tmp_path: Path) -> None:
    blocked = "import sys; sys.modules['typer'] = None; from threadkeep.cli import main; main()"
    ended = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, cwd=tmp_path)

    assert ended.returncode == 2
    assert "pip install 'threadkeep[cli]'" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_without_the_service_extra_serve_says_how_to_get_it(
    threadkeep: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    ended = threadkeep("serve")

    assert ended.code == 1
    assert "pip install 'threadkeep[service]'" in ended.stderr


def test_reading_and_erasing_need_no_web_framework(tmp_path: Path) -> None:
    """The `cli` extra alone brings neither FastAPI nor Starlette."""
    blocked = (
        "import sys; sys.modules.update(dict.fromkeys(('fastapi', 'starlette', 'uvicorn')));"
        "from threadkeep.cli import main; sys.argv = ['threadkeep', 'demo', '--json']; main()"
    )
    ended = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, cwd=tmp_path)

    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("command", ["migrate", "doctor", "stats", "export"])
def test_an_empty_url_is_refused_and_no_other_store_is_taken(
    threadkeep: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """As a shell hands on `--url "$DATABASE_URL"` where nothing has set it."""
    monkeypatch.chdir(tmp_path)

    ended = threadkeep(command, "--url", "", "--json")

    assert (ended.code, ended.problem["field"]) == (1, "--url")
    assert not [*tmp_path.iterdir()]
