"""Turns in an application's own tables, on real servers: every row where the mapping says, none twice, none lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest

from tests.mapped.conftest import MakeModule
from tests.mapped.existing import as_json, ask, count, rows, turns_table
from threadkeep.compat.reflection import MemoryModule
from threadkeep.errors import Conflict, InvalidInput, InvalidSetting
from threadkeep.models.tokens import decode

REFLECTION = {"summary": "訂房失敗", "causes": ["日期已滿"]}


def turn(number: int = 0, **changes: Any) -> dict[str, Any]:
    return {
        "conversation_id": "c1",
        "user_id": "u1",
        "user_message": f"問題 {number} 🙂",
        "assistant_message": f"answer {number}",
        "reflection": REFLECTION,
        "created_at": f"2026-01-31T12:00:{number % 60:02}.{number:06}+00:00",
    } | changes


def test_every_turn_stands_in_conversations_and_a_reflected_one_in_memories_too(
    module: MemoryModule, sql_url: str
) -> None:
    assert module.persist_long_term([turn(1), turn(2, reflection=None)]) == 2
    assert (count(sql_url), count(sql_url, "memories")) == (2, 1)


def test_a_row_holds_tokens_and_no_text(module: MemoryModule, sql_url: str) -> None:
    module.persist_long_term([turn(1)])
    ((user, assistant, reflection, tokens, cid),) = rows(
        sql_url, columns="user_message, assistant_message, reflection, token_data, cid"
    )
    assert (user, assistant, as_json(reflection)) == (None, None, REFLECTION)
    kept = as_json(tokens)
    assert set(kept) == {"user", "assistant", "reflection"}
    assert decode(kept["user"]) == "問題 1 🙂"
    assert cid.startswith("baguqeera")


def test_what_was_stored_is_read_back_from_its_tokens(module: MemoryModule) -> None:
    module.persist_long_term([turn(2), turn(1), turn(3, conversation_id="C1")])
    found = module.load_long_term("c1")
    assert [record["user_message"] for record in found] == ["問題 1 🙂", "問題 2 🙂"]
    assert found[0]["reflection"] == REFLECTION
    assert found[0]["created_at"] == turn(1)["created_at"]


def test_a_record_upserted_twice_stays_one_row_and_the_later_one_counts(module: MemoryModule, sql_url: str) -> None:
    changed = {"summary": "solved", "causes": []}
    assert module.persist_long_term([turn(1), turn(1)]) == 2
    assert module.persist_long_term([turn(1, reflection=changed)]) == 1
    assert [as_json(row[0]) for row in rows(sql_url, columns="reflection")] == [changed]


@pytest.mark.parametrize("key", ["UNIQUE (conversation_id, created_at)", None], ids=["keyed", "keyless"])
@pytest.mark.parametrize("at_once", [True, False], ids=["one-batch", "one-by-one"])
@pytest.mark.parametrize("reflected_first", [True, False], ids=["reflection-first", "answer-first"])
def test_records_of_one_turn_complete_each_other(
    make_module: MakeModule, empty_url: str, key: str | None, at_once: bool, reflected_first: bool
) -> None:
    ask(
        empty_url, *(turns_table(empty_url, name, key=key, text_cache="text") for name in ("conversations", "memories"))
    )
    module = make_module(empty_url, columns_map={"text_cache": "text_cache"})
    parts = [turn(1, assistant_message=None), turn(1, user_message=None, reflection=None)]
    if not reflected_first:
        parts = [turn(1, reflection=None), turn(1, user_message=None, assistant_message=None)]
    for batch in [parts] if at_once else [[part] for part in parts]:
        assert module.persist_long_term(batch) == len(batch)
    (found,) = module.load_long_term("c1")
    assert [found[name] for name in ("user_message", "assistant_message", "reflection")] == [
        turn(1)["user_message"],
        turn(1)["assistant_message"],
        REFLECTION,
    ]
    whole = {"conversation_id": "whole", "created_at": turn(2)["created_at"]}
    module.persist_long_term([turn(1, **whole)])
    for table in ("conversations", "memories"):
        (one, other) = rows(empty_url, table, "reflection, token_data, text_cache")
        assert [as_json(value) for value in one] == [as_json(value) for value in other]


@pytest.mark.parametrize("key", ["UNIQUE (conversation_id, created_at)", None], ids=["keyed", "keyless"])
def test_what_a_later_record_has_counts_and_a_cid_follows_it(
    make_module: MakeModule, empty_url: str, key: str | None
) -> None:
    ask(empty_url, *(turns_table(empty_url, name, key=key) for name in ("conversations", "memories")))
    module = make_module(empty_url)
    module.persist_long_term([turn(1, assistant_message="first"), turn(2, cid="bafkgiven")])
    module.persist_long_term([turn(1, user_message=None, reflection=None), turn(2, assistant_message="second")])
    one, two = module.load_long_term("c1")
    assert (one["user_message"], one["assistant_message"]) == (turn(1)["user_message"], turn(1)["assistant_message"])
    assert (two["assistant_message"], two["cid"]) == ("second", "bafkgiven")
    module.close()
    ask(empty_url, "DELETE FROM conversations")
    module.persist_long_term([turn(1)])
    assert module.load_long_term("c1")[0]["cid"] == one["cid"]


def test_workers_that_store_the_parts_of_a_turn_at_once_lose_none(module: MemoryModule, sql_url: str) -> None:
    with ThreadPoolExecutor(3) as threads:
        for number in range(15):
            parts = [[turn(number, **{name: None})] for name in ("user_message", "assistant_message", "reflection")]
            list(threads.map(module.persist_long_term, parts))
    for found in module.load_long_term("c1"):
        assert None not in (found["user_message"], found["assistant_message"], found["reflection"])
    assert (count(sql_url), count(sql_url, "memories")) == (15, 15)


def test_other_names_of_tables_and_columns_are_a_matter_of_the_mapping(make_module: MakeModule, empty_url: str) -> None:
    named = {"assistant_message": None, "assistant_mes": "text", "created_at": None, "conversation_id": None}
    own = {"talk": "varchar(64) NOT NULL", "happened": turns_time(empty_url), "key": "UNIQUE (talk, happened)"}
    ask(empty_url, turns_table(empty_url, "chat_log", **(named | own)))
    columns = {"assistant_message": "assistant_mes", "conversation_id": "talk", "created_at": "happened"}
    module = make_module(empty_url, tables={"conversations": "chat_log", "memories": None}, columns_map=columns)
    assert module.persist_long_term([turn(1)]) == 1
    assert rows(empty_url, "chat_log", "talk, user_id", order="happened") == [("c1", "u1")]


def test_each_of_the_two_tables_may_have_columns_of_its_own(make_module: MakeModule, empty_url: str) -> None:
    other = {"user_id": None, "owner": "varchar(255) NOT NULL", "reflection": None, "insight": "text", "cid": None}
    ask(empty_url, turns_table(empty_url, "conversations"), turns_table(empty_url, "memories", **other))
    own = {"memories": {"user_id": "owner", "reflection": "insight", "cid": None}}
    module = make_module(empty_url, columns_map=own)
    assert module.health()["database"]["status"] == "ok"
    assert module.persist_long_term([turn(1), turn(2, reflection=None)]) == 2
    assert rows(empty_url, columns="user_id") == [("u1",), ("u1",)]
    ((owner, insight),) = rows(empty_url, "memories", "owner, insight")
    assert (owner, as_json(insight)) == ("u1", REFLECTION)


def test_a_column_that_one_table_lacks_is_blamed_on_its_own_setting(make_module: MakeModule, empty_url: str) -> None:
    ask(empty_url, *(turns_table(empty_url, name) for name in ("conversations", "memories")))
    module = make_module(empty_url, columns_map={"memories": {"reflection": "insight"}})
    misfits = [one for one in module.health()["database"]["misfits"] if one["fatal"]]
    assert [one["setting"] for one in misfits] == ["columns_map.memories.reflection"]


def turns_time(url: str) -> str:
    return "timestamptz NOT NULL" if url.startswith("postgres") else "datetime(6) NOT NULL"


def test_memory_table_map_wins_over_the_file(make_module: MakeModule, sql_url: str) -> None:
    ask(sql_url, turns_table(sql_url, "renamed"))
    module = make_module(
        sql_url, {"memory_table_map": {"conversations": "renamed"}}, tables={"conversations": "nowhere"}
    )
    module.persist_long_term([turn(1)])
    assert (count(sql_url, "renamed"), count(sql_url), count(sql_url, "memories")) == (1, 0, 1)


def test_reflections_and_tokens_fit_text_columns_as_well(make_module: MakeModule, empty_url: str) -> None:
    text = {"reflection": "text", "token_data": "text NOT NULL", "user_message": "text NOT NULL"}
    ask(empty_url, turns_table(empty_url, "conversations", **text))
    module = make_module(empty_url, tables={"memories": None})
    module.persist_long_term([turn(1), turn(2, reflection=None)])
    (first, second) = rows(empty_url, columns="reflection, user_message")
    assert (as_json(first[0]), first[1], second[0]) == (REFLECTION, "", None)
    assert module.load_long_term("c1")[0]["reflection"] == REFLECTION


@pytest.mark.parametrize("column", ["text", "json"])
def test_text_is_kept_only_in_a_mapped_cache(make_module: MakeModule, empty_url: str, column: str) -> None:
    ask(empty_url, turns_table(empty_url, "conversations", text_cache=column))
    module = make_module(empty_url, tables={"memories": None}, columns_map={"text_cache": "text_cache"})
    module.persist_long_term([turn(1, user_message="mail ann@example.org")])
    ((cache, user),) = rows(empty_url, columns="text_cache, user_message")
    assert as_json(cache) == {"user_message": "mail [REDACTED:EMAIL]", "assistant_message": "answer 1"}
    assert user is None


def test_without_a_unique_index_a_turn_still_stands_there_once(make_module: MakeModule, empty_url: str) -> None:
    ask(empty_url, turns_table(empty_url, "conversations", key=None))
    module = make_module(empty_url, tables={"memories": None})
    batch = [turn(number) for number in range(20)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: module.persist_long_term(batch), range(8)))
    assert count(empty_url) == 20


@pytest.mark.parametrize("key", ["UNIQUE (conversation_id, created_at)", None])
def test_turns_of_one_second_are_moved_apart_where_the_column_keeps_whole_seconds(
    make_module: MakeModule, empty_url: str, key: str | None
) -> None:
    coarse = "timestamptz(0) NOT NULL" if empty_url.startswith("postgres") else "datetime NOT NULL"
    ask(empty_url, turns_table(empty_url, "conversations", created_at=coarse, key=key))
    module = make_module(empty_url, tables={"memories": None})
    batch = [turn(0, user_message=f"turn {n}", created_at=f"2026-01-31T12:00:00.00000{n}+00:00") for n in range(5)]
    assert [module.persist_long_term(batch) for _ in range(3)] == [5, 5, 5]
    assert [record["user_message"] for record in module.load_long_term("c1")] == [f"turn {n}" for n in range(5)]
    assert len({row[0] for row in rows(empty_url, columns="created_at")}) == 5


@pytest.mark.parametrize("digits", [0, 3])
def test_coarse_times_leave_the_turns_in_order_whoever_stored_them_first(
    make_module: MakeModule, empty_url: str, digits: int
) -> None:
    kind = "timestamptz" if empty_url.startswith("postgres") else "datetime"
    ask(empty_url, turns_table(empty_url, "conversations", created_at=f"{kind}({digits}) NOT NULL"))
    module = make_module(empty_url, tables={"memories": None})
    for number in (3, 0, 4, 1, 2):
        at = f"2026-01-31T12:00:00.00000{number}+00:00"
        module.persist_long_term([turn(0, user_message=f"turn {number}", created_at=at)])
    for limit in (5, 2, 1):
        found = [record["user_message"] for record in module.load_long_term("c1", limit)]
        assert found == [f"turn {number}" for number in range(5)][-limit:]
    assert module.load_long_term("c1", 0) == []


def test_another_users_turn_is_never_overwritten(module: MemoryModule, sql_url: str) -> None:
    module.persist_long_term([turn(1)])
    with pytest.raises(Conflict, match="of another user"):
        module.persist_long_term([turn(2), turn(1, user_id="u2")])
    assert rows(sql_url, columns="user_id") == [("u1",)]
    with pytest.raises(Conflict, match="of another user"):
        module.persist_long_term([turn(3), turn(3, user_id="u2", reflection=None)])
    assert count(sql_url) == 1


def test_a_collation_that_takes_two_conversations_for_one_overwrites_neither(
    make_module: MakeModule, empty_url: str
) -> None:
    lenient = "varchar(64) NOT NULL" if empty_url.startswith("postgres") else "varchar(64) COLLATE utf8mb4_general_ci"
    ask(empty_url, turns_table(empty_url, "conversations", conversation_id=lenient))
    module = make_module(empty_url, tables={"memories": None})
    twins = [turn(1), turn(1, conversation_id="C1")]
    if empty_url.startswith("postgres"):
        assert module.persist_long_term(twins) == 2
        return
    with pytest.raises(Conflict):
        module.persist_long_term(twins)
    module.persist_long_term(twins[:1])
    with pytest.raises(Conflict):
        module.persist_long_term(twins[1:])
    assert rows(empty_url, columns="conversation_id") == [("c1",)]


def test_one_bad_record_is_named_and_none_of_its_batch_is_stored(module: MemoryModule, sql_url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        module.persist_long_term([turn(1), {"conversation_id": "c1"}])
    assert caught.value.field == "records[1].user_id"
    assert count(sql_url) == 0


def test_what_a_column_is_too_short_for_is_told_with_the_column(make_module: MakeModule, empty_url: str) -> None:
    ask(empty_url, turns_table(empty_url, "conversations", conversation_id="varchar(8) NOT NULL"))
    module = make_module(empty_url, tables={"memories": None})
    with pytest.raises(InvalidInput, match=r"conversation_id.*holds 8.*columns_map.conversation_id"):
        module.persist_long_term([turn(1, conversation_id="much-too-long")])


def test_characters_that_servers_refuse_are_kept_in_the_tokens(module: MemoryModule) -> None:
    odd = "a\x00b\ud800c"
    module.persist_long_term([turn(1, user_message=odd, reflection={"summary": odd, "causes": [odd, r"a\u0000"]})])
    (found,) = module.load_long_term("c1")
    assert found["user_message"] == odd
    assert found["reflection"]["causes"][1] == r"a\u0000"


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"tables": {"conversations": "missing_table"}}, "tables.conversations"),
        ({"columns_map": {"token_data": "missing_column"}}, "columns_map.token_data"),
        ({"columns_map": {"token_data": "created_at", "created_at": "token_data"}}, "columns_map.token_data"),
    ],
)
def test_a_mapping_that_does_not_fit_names_the_setting_to_change(
    make_module: MakeModule, sql_url: str, config: dict[str, Any], named: str
) -> None:
    with pytest.raises(InvalidSetting) as caught:
        make_module(sql_url, **config).persist_long_term([turn(1)])
    assert named in caught.value.field


def test_a_table_that_goes_away_is_named_too(module: MemoryModule, sql_url: str) -> None:
    module.persist_long_term([turn(1)])
    ask(sql_url, "DROP TABLE memories")
    with pytest.raises(InvalidSetting, match="memories is not there"):
        module.persist_long_term([turn(2)])
    ask(sql_url, turns_table(sql_url, "memories"))
    assert module.persist_long_term([turn(2)]) == 1


def test_many_records_go_in_at_once(module: MemoryModule, sql_url: str) -> None:
    assert module.persist_long_term([turn(number) for number in range(1_200)]) == 1_200
    assert count(sql_url) == 1_200


def test_ids_may_be_uuids_and_times_of_any_kind(make_module: MakeModule, empty_url: str) -> None:
    postgres = empty_url.startswith("postgres")
    ids = dict.fromkeys(["conversation_id", "user_id"], "uuid NOT NULL") if postgres else {}
    time = "timestamp NOT NULL" if postgres else "timestamp(6) NOT NULL"  # in the session's zone, on MySQL
    ask(empty_url, turns_table(empty_url, "conversations", created_at=time, **ids))
    module = make_module(empty_url, tables={"memories": None})
    named = {"conversation_id": "0B3f0c9e-6a53-4d2c-9a53-3e1f2d3c4b5a".lower(), "user_id": str(UUID(int=7))}
    assert [module.persist_long_term([turn(1, **named)]) for _ in range(2)] == [1, 1]
    (found,) = module.load_long_term(named["conversation_id"])
    assert (found["user_id"], found["created_at"]) == (named["user_id"], turn(1)["created_at"])
    if postgres:
        with pytest.raises(InvalidInput, match=r"conversation_id: is no UUID"):
            module.persist_long_term([turn(2)])


def test_a_time_may_be_text(make_module: MakeModule, empty_url: str) -> None:
    ask(empty_url, turns_table(empty_url, "conversations", created_at="varchar(40) NOT NULL"))
    module = make_module(empty_url, tables={"memories": None})
    assert [module.persist_long_term([turn(2), turn(1)]) for _ in range(2)] == [2, 2]
    assert [found["created_at"] for found in module.load_long_term("c1")] == [turn(n)["created_at"] for n in (1, 2)]


def test_only_what_a_table_took_is_counted(make_module: MakeModule, sql_url: str) -> None:
    module = make_module(sql_url, tables={"conversations": None})
    assert module.persist_long_term([turn(1), turn(2, reflection=None)]) == 1
    assert (count(sql_url), count(sql_url, "memories")) == (0, 1)
    assert [record["user_message"] for record in module.load_long_term("c1")] == [turn(1)["user_message"]]


@pytest.mark.parametrize("key", ["UNIQUE (conversation_id, created_at)", None], ids=["keyed", "keyless"])
def test_the_case_of_a_uuid_does_not_matter(make_module: MakeModule, empty_url: str, key: str | None) -> None:
    ids = dict.fromkeys(["conversation_id", "user_id"], "uuid NOT NULL")
    ask(empty_url, turns_table(empty_url, "conversations", key=key, **ids))
    module = make_module(empty_url, tables={"memories": None})
    upper = {"conversation_id": "0B3F0C9E-6A53-4D2C-9A53-3E1F2D3C4B5A", "user_id": str(UUID(int=0xABC)).upper()}
    lower = {name: value.lower() for name, value in upper.items()}
    plain = {"reflection": None}
    both = [turn(1, **plain, **upper), turn(1, **plain, **lower)]
    assert [module.persist_long_term(both) for _ in range(2)] == [2, 2]
    for spelling in (upper, lower):
        assert len(module.load_long_term(spelling["conversation_id"])) == 1
    assert module.load_long_term("abc") == []
    module.store_reflection(upper["conversation_id"], upper["user_id"], REFLECTION)
    module.flush_once()
    assert [record["reflection"] for record in module.load_long_term(lower["conversation_id"])] == [REFLECTION]
    assert count(empty_url) == 1
