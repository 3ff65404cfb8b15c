"""Tables as applications really have them: each either holds every turn, or is told apart before the first one."""

from __future__ import annotations

import pytest

from tests.mapped.conftest import MakeModule
from tests.mapped.existing import as_json, ask, count, json_type, rows, turns_table
from tests.mapped.test_table import REFLECTION, turn
from threadkeep.compat.reflection import MemoryModule
from threadkeep.errors import Conflict, InvalidInput, InvalidSetting

ONE_TABLE = {"tables": {"memories": None}}


def problems(module: MemoryModule) -> dict[str, tuple[str, bool]]:
    return {one["setting"]: (one["problem"], one["fatal"]) for one in module.health()["database"]["misfits"]}


def on_mariadb(url: str) -> bool:
    return not url.startswith("postgres")


def test_ids_of_a_fixed_width_are_read_back_as_they_were_given(make_module: MakeModule, empty_url: str) -> None:
    fixed = {"conversation_id": "char(36) NOT NULL", "user_id": "char(36) NOT NULL"}
    ask(empty_url, turns_table(empty_url, "conversations", **fixed))
    module = make_module(empty_url, **ONE_TABLE)
    for _ in range(2):  # as a worker does that was killed before it could say so
        assert module.persist_long_term([turn(1)]) == 1
    assert [(one["conversation_id"], one["user_id"]) for one in module.load_long_term("c1")] == [("c1", "u1")]


@pytest.mark.parametrize("field", ["conversation_id", "user_id"])
def test_an_id_that_a_fixed_width_would_cut_is_refused_by_name(
    make_module: MakeModule, empty_url: str, field: str
) -> None:
    ask(empty_url, turns_table(empty_url, "conversations", **{field: "char(36) NOT NULL"}))
    module = make_module(empty_url, **ONE_TABLE)
    with pytest.raises(InvalidInput, match=f"{field}.*ends with a space"):
        module.persist_long_term([turn(1, **{field: "c1 "})])
    assert module.load_long_term("c1 ") == []


@pytest.mark.parametrize("kind", ["json", "text"])
@pytest.mark.parametrize("default", ["", " DEFAULT '{}'"])
@pytest.mark.parametrize("key", ["UNIQUE (conversation_id, created_at)", None])
def test_a_reflection_that_must_be_given_is_an_empty_object(
    make_module: MakeModule, empty_url: str, kind: str, default: str, key: str | None
) -> None:
    reflection = f"{json_type(empty_url) if kind == 'json' else 'text'} NOT NULL{default}"
    ask(empty_url, turns_table(empty_url, "conversations", reflection=reflection, key=key))
    module = make_module(empty_url, **ONE_TABLE)
    assert module.persist_long_term([turn(1, reflection=None), turn(2)]) == 2
    assert [as_json(row[0]) for row in rows(empty_url, columns="reflection")] == [{}, REFLECTION]
    module.persist_long_term([turn(1), turn(2, reflection=None)])
    assert [one["reflection"] for one in module.load_long_term("c1")] == [REFLECTION, REFLECTION]


def test_a_cache_that_must_be_given_is_an_empty_object(make_module: MakeModule, empty_url: str) -> None:
    ask(empty_url, turns_table(empty_url, "conversations", text_cache=f"{json_type(empty_url)} NOT NULL"))
    module = make_module(empty_url, **ONE_TABLE, text_cache="text_cache")
    module.persist_long_term([turn(1, user_message=None, assistant_message=None)])
    assert as_json(rows(empty_url, columns="text_cache")[0][0]) == {}


def test_a_column_that_the_server_computes_is_told_with_its_setting(make_module: MakeModule, empty_url: str) -> None:
    made = "varchar(100) GENERATED ALWAYS AS (conversation_id) STORED"
    ask(empty_url, turns_table(empty_url, "conversations", cid=made))
    module = make_module(empty_url, **ONE_TABLE)
    assert problems(module)["columns_map.cid"] == ("conversations.cid is computed by the server", True)
    with pytest.raises(InvalidSetting, match=r"columns_map\.cid"):
        module.persist_long_term([turn(1)])
    assert make_module(empty_url, **ONE_TABLE, columns_map={"cid": None}).persist_long_term([turn(1)]) == 1


