"""`threadkeep doctor`."""

import sqlite3
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Command
from threadkeep import Scope, SyncMemory, UserMessage
from threadkeep.cli.resolved import masked


def test_it_shows_each_value_and_where_it_came_from(
    threadkeep: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "threadkeep.toml").write_text("session_max_messages = 30\nsession_ttl_min = 5\n")
    monkeypatch.setenv("SESSION_MAX_MESSAGES", "40")
    monkeypatch.setenv("THREADKEEP_TYPO", "x")
    monkeypatch.setenv("THREADKEEP_TOKEN", "of `threadkeep mcp --gateway`")
    report = threadkeep("doctor", "--json").json

    assert report["settings"]["SESSION_MAX_MESSAGES"] == {"value": 40, "source": "env"}
    assert report["settings"]["SESSION_TTL_MIN"] == {"value": 5, "source": "toml"}
    assert report["settings"]["TOKENIZER_NAME"] == {"value": "cl100k_base", "source": "default"}
    assert [line.split()[0] for line in report["warnings"] if "not a setting" in line] == ["THREADKEEP_TYPO"]


def test_a_misspelled_setting_is_named_with_the_known_one(
    threadkeep: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "threadkeep.toml").write_text("session_max_mesages = 30\n")
    in_file = threadkeep("doctor", "--json")
    (tmp_path / "threadkeep.toml").unlink()
    monkeypatch.setenv("THREADKEEP_JWT_SECERT", "hunter2")
    in_environment = threadkeep("doctor", "--json")

    for ended, known in ((in_file, "session_max_messages"), (in_environment, "THREADKEEP_JWT_SECRET")):
        assert (ended.code, ended.problem["code"]) == (1, "invalid_setting")
        assert ended.problem["fix"] == f"did you mean {known}?"


def test_in_a_narrow_window_nothing_is_left_out(
    threadkeep: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    folder = tmp_path / "a-folder-of-a-rather-long-name" / "and-another-in-it-of-a-name-as-long"
    shown = threadkeep("doctor", "--url", f"sqlite:///{folder}/memory.db").stdout

    assert "THREADKEEP_SEMANTIC_CACHE_SIMILARITY" in shown
    assert "…" not in shown


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


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("a_file", "is no folder"),
        ("a_file/below", "a file is in its way"),
        ("damaged", "is damaged"),
        ("http://127.0.0.1:9", "does not answer"),
        ("not/there/yet", None),
    ],
)
def test_a_chroma_that_cannot_be_used_is_named(
    threadkeep: Command, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, problem: str | None
) -> None:
    (tmp_path / "a_file").write_text("x")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "chroma.sqlite3").write_bytes(b"not a database " * 100)
    before = {one.name for one in tmp_path.rglob("*")}
    monkeypatch.setenv("CHROMA_PATH", place)
    ended = threadkeep("doctor", "--url", store, "--json")

    assert (ended.code, ended.json["ok"], ended.json["chroma"]["place"]) == (int(bool(problem)), not problem, place)
    assert (problem or "") in (ended.json["chroma"]["problem"] or "")
    assert bool(problem) == any("CHROMA_PATH" in line for line in ended.json["warnings"])
    made = {one.name for one in tmp_path.rglob("*")} - before
    assert all(name.startswith("store.db-") for name in made), "looking makes no Chroma"


