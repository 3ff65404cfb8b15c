"""`threadkeep keys`: make, list, revoke."""

import pytest

from tests.unit.cli.conftest import Command

SECRET = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def url(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("THREADKEEP_API_KEY_SECRET", SECRET)
    return f"sqlite:///{tmp_path_factory.mktemp('keys')}/keys.db"


def test_a_key_is_printed_once_and_listed_without_it(threadkeep: Command, url: str) -> None:
    made = threadkeep(
        "keys", "create", "--tenant", "shop", "--user", "ann", "--scope", "read", "--json", "--url", url
    ).json
    listed = threadkeep("keys", "list", "--json", "--url", url)

    assert made["key"].startswith(f"tk_{made['prefix']}_")
    assert made["key"] not in listed.stdout
    assert [(one["prefix"], one["user"], one["permissions"]) for one in listed.json] == [
        (made["prefix"], "ann", ["read"])
    ]


def test_for_people_the_key_stands_alone_on_stdout(threadkeep: Command, url: str) -> None:
    ended = threadkeep("keys", "create", "--role", "admin", "--expires-days", "30", "--url", url)

    assert ended.code == 0
    assert ended.stdout.startswith("tk_")
    assert len(ended.stdout.split()) == 1
    table = threadkeep("keys", "list", "--url", url).stdout
    assert "(service)" in table
    assert "ADMIN" in table


def test_in_a_narrow_window_a_prefix_is_shown_whole(
    threadkeep: Command, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is what `keys revoke` asks for."""
    monkeypatch.setenv("COLUMNS", "80")
    names = ("--name", "a-rather-long-name-for-a-key", "--tenant", "a-rather-long-name-for-a-tenant")
    prefix = threadkeep("keys", "create", *names, "--json", "--url", url).json["prefix"]

    table = threadkeep("keys", "list", "--url", url).stdout

    assert prefix in table
    assert "…" not in table


def test_a_revoked_key_is_listed_as_such(threadkeep: Command, url: str) -> None:
    prefix = threadkeep("keys", "create", "--json", "--url", url).json["prefix"]

    assert threadkeep("keys", "revoke", prefix, "--url", url).code == 0
    assert threadkeep("keys", "list", "--json", "--url", url).json[0]["revoked_at"]
    assert threadkeep("keys", "revoke", "nosuchprefix", "--json", "--url", url).problem["code"] == "not_found"


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (["--role", "KING"], "--role"),
        (["--scope", "everything"], "--scope"),
        (["--expires-days", "0"], "--expires-days"),
        (["--user", ""], "user"),
    ],
)
def test_a_bad_wish_is_refused_by_name(threadkeep: Command, url: str, arguments: list[str], field: str) -> None:
    ended = threadkeep("keys", "create", *arguments, "--json", "--url", url)

    assert ended.code == 1
    assert ended.problem["field"] == field


def test_without_a_secret_no_key_is_made_and_the_fix_is_named(
    threadkeep: Command, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("THREADKEEP_API_KEY_SECRET")
    problem = threadkeep("keys", "create", "--json", "--url", url).problem

    assert (problem["code"], problem["field"]) == ("invalid_setting", "THREADKEEP_API_KEY_SECRET")
    assert "openssl rand" in problem["fix"]


def test_a_store_that_is_not_there_is_not_made_by_looking(threadkeep: Command, url: str) -> None:
    assert threadkeep("keys", "list", "--json", "--url", url).problem["code"] == "not_found"
