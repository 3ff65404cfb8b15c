"""An index of another version is noticed, and made anew from the archive, also after an interruption."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from tests.contract.generated_talk import Talk
from tests.contract.sql_statements import execute
from threadkeep import Memory, Scope, Settings, SyncMemory, open_memory
from threadkeep.cli.app import run
from threadkeep.compose.upkeep import check_terms, rebuild_terms
from threadkeep.ports.index import Evidence
from threadkeep.recall.candidates import evidence_for
from threadkeep.recall.normalise import NORMALISER_VERSION
from threadkeep.recall.question import Question

ME = Scope("shop", "ann", "c1")
_TURNS = 150
_OLD = "UPDATE tk_indexes SET version = 0, reached = 0"
_ON_SQLITE = (
    _OLD,
    "UPDATE tk_terms SET terms = '1:other 1:version'",
    "UPDATE tk_conversations SET terms = (SELECT 2 * count(*) FROM tk_messages JOIN tk_terms"
    " ON mid = tk_terms.rowid WHERE tk_messages.cid = tk_conversations.cid)",
)
_LONGER = "UPDATE tk_conversations SET terms = terms + 7"
_ON_POSTGRES = (_OLD, _LONGER, "UPDATE tk_messages SET words = ARRAY[1, 2]")
_ON_MYSQL = (
    _OLD,
    _LONGER,
    "UPDATE tk_messages SET words = NULL",
    "UPDATE tk_words SET word = -word, times = 3",
)


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/memory.db"
    server = request.getfixturevalue(f"{request.param}_server")
    server.wipe()
    return server.url


async def _spoil(url: str) -> None:
    """As though an older version had made the terms."""
    if not url.startswith("sqlite"):
        await execute(url, *(_ON_POSTGRES if url.startswith("postgres") else _ON_MYSQL))
        return
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        for statement in _ON_SQLITE:
            connection.execute(statement)
    connection.close()


async def _evidence(memory: Memory, question: str) -> Evidence:
    return await evidence_for(Question(question), memory._stores.index, ME.whole_user)  # pyright: ignore[reportPrivateUsage]


async def _all(url: str, questions: list[str]) -> list[object]:
    async with open_memory(url, settings=Settings()) as memory:
        found = [await _evidence(memory, question) for question in questions]
    return [
        (one.statistics, dict(one.shapes), sorted((t.position, t.length, sorted(t.counts.items())) for t in one.turns))
        for one in found
    ]


async def test_what_another_version_made_is_made_anew(url: str) -> None:
    talk = Talk(8)
    async with open_memory(url, settings=Settings()) as memory:
        await memory.append(ME, talk.turns("c1", _TURNS))
        await memory.append(ME.with_conversation("c2"), talk.turns("c2", 20))
    questions = [talk.question() for _ in range(10)]
    right = await _all(url, questions)
    assert (await check_terms(url, Settings())).up_to_date
    await _spoil(url)
    report = await check_terms(url, Settings())
    assert (report.found, report.newest, report.up_to_date) == (0, NORMALISER_VERSION, False)
    assert await _all(url, questions) != right
    seen: list[int] = []
    assert await rebuild_terms(url, Settings(), seen.append) >= _TURNS
    assert seen
    assert (await check_terms(url, Settings())).up_to_date
    assert await _all(url, questions) == right
    assert await rebuild_terms(url, Settings()) == 0


async def test_a_rebuild_that_was_interrupted_goes_on_where_it_stopped(url: str) -> None:
    talk = Talk(9)
    async with open_memory(url, settings=Settings()) as memory:
        for number in range(3):
            await memory.append(ME.with_conversation(f"c{number}"), talk.turns(f"c{number}", 70))
    questions = [talk.question() for _ in range(5)]
    right = await _all(url, questions)
    await _spoil(url)
    async with open_memory(url, settings=Settings()) as memory:
        upkeep = memory._stores.upkeep  # pyright: ignore[reportPrivateUsage]
        assert upkeep is not None
        first = await upkeep.rebuild_some(NORMALISER_VERSION)
        assert await upkeep.version() == -NORMALISER_VERSION
        await memory.erase(ME.with_conversation("c2"), message_id="c2-3")  # life goes on meanwhile
    assert first + await rebuild_terms(url, Settings()) <= 210
    found = await _all(url, questions)
    assert found != right
    assert (await check_terms(url, Settings())).up_to_date


def test_doctor_says_that_the_terms_are_of_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", "sqlite:///memory.db")
    monkeypatch.setenv("THREADKEEP_EMBEDDER", "none")
    with SyncMemory("sqlite:///memory.db") as memory:
        memory.append(ME, Talk(10).turns("c1", 70))
    with sqlite3.connect("memory.db") as connection:
        connection.execute("UPDATE tk_indexes SET version = 1")
    connection.close()
    assert _warned(capsys)
    assert run(["index", "rebuild", "--json"]) == 0
    capsys.readouterr()
    assert not _warned(capsys)


def _warned(capsys: pytest.CaptureFixture[str]) -> bool:
    assert run(["doctor", "--json"]) == 0
    warnings = json.loads(capsys.readouterr().out)["warnings"]
    return any("threadkeep index rebuild" in warning for warning in warnings)


_BACK = (
    "DROP TABLE tk_indexes",
    "ALTER TABLE tk_conversations DROP COLUMN terms",
    "UPDATE tk_alembic_version SET version_num = '0003'",
)
_BACK_ON_MYSQL = (
    "ALTER TABLE tk_messages DROP COLUMN words",
    "ALTER TABLE tk_words DROP COLUMN times, DROP COLUMN length",
)
_BACK_ON_SQLITE = (
    *(
        f"DROP TABLE {name}"
        for name in (
            "tk_store_items",
            "tk_store_vectors",
            "tk_turn_keys",
            "tk_thread_documents",
            "tk_api_keys",
            "tk_front",
            "tk_checkpoint_types",
            "tk_reflections",
            "tk_model_usage",
        )
    ),
    "ALTER TABLE tk_messages DROP COLUMN origin",
    "ALTER TABLE tk_messages DROP COLUMN stored_at",
    "ALTER TABLE conversation_metadata DROP COLUMN copied_from",
    "ALTER TABLE conversation_metadata DROP COLUMN cache_hits",
    "DROP TRIGGER tk_embed_failed_of_message",
    "DROP TABLE tk_embed_failed",
    "DROP TABLE tk_indexes",
    "DROP TABLE tk_holding",
    "ALTER TABLE tk_conversations DROP COLUMN terms",
    "ALTER TABLE tk_owners RENAME COLUMN user_id TO user",
    "UPDATE tk_schema SET version = 3",
)


async def _take_back(url: str) -> None:
    """The tables as they were before words were counted."""
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
            for statement in _BACK_ON_SQLITE:
                connection.execute(statement)
        connection.close()
    else:
        await execute(url, *_BACK, *(() if url.startswith("postgres") else _BACK_ON_MYSQL))


async def test_tables_from_before_words_were_counted_go_on_and_are_rebuilt(url: str) -> None:
    talk = Talk(11)
    async with open_memory(url, settings=Settings()) as memory:
        await memory.append(ME, talk.turns("c1", _TURNS))
    questions = [talk.question() for _ in range(10)]
    right = await _all(url, questions)
    await _take_back(url)
    async with open_memory(url, settings=Settings()) as memory:
        best = [(await _evidence(memory, question)).statistics.holding for question in questions]
        await memory.append(ME, talk.turns("later", 1))
        await memory.erase(ME, message_id="later-0")
    assert [dict(holding) for holding in best] == [dict(one[0].holding) for one in right]  # type: ignore[index]
    assert not (await check_terms(url, Settings())).up_to_date
    await rebuild_terms(url, Settings())
    assert await _all(url, questions) == right
