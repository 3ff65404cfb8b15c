"""`threadkeep doctor`."""

import sqlite3
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Command
from threadkeep.cli.resolved import masked


def test_it_shows_each_value_and_where_it_came_from(
    threadkeep: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "threadkeep.toml").write_text('session_max_messages = 30\nsession_ttl_min = 5\ntypo = "x"\n')
    monkeypatch.setenv("SESSION_MAX_MESSAGES", "40")
    monkeypatch.setenv("THREADKEEP_TYPO", "x")
    report = threadkeep("doctor", "--json").json

    assert report["settings"]["SESSION_MAX_MESSAGES"] == {"value": 40, "source": "env"}
    assert report["settings"]["SESSION_TTL_MIN"] == {"value": 5, "source": "toml"}
    assert report["settings"]["TOKENIZER_NAME"] == {"value": "cl100k_base", "source": "default"}
    assert [line.split()[0] for line in report["warnings"] if "not a setting" in line] == ["THREADKEEP_TYPO", "typo"]


def test_looking_does_not_create_the_store(threadkeep: Command, tmp_path: Path) -> None:
    ended = threadkeep("doctor", "--json")

    assert ended.code == 0
    assert ended.json["store"]["status"] == "not created yet"
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_answers_is_described(threadkeep: Command, store: str) -> None:
    ended = threadkeep("doctor", "--url", store, "--json")

    described = ended.json["store"]
    assert ended.code == 0
    assert (described["status"], described["journal_mode"], described["messages"]) == ("reachable", "wal", 4)
    assert ended.json["sqlite"]["version"] == sqlite3.sqlite_version
    assert ended.json["sqlite"]["fts5"] is True
    assert ended.json["sqlite"]["secure_delete"] is True


def test_a_store_that_cannot_be_used_ends_with_one(threadkeep: Command, tmp_path: Path) -> None:
    (tmp_path / "broken.db").write_bytes(b"not a database " * 100)
    ended = threadkeep("doctor", "--url", "sqlite:///broken.db", "--json")

    assert ended.code == 1
    assert ended.json["store"]["error"]["code"] == "store_corrupt"


def test_passwords_are_masked_wherever_they_stand(threadkeep: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://ann:hunter2@db:5432/memory?sslpassword=hunter2")
    monkeypatch.setenv("REDIS_URL", "redis://:hunter2@cache:6379/0")

    for flags in ((), ("--json",)):
        ended = threadkeep("doctor", *flags)
        assert ended.code == 1
        assert "hunter2" not in ended.stdout + ended.stderr
        assert "ann:***@db" in ended.stdout


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://:p@ss/w:rd@cache/0", "redis://:***@cache/0"),
        ("mysql://ann:x@db/m?ssl_key=abc&charset=utf8", "mysql://ann:***@db/m?ssl_key=***&charset=utf8"),
        ("sqlite:///./database/sqlite.db", "sqlite:///./database/sqlite.db"),
        ("postgresql://ann@db/memory", "postgresql://ann@db/memory"),
    ],
)
def test_only_the_secret_part_of_a_url_is_masked(url: str, shown: str) -> None:
    assert masked(url) == shown


def test_for_people_it_is_tables_and_a_verdict(threadkeep: Command, store: str) -> None:
    ended = threadkeep("doctor", "--url", store)

    assert "SESSION_MAX_MESSAGES" in ended.stdout
    assert "All is well." in ended.stdout