def test_a_view_that_takes_no_rows_is_told(make_module: MakeModule, empty_url: str) -> None:
    view = "CREATE VIEW conversations AS SELECT DISTINCT * FROM base"
    ask(empty_url, turns_table(empty_url, "base"), view)
    module = make_module(empty_url, **ONE_TABLE)
    assert problems(module)["config.json tables.conversations"] == ("conversations is a view that takes no rows", True)


def test_a_view_that_takes_rows_is_a_table_without_an_index(make_module: MakeModule, empty_url: str) -> None:
    ask(empty_url, turns_table(empty_url, "base"), "CREATE VIEW conversations AS SELECT * FROM base")
    module = make_module(empty_url, **ONE_TABLE)
    assert module.persist_long_term([turn(1), turn(1)]) == 2
    assert count(empty_url, "base") == 1


@pytest.mark.parametrize("empty_url", ["postgres"], indirect=True)  # MariaDB has no such thing
def test_a_unique_index_that_is_checked_late_is_none_to_upsert_by(make_module: MakeModule, empty_url: str) -> None:
    late = "UNIQUE (conversation_id, created_at) DEFERRABLE INITIALLY DEFERRED"
    ask(empty_url, turns_table(empty_url, "conversations", key=late))
    module = make_module(empty_url, **ONE_TABLE)
    assert [module.persist_long_term([turn(1)]) for _ in range(2)] == [1, 1]
    assert count(empty_url) == 1
    assert "no unique index" in problems(module)["config.json tables.conversations"][0]


def test_ids_that_differ_by_a_space_alone_are_never_merged(make_module: MakeModule, empty_url: str) -> None:
    bin_ = " COLLATE utf8mb4_bin" if on_mariadb(empty_url) else ""
    ask(empty_url, turns_table(empty_url, "conversations", conversation_id=f"varchar(64){bin_} NOT NULL"))
    module = make_module(empty_url, **ONE_TABLE)
    both = [turn(1), turn(1, conversation_id="c1 ")]
    if on_mariadb(empty_url):
        with pytest.raises(Conflict):
            module.persist_long_term(both)
        assert count(empty_url) == 0
    else:
        assert (module.persist_long_term(both), count(empty_url)) == (2, 2)


@pytest.mark.parametrize("other", ["C1", "c1 ", "ć1"])
def test_turns_of_a_look_alike_take_no_place_among_the_latest(
    make_module: MakeModule, empty_url: str, other: str
) -> None:
    ask(empty_url, turns_table(empty_url, "conversations"))
    module = make_module(empty_url, **ONE_TABLE)
    module.persist_long_term([turn(1), *(turn(number, conversation_id=other) for number in range(2, 6))])
    assert [one["user_message"] for one in module.load_long_term("c1", limit=2)] == ["問題 1 🙂"]


@pytest.mark.parametrize("empty_url", ["mariadb"], indirect=True)  # on PostgreSQL it is a matter of the database
@pytest.mark.parametrize("charset", ["latin1", "utf8mb3"])
def test_a_column_of_few_characters_keeps_what_it_can_and_names_what_it_cannot(
    make_module: MakeModule, empty_url: str, charset: str
) -> None:
    few = f"CHARACTER SET {charset} COLLATE {charset}_bin"
    changes = {"conversation_id": f"varchar(64) {few} NOT NULL", "reflection": f"text {few}"}
    ask(empty_url, turns_table(empty_url, "conversations", **changes))
    module = make_module(empty_url, **ONE_TABLE)
    told, fatal = problems(module)["columns_map.conversation_id"]
    assert (charset in told, fatal) == (True, False)
    thought = {"summary": "花生 🙂", "causes": ["ł"]}
    assert module.persist_long_term([turn(1, conversation_id="Zoë", reflection=thought)]) == 1
    assert module.load_long_term("Zoë")[0]["reflection"] == thought
    with pytest.raises(InvalidInput, match=f"conversation_id.*{charset}"):
        module.persist_long_term([turn(2, conversation_id="c🙂")])
    assert module.load_long_term("c🙂") == []
