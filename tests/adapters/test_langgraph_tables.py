"""The two tables that operators know by name: their columns, keys and indexes, on every database."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.adapters.database import rows
from tests.adapters.verbs import Verbs, thread

COLUMNS = {
    "conversation_checkpoints": {
        *("thread_id", "checkpoint_id", "checkpoint_ns", "parent_checkpoint_id", "checkpoint_blob", "metadata_blob"),
        *("created_at", "updated_at"),
    },
    "conversation_metadata": {
        *("thread_id", "user_id", "first_query", "query_count", "context_count", "datasource_ids", "access_level"),
        *("started_at", "last_activity_at", "expired_at"),
    },
}
INDEXES = {
    "idx_thread_created": ["thread_key", "created_at"],
    "idx_created_at": ["created_at"],
    "idx_user_id": ["tenant", "user_id"],
    "idx_last_activity": ["last_activity_at"],
    "idx_expired_at": ["expired_at"],
}

ON_MYSQL = {
    "idx_thread_created": ["thread_id", "created_at"],
    "idx_thread_id": ["thread_id"],
    "idx_user_id": ["user_id", "tenant"],
}

pytestmark = pytest.mark.parametrize("mode", ["async"], indirect=True)


async def columns_of(url: str, table: str) -> dict[str, str]:
    if url.startswith("sqlite"):
        return {str(row[1]): str(row[2]) for row in await rows(url, f"PRAGMA table_info({table})")}
    schema = "DATABASE()" if url.startswith("mysql") else "current_schema()"
    query = f"SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = {schema}"
    return {str(name): str(kind) for name, kind in await rows(url, f"{query} AND table_name = '{table}'")}


async def indexes_of(url: str, table: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    if url.startswith("mysql"):
        query = f"SELECT index_name, column_name FROM information_schema.statistics WHERE table_name = '{table}'"
        for name, column in await rows(url, f"{query} AND table_schema = DATABASE() ORDER BY seq_in_index"):
            found.setdefault(str(name), []).append(str(column))
    elif url.startswith("postgres"):
        for name, made in await rows(url, f"SELECT indexname, indexdef FROM pg_indexes WHERE tablename = '{table}'"):
            inside = str(made).rpartition("(")[2].rstrip(")")
            found[str(name)] = [part.strip().split()[0] for part in inside.split(",")]
    else:
        for row in await rows(url, f"PRAGMA index_list({table})"):
            found[str(row[1])] = [str(one[2]) for one in await rows(url, f"PRAGMA index_info({row[1]})")]
    return found


@pytest.mark.parametrize("table", COLUMNS)
async def test_every_promised_column_stands(saver: Verbs, url: str, table: str) -> None:
    assert COLUMNS[table] <= (await columns_of(url, table)).keys()


WIDER = {  # than the document's VARCHAR(255), TEXT, MEDIUMTEXT, INT and JSON: ids of any length, compared byte by byte
    "longtext": {"thread_id", "checkpoint_ns", "first_query", "datasource_ids"},
    "varbinary": {"checkpoint_id", "parent_checkpoint_id", "user_id"},
    "longblob": {"checkpoint_blob", "metadata_blob"},
    "bigint": {"query_count", "context_count"},
    "enum": {"access_level"},
    "timestamp": {"created_at", "updated_at", "started_at", "last_activity_at", "expired_at"},
}


@pytest.mark.parametrize("url", ["mariadb"], indirect=True)
@pytest.mark.parametrize("table", COLUMNS)
async def test_on_mysql_every_column_holds_at_least_what_was_promised(saver: Verbs, url: str, table: str) -> None:
    found = await columns_of(url, table)
    kinds = {name: kind for kind, names in WIDER.items() for name in names}
    assert {name: found[name] for name in COLUMNS[table]} == {name: kinds[name] for name in COLUMNS[table]}


@pytest.mark.parametrize("url", ["mariadb"], indirect=True)
async def test_on_mysql_a_changed_checkpoint_says_when(saver: Verbs, url: str) -> None:
    query = "SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE()"
    updated = await rows(url, f"{query} AND extra LIKE 'on update%' AND table_name LIKE 'conversation%'")
    assert [str(name) for (name,) in updated] == ["updated_at"]


async def test_to_expire_is_no_activity(saver: Verbs, url: str, user: str) -> None:
    await saver.put(thread("t"), {"x": 1})
    threads = f"conversation_metadata WHERE user_id = '{user}'"
    before = await rows(url, f"SELECT last_activity_at, started_at FROM {threads}")
    await rows(url, f"UPDATE conversation_metadata SET expired_at = started_at WHERE user_id = '{user}'")
    assert await rows(url, f"SELECT last_activity_at, expired_at FROM {threads}") == before


async def test_every_promised_index_stands(saver: Verbs, url: str) -> None:
    found: dict[str, list[str]] = {}
    for table in COLUMNS:
        # Where all indexes of a schema share one namespace, ours carry their table's name.
        found |= {
            name.removeprefix(f"{table}_"): columns
            for name, columns in (await indexes_of(url, table)).items()
            if "idx_" in name
        }
    assert found == INDEXES | (ON_MYSQL if url.startswith("mysql") else {})


async def test_the_scope_and_the_namespace_are_part_of_the_key(saver: Verbs, url: str) -> None:
    keys = {tuple(columns) for columns in (await indexes_of(url, "conversation_checkpoints")).values()}
    assert ("thread_key", "ns_key", "checkpoint_id") in keys


async def test_times_are_times_and_tell_when_it_was(saver: Verbs, url: str, user: str) -> None:
    before = datetime.now(UTC).timestamp()
    first = await saver.put(thread("t"), {"x": 1})
    await saver.put(first, {"x": 2})
    epoch = {
        "sqlite": "created_at / 1e6",
        "mysql": "UNIX_TIMESTAMP(created_at)",
        "postgres": "extract(epoch FROM created_at)",
    }[url.partition(":")[0].replace("postgresql", "postgres")]
    keys = f"SELECT thread_key FROM conversation_metadata WHERE user_id = '{user}'"
    found = await rows(url, f"SELECT {epoch} FROM conversation_checkpoints WHERE thread_key IN ({keys})")
    assert len(found) == 2
    for (when,) in found:
        assert before - 1 <= float(str(when)) <= datetime.now(UTC).timestamp() + 1
    if not url.startswith("sqlite"):
        kinds = await columns_of(url, "conversation_metadata")
        assert {kinds[name].partition(" ")[0] for name in ("started_at", "last_activity_at", "expired_at")} == {
            "timestamp"
        }


async def test_a_parent_is_linked_whenever_the_config_names_one(saver: Verbs, url: str, user: str) -> None:
    first = await saver.put(thread("t"), {"x": 1}, metadata={"source": "loop", "step": 0})
    second = await saver.put(first, {"x": 2}, metadata={"source": "loop", "step": 1})
    found = await saver.get(second)
    assert found is not None
    assert found.parent_config == first
    assert (await saver.get(first)).parent_config is None  # type: ignore[union-attr]


async def test_a_checkpoint_without_an_id_gets_one(saver: Verbs) -> None:
    checkpoint = {"v": 1, "ts": "", "channel_values": {"x": 1}, "channel_versions": {"x": 1}, "versions_seen": {}}
    stored = await saver.saver.aput(thread("t"), checkpoint, {}, {"x": 1})
    found = await saver.get(stored)
    assert found is not None
    assert found.checkpoint["id"] == stored["configurable"]["checkpoint_id"]
    assert found.checkpoint["channel_values"] == {"x": 1}
