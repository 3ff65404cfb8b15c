"""The reflection module's own acceptance list, on real Redis, PostgreSQL and MariaDB."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.mapped.existing import SIX, as_json, ask, count, rows, structure, tables, turns_table
from tests.servers.redis import client
from tests.servers.waiting import wait_until
from threadkeep.models.tokens import decode

EXAMPLE = Path(__file__).parents[2] / "examples" / "reflection_module"
MEMORY = EXAMPLE / "backend" / "modules" / "memory"
ASKED = {"conversation_id": "c1", "user_id": "u1", "message": "你好，可以訂房嗎? mail ann@example.org"}
ANSWERED = {"conversation_id": "c1", "reply": f"You said: {ASKED['message']}"}
Load = Callable[[str], Any]


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch, redis_url: str, sql_url: str) -> Iterator[Load]:
    """`backend("chat_router")`: a module of the example, imported anew for this test and its servers."""
    yield from imported(monkeypatch, {"REDIS_URL": redis_url, "DATABASE_URL": sql_url})


def imported(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> Iterator[Load]:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.syspath_prepend(str(EXAMPLE))
    yield lambda name: importlib.import_module(f"backend.{name}")
    importlib.import_module("backend.modules.memory.core").memory.close()
    for name in [name for name in sys.modules if name.partition(".")[0] == "backend"]:
        del sys.modules[name]


def disabled(tmp_path: Path) -> str:
    config = json.loads((MEMORY / "config.json").read_text("utf-8")) | {"enabled": False}
    (tmp_path / "off.json").write_text(json.dumps(config))
    return str(tmp_path / "off.json")


@asynccontextmanager
async def talking_to(app: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://app") as http:
        yield http


async def chat(app: Any, body: dict[str, str] | None = None) -> httpx.Response:
    async with talking_to(app) as http:
        return await http.post("/api/chat", json=body or ASKED)


def test_the_tokenizer_takes_chinese_english_and_emoji(backend: Load) -> None:
    tokenizer = backend("modules.memory.tokenizer")
    for text in ("記憶與反思", "memory and reflection", "🙂👍🏽"):
        assert decode(tokenizer.tokenize_text(text)) == text
    assert {"user", "assistant", "reflection"} <= set(tokenizer.pack_token_record("嗨", None, {"summary": "s"}))


def test_what_is_stored_short_term_is_loaded_again(backend: Load) -> None:
    core = backend("modules.memory.core")
    core.store_short_term("c9", "u1", "嗨", "hi", {"summary": "greeting", "causes": []})
    found = core.load_recent_context("c9")
    assert (found["user_msg"], found["reflection"]) == ("嗨", {"summary": "greeting", "causes": []})
    assert core.load_recent_context("c10") is None


def test_long_term_records_are_upserted_by_the_columns_map(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, redis_url: str, empty_url: str
) -> None:
    own = {"assistant_message": None, "assistant_mes": "text"}
    ask(empty_url, *(turns_table(empty_url, name, **own) for name in ("conversations", "memories")))
    config = json.loads((MEMORY / "config.json").read_text("utf-8"))
    config["columns_map"]["assistant_message"] = "assistant_mes"
    (tmp_path / "config.json").write_text(json.dumps(config))
    there = {"DATABASE_URL": empty_url, "REDIS_URL": redis_url, "MEMORY_CONFIG_PATH": str(tmp_path / "config.json")}
    for load in imported(monkeypatch, there):
        payload = {"conversation_id": "c1", "user_id": "u1", "user_message": "嗨", "created_at": "2026-01-31T12:00:00Z"}
        record = load("modules.memory.io_contract").validate_and_normalize(payload)
        core = load("modules.memory.core")
        assert [core.persist_long_term([record]), core.persist_long_term([record])] == [1, 1]
    assert count(empty_url) == 1


async def test_the_tables_of_the_readme_take_the_turns_of_a_trial(
    monkeypatch: pytest.MonkeyPatch, redis_url: str, empty_url: str
) -> None:
    server = "-- PostgreSQL" if empty_url.startswith("postgres") else "-- MySQL"
    blocks = [part.split("```")[0] for part in (MEMORY / "README.md").read_text("utf-8").split("```sql\n")[1:]]
    (script,) = [block for block in blocks if server in block]
    ask(empty_url, *(statement for statement in script.split(";") if statement.strip()))
    for load in imported(monkeypatch, {"DATABASE_URL": empty_url, "REDIS_URL": redis_url}):
        await chat(load("core_controller").app)
        core = load("modules.memory.core")
        await asyncio.to_thread(core.load_recent_context, "c1")
        assert await asyncio.to_thread(load("jobs.memory_flush_worker").flush_all) == 1
        assert core.health()["database"] == {"status": "ok", "misfits": []}
    assert (count(empty_url), count(empty_url, "memories")) == (1, 1)


async def test_a_chat_message_reaches_redis_and_then_after_a_flush_the_table(
    backend: Load, redis_url: str, sql_url: str
) -> None:
    answer = await chat(backend("core_controller").app)
    assert (answer.status_code, answer.json()) == (200, ANSWERED)
    core = backend("modules.memory.core")
    latest = await asyncio.to_thread(core.load_recent_context, "c1")  # waits for the write that the route left behind
    with client(redis_url) as redis:
        assert json.loads(redis.get("conv:c1:latest")) == latest
    assert latest["user_msg"] == "你好，可以訂房嗎? mail [REDACTED:EMAIL]"

    assert await asyncio.to_thread(backend("jobs.memory_flush_worker").flush_all) == 1
    ((conversation, user, text, reflection, tokens),) = rows(
        sql_url, columns="conversation_id, user_id, user_message, reflection, token_data"
    )
    assert (conversation, user, text) == ("c1", "u1", None)
    assert as_json(reflection) == {"summary": "the user asked something", "causes": ["a question mark"]}
    assert decode(as_json(tokens)["user"]) == latest["user_msg"]
    assert count(sql_url, "memories") == 1


async def test_the_worker_may_run_inside_the_application(backend: Load, sql_url: str) -> None:
    controller = backend("core_controller")
    async with controller.lifespan(controller.app):
        for number in range(3):
            await chat(controller.app, ASKED | {"message": f"question {number}?"})
        await asyncio.to_thread(wait_until, lambda: count(sql_url) == 3, seconds=15, what="three turns are stored")


async def test_the_worker_may_be_a_process_of_its_own(backend: Load, sql_url: str) -> None:
    await chat(backend("core_controller").app)
    await asyncio.to_thread(backend("modules.memory.core").load_recent_context, "c1")
    command = [sys.executable, "-W", "error", "-m", "backend.jobs.memory_flush_worker", "--once"]
    ran = await asyncio.to_thread(
        subprocess.run, command, cwd=EXAMPLE, env=dict(os.environ), capture_output=True, text=True, timeout=60
    )
    assert (ran.returncode, ran.stdout) == (0, "stored 1\n"), ran.stderr
    assert count(sql_url) == 1


async def test_no_table_is_added_and_none_is_altered(backend: Load, sql_url: str) -> None:
    before, others = structure(sql_url), [name for name in SIX if name not in ("conversations", "memories")]
    await chat(backend("core_controller").app)
    await asyncio.to_thread(backend("modules.memory.core").load_recent_context, "c1")
    await asyncio.to_thread(backend("jobs.memory_flush_worker").flush_once)
    assert count(sql_url) == 1
    assert tables(sql_url) == set(SIX)
    assert structure(sql_url) == before
    assert [rows(sql_url, name, order="id") for name in others] == [[(1, "was here before")]] * len(others)


async def test_a_disabled_module_is_not_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, redis_url: str, backend: Load
) -> None:
    mounted = backend("core_controller").app
    with_memory = (await chat(mounted)).json(), mounted.openapi()
    backend("modules.memory.core").memory.close()
    for name in [name for name in sys.modules if name.partition(".")[0] == "backend"]:
        del sys.modules[name]
    with client(redis_url) as redis:
        redis.flushdb()
        monkeypatch.setenv("MEMORY_CONFIG_PATH", disabled(tmp_path))
        monkeypatch.delenv("REDIS_URL")
        app = backend("core_controller").app
        assert ((await chat(app)).json(), app.openapi()) == with_memory
        assert redis.dbsize() == 0
    assert backend("modules.memory.core").health() == {"enabled": False, "status": "disabled"}


async def test_with_every_store_away_the_route_answers_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    away = {"REDIS_URL": "redis://127.0.0.1:1/0", "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}
    for load in imported(monkeypatch, away):
        answer = await chat(load("core_controller").app)
        assert (answer.status_code, answer.json()) == (200, ANSWERED)


@pytest.mark.parametrize(
    "odd", [{"user_id": ""}, {"conversation_id": ""}, {"conversation_id": "c" * 300}, {"conversation_id": "a\x00b"}]
)
async def test_ids_that_cannot_be_kept_are_logged_and_the_route_answers_as_ever(
    backend: Load, caplog: pytest.LogCaptureFixture, odd: dict[str, str]
) -> None:
    answer = await chat(backend("core_controller").app, ASKED | odd)
    assert (answer.status_code, answer.json()) == (200, ANSWERED | {key: odd[key] for key in odd if key in ANSWERED})
    assert f"a turn was not stored: {next(iter(odd))}: " in caplog.text
    assert ASKED["message"] not in caplog.text


async def test_without_redis_the_application_starts_answers_and_ends(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    for load in imported(monkeypatch, {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}):
        controller = load("core_controller")
        async with controller.lifespan(controller.app):
            answer = await chat(controller.app)
        assert (answer.status_code, answer.json()) == (200, ANSWERED)
    assert "the worker has stopped: REDIS_URL: is not set" in caplog.text


def test_the_health_check_says_how_both_stores_are(backend: Load) -> None:
    found = backend("modules.memory.core").health()
    assert (found["status"], found["redis"]["status"], found["database"]["status"]) == ("ok", "ok", "ok")


def test_what_was_there_before_is_there_under_its_name(backend: Load) -> None:
    assert [route.path for route in backend("chat_router").router.routes] == ["/api/chat"]
    assert [route.path for route in backend("memory_router").router.routes] == ["/api/memory/status"]
    assert backend("prompt_engine").build_prompt("hi") == "User: hi"
    assert backend("supabase_handler").database_url()
    assert set(backend("core_controller").app.openapi()["paths"]) == {"/api/chat", "/api/memory/status"}


def test_a_reflection_may_come_later(backend: Load, sql_url: str) -> None:
    core = backend("modules.memory.core")
    core.store_conversation("c1", "u1", "hello", "hi", None)
    core.store_reflection("c1", "u1", {"summary": "a greeting", "causes": []})
    assert core.load_recent_context("c1")["reflection"] == {"summary": "a greeting", "causes": []}
    assert backend("jobs.memory_flush_worker").flush_all() == 2
    assert len(rows(sql_url)) == 1


def test_the_tree_and_the_readme_are_complete() -> None:
    for name in ("__init__.py", "core.py", "io_contract.py", "tokenizer.py", "config.json", "README.md"):
        assert (MEMORY / name).is_file()
    assert (EXAMPLE / "backend" / "jobs" / "memory_flush_worker.py").is_file()
    assert (EXAMPLE / "backend" / "core_controller.py").is_file()
    readme = (MEMORY / "README.md").read_text("utf-8")
    topics = ["What it does", "Environment", "Fitting your tables", "Trying it locally", "When something is wrong"]
    assert [line.removeprefix("## ") for line in readme.splitlines() if line.startswith("## ")] == topics
    for name in (
        "REDIS_URL",
        "MEMORY_REDIS_TTL_SECONDS",
        "MEMORY_FLUSH_BATCH_SIZE",
        "MEMORY_TABLE_MAP",
        "TOKENIZER_NAME",
    ):
        assert f"`{name}`" in readme


def test_the_tree_the_snippet_and_the_steps_to_accept_it_are_shown() -> None:
    tree = (EXAMPLE / "README.md").read_text("utf-8")
    readme = (MEMORY / "README.md").read_text("utf-8")
    added = ("core.py", "io_contract.py", "tokenizer.py", "config.json", "memory_flush_worker.py", "core_controller.py")
    assert [name for name in added if name not in tree] == []
    snippet = "from backend.modules.memory.core import store_conversation"
    assert snippet in readme
    assert snippet in (EXAMPLE / "backend" / "chat_router.py").read_text("utf-8")
    steps = ("/api/chat", "GET conv:c1:latest", "memory_flush_worker --once", "SELECT token_data, reflection")
    assert [step for step in steps if step not in readme] == []


def test_no_table_or_column_is_named_in_the_code() -> None:
    code = "".join(path.read_text("utf-8") for path in MEMORY.glob("*.py"))
    assert '"conversations"' not in code
    assert '"memories"' not in code