def test_a_chroma_in_use_is_well(threadkeep: Command, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert threadkeep("doctor", "--url", store, "--json").json["chroma"] is None
    monkeypatch.setenv("CHROMA_PATH", "chroma")
    with SyncMemory(store) as memory:
        memory.append(Scope(user="u", conversation="c"), [UserMessage("hello")], index="sync")
        assert threadkeep("doctor", "--url", store, "--json").json["chroma"]["ok"]
    assert threadkeep("doctor", "--url", store, "--json").json["chroma"] == {
        "place": "chroma",
        "ok": True,
        "problem": None,
    }


def test_passwords_are_masked_wherever_they_stand(threadkeep: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://ann:hunter2@db:5432/memory?sslpassword=hunter2")
    monkeypatch.setenv("REDIS_URL", "redis://:hunter2@cache:6379/0")

    for flags in ((), ("--json",)):
        ended = threadkeep("doctor", *flags)
        assert ended.code == 1
        assert "hunter2" not in ended.stdout + ended.stderr
        assert "://***@db" in ended.stdout


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://:p@ss/w:rd@cache/0", "redis://***@cache/0"),
        ("mysql://ann:x@db/m?ssl_key=abc&charset=utf8", "mysql://***@db/m?***"),
        ("sqlite:///./database/sqlite.db", "sqlite:///./database/sqlite.db"),
        ("sqlite:///C:\\my store\\sqlite.db", "sqlite:///C:\\my store\\sqlite.db"),
        ("sqlite:///x.db?key=abc", "sqlite:///x.db?***"),
        ("sqlite:///x.db#abc", "sqlite:///x.db?***"),
        ("postgresql://TOKEN@db/memory", "postgresql://***@db/memory"),
        ("postgresql+asyncpg://a:b@[::1]:5432/m", "postgresql+asyncpg://***@[::1]:5432/m"),
        ("postgresql://db1:5432,db2:5432/m", "postgresql://db1:5432,db2:5432/m"),
    ],
)
def test_user_and_query_of_a_url_are_masked(url: str, shown: str) -> None:
    assert masked(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        "ann:hunter2@db/memory",
        "postgresql:/ann:hunter2@db/memory",
        "postgresql://ann:hunter2",
        "postgresql://ann:x@db:hunter2/memory",
        "postgresql://[hunter2/memory",
        "redis://:p?hunter2@cache/0",
        "redis://:p#hunter2@cache/0",
        "redis://ann:x@cache/0?user=a@hunter2",
        "hunter2",
    ],
)
def test_nothing_is_shown_of_what_cannot_be_read_as_a_url(url: str) -> None:
    assert masked(url) == "***"


@pytest.mark.parametrize("flags", [(), ("--json",)])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("THREADKEEP_SLOT_KEY", "hunter2"),
        ("DATABASE_URL", "postgresql://hunter2@127.0.0.1:1/db"),
        ("DATABASE_URL", "postgresql://ann:hunter2@db:port/db"),
        ("DATABASE_URL", "postgresql://[hunter2/db"),
        ("DATABASE_URL", "postgresql://ann:p@ss/hunter2@db/memory"),
        ("DATABASE_URL", "mysql://ann:hunter2"),
        ("DATABASE_URL", "sqlite:///x.db?key=hunter2"),
        ("DATABASE_URL", "ann:hunter2@db/memory"),
        ("REDIS_URL", "redis://:hunter2"),
        ("REDIS_URL", "hunter2@cache"),
        ("OLLAMA_HOST", "http://hunter2@localhost"),
    ],
)
def test_no_secret_setting_is_printed(
    threadkeep: Command, monkeypatch: pytest.MonkeyPatch, name: str, value: str, flags: tuple[str, ...]
) -> None:
    monkeypatch.setenv(name, value)
    ended = threadkeep("doctor", *flags)

    assert "hunter2" not in ended.stdout + ended.stderr
    assert "***" in ended.stdout


def test_what_looks_like_a_key_is_not_repeated_when_there_is_no_store(threadkeep: Command) -> None:
    ended = threadkeep("stats", "--url", "sqlite:///x.db?key=hunter2")

    assert "x.db?***: there is no store here" in ended.stderr


def test_names_that_only_sound_secret_are_shown(threadkeep: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKENIZER_NAME", "o200k_base")
    monkeypatch.setenv("MEMORY_REDIS_TTL_SECONDS", "77")
    shown = threadkeep("doctor", "--json").json["settings"]

    assert (shown["TOKENIZER_NAME"]["value"], shown["MEMORY_REDIS_TTL_SECONDS"]["value"]) == ("o200k_base", 77)
    assert shown["THREADKEEP_SLOT_KEY"]["value"] is None


def test_for_people_it_is_tables_and_a_verdict(threadkeep: Command, store: str) -> None:
    ended = threadkeep("doctor", "--url", store)

    assert "SESSION_MAX_MESSAGES" in ended.stdout
    assert "All is well." in ended.stdout


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("sqlite:///a_file/below/x.db", "a_file is no folder"),
        ("sqlite:///a_file/x.db", "a_file is no folder"),
        ("sqlite:////proc/nope/x.db", "/proc takes no new folder"),
    ],
)
def test_a_store_whose_folder_cannot_be_made_is_reported(
    threadkeep: Command, tmp_path: Path, url: str, problem: str
) -> None:
    (tmp_path / "a_file").write_text("x")
    ended = threadkeep("doctor", "--url", url, "--json")

    assert (ended.code, ended.json["ok"], ended.json["store"]["status"]) == (1, False, "failed")
    assert ended.json["store"]["error"]["code"] == "store_unavailable"
    assert problem in ended.json["store"]["error"]["detail"]
    assert [one.name for one in tmp_path.iterdir()] == ["a_file"]
