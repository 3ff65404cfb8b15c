"""Lists in the pages that must be complete: commands, folders, what a first run needs."""

from pathlib import Path

import pytest

from threadkeep.cli.app import commands

ROOT = Path(__file__).parents[2]
COMMANDS = sorted(
    {str(one.name or getattr(one.callback, "__name__", "")) for one in commands.registered_commands}
    | {str(group.typer_instance.info.name) for group in commands.registered_groups if group.typer_instance}
)
HOW_TO = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "how-to").glob("*.md"))
FOLDERS = sorted(path.parent.name for path in (ROOT / "src" / "threadkeep").glob("*/__init__.py"))


def text_of(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_readme_and_the_change_log(name: str) -> None:
    listed = next(line for line in text_of("README.md").splitlines() if line.startswith("| Command line"))

    assert name in listed.replace("`", " ").split()
    assert f"`{name}`" in text_of("CHANGELOG.md") or f"`threadkeep {name}`" in text_of("CHANGELOG.md")


def test_the_commands_are_found() -> None:
    assert {"serve", "worker", "dlq", "migrate", "redact"} <= {*COMMANDS}


@pytest.mark.parametrize("page", HOW_TO)
def test_every_how_to_page_is_linked_from_the_readme(page: str) -> None:
    assert f"]({page})" in text_of("README.md")


@pytest.mark.parametrize("name", FOLDERS)
def test_every_folder_of_the_package_is_on_the_map(name: str) -> None:
    assert f"\n| `{name}/` |" in text_of("CONTRIBUTING.md")


def test_the_readme_says_what_the_first_run_fetches_and_what_redaction_leaves() -> None:
    readme = " ".join(text_of("README.md").split())

    assert "installs the locked packages from a package index" in readme
    assert "nothing else" not in readme
    assert "docs/reference/redaction.md#what-it-does-not-do" in readme
    assert "## What it does not do" in text_of("docs/reference/redaction.md")
