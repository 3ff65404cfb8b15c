"""Rows that the tables' own rules refuse: the others are stored, and what is refused is parked with its reason."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from tests.contract.sql_statements import as_user
from tests.mapped.conftest import MakeModule
from tests.mapped.existing import ask, count, rows, six_tables, turns_table
from tests.unit.cli.conftest import Command, threadkeep
from threadkeep.compat.reflection import MemoryModule
from threadkeep.errors import RowRefused, StoreReadOnly

__all__ = ["threadkeep"]  # the fixture
REFLECTION = {"summary": "met", "causes": []}
ONLY_POSTGRES = pytest.mark.parametrize("empty_url", ["postgres"], indirect=True)
SECRET = "my hovercraft is full of eels"


@dataclass(frozen=True, slots=True)
class Limited:
    """A database as its administrator reaches it, and as a role that may do no more than it was granted."""

    admin: str
    url: str
    role: str

    @property
    def postgres(self) -> bool:
        return self.admin.startswith("postgres")

    def grant(self, what: str, table: str) -> None:
        ask(self.admin, f"GRANT {what} ON {table} TO {self.role}")

    def revoke(self, what: str, table: str) -> None:
        ask(self.admin, f"REVOKE {what} ON {table} FROM {self.role}")


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("threadkeep.journal.consumer.RETRY_SECONDS", (0.01, 0.01, 0.01))


@pytest.fixture
def limited(empty_url: str) -> Iterator[Limited]:
    """With every right that storing needs on both tables."""
    ask(empty_url, *six_tables(empty_url))
    name = f"{urlsplit(empty_url).path.removeprefix('/')}_role"
    postgres = empty_url.startswith("postgres")
    role = name if postgres else f"{name}@'127.0.0.1'"
    ask(
        empty_url,
        f"CREATE ROLE {role} LOGIN PASSWORD 'weak'" if postgres else f"CREATE USER {role} IDENTIFIED BY 'weak'",
    )
    found = Limited(empty_url, as_user(empty_url, name, "weak"), role)
    for table in ("conversations", "memories"):
        found.grant("SELECT, INSERT, UPDATE", table)
    yield found
    ask(empty_url, *([f"DROP OWNED BY {role}", f"DROP ROLE {role}"] if postgres else [f"DROP USER {role}"]))


def store(module: MemoryModule, *users: str, reflection: dict[str, object] | None = None) -> None:
    for user in users:
        module.store_conversation(f"c-{user}", user, SECRET, "ok", reflection)


@ONLY_POSTGRES
def test_a_row_that_a_policy_refuses_is_parked_and_the_others_are_stored(
    make_module: MakeModule, limited: Limited
) -> None:
    ask(
        limited.admin,
        "ALTER TABLE conversations ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY readable ON conversations FOR SELECT USING (true)",
        "CREATE POLICY changed ON conversations FOR UPDATE USING (true)",
        "CREATE POLICY kept ON conversations FOR INSERT WITH CHECK (user_id <> 'u3')",
    )
    module = make_module(limited.url)
    store(module, "u1", "u2", "u3", "u4", "u5")
    assert module.flush_once() == 4
    assert [row[0] for row in rows(limited.admin, columns="user_id")] == ["u1", "u2", "u4", "u5"]
    (parked,) = module.parked()
    assert "conversations" in parked["reason"]
    assert "42501" in parked["reason"]
    assert "row-level security" in parked["reason"]
    assert SECRET not in parked["reason"]
    ask(limited.admin, "ALTER POLICY kept ON conversations WITH CHECK (true)")
    assert (module.replay_parked(), module.flush_once()) == (1, 1)
    assert (count(limited.admin), module.parked()) == (5, [])


def test_a_grant_that_one_table_lacks_keeps_no_row_from_the_other(make_module: MakeModule, limited: Limited) -> None:
    limited.revoke("INSERT", "memories")
    module = make_module(limited.url)
    store(module, "u1", "u2", "u3")
    store(module, "u4", "u5", reflection=REFLECTION)
    assert module.flush_once() == 3
    assert (count(limited.admin), count(limited.admin, "memories")) == (5, 0)
    reasons = [parked["reason"] for parked in module.parked()]
    code = "42501" if limited.postgres else "1142"
    assert [(code in reason, "memories" in reason) for reason in reasons] == [(True, True)] * 2
    limited.grant("INSERT", "memories")
    assert (module.replay_parked(), module.flush_once()) == (2, 2)
    assert (count(limited.admin), count(limited.admin, "memories")) == (5, 2)


def test_a_table_that_the_user_may_not_even_see_keeps_no_row_from_the_other(
    make_module: MakeModule, limited: Limited
) -> None:
    limited.revoke("SELECT, INSERT, UPDATE", "memories")
    module = make_module(limited.url)
    store(module, "u1", reflection=REFLECTION)
    store(module, "u2")
    assert module.flush_once() == 1
    assert (count(limited.admin), count(limited.admin, "memories")) == (2, 0)
    assert ["memories" in parked["reason"] for parked in module.parked()] == [True]


def test_a_right_that_one_column_lacks_is_parked_by_the_columns_name(make_module: MakeModule, limited: Limited) -> None:
    names = "conversation_id, user_id, user_message, assistant_message, reflection, cid, created_at"
    limited.revoke("INSERT", "conversations")
    limited.grant(f"INSERT ({names})", "conversations")
    module = make_module(limited.url)
    store(module, "u1")
    assert module.flush_once() == 0
    (parked,) = module.parked()
    assert "conversations.token_data" in parked["reason"]


@pytest.mark.parametrize(
    ("changes", "codes", "named"),
    [
        ({"user_id": "varchar(255) NOT NULL CHECK (user_id <> 'u2')"}, ("23514", "4025"), "conversations"),
        ({"FOREIGN": "KEY (user_id) REFERENCES known (id)"}, ("23503", "1452"), "conversations.user_id"),
        ({"size": "smallint GENERATED ALWAYS AS (length(user_id) * 20000) STORED"}, ("22003", "1264"), "conversations"),
    ],
    ids=["check", "foreign key", "overflow"],
)
def test_what_a_constraint_refuses_is_parked_with_table_column_and_code(
    make_module: MakeModule, empty_url: str, changes: dict[str, str], codes: tuple[str, str], named: str
) -> None:
    ask(empty_url, "CREATE TABLE known (id varchar(255) PRIMARY KEY)", "INSERT INTO known VALUES ('u'), ('v')")
    ask(empty_url, turns_table(empty_url, "conversations", **changes))
    module = make_module(empty_url, tables={"memories": None})
    store(module, "u", "u2", "v")
    assert (module.flush_once(), count(empty_url)) == (2, 2)
    (parked,) = module.parked()
    assert codes[0 if empty_url.startswith("postgres") else 1] in parked["reason"]
    assert named in parked["reason"]
    assert SECRET not in parked["reason"]


def test_what_a_trigger_refuses_is_parked_and_its_words_are_not_repeated(
    make_module: MakeModule, limited: Limited
) -> None:
    if limited.postgres:
        ask(
            limited.admin,
            "CREATE FUNCTION no_u2() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.user_id = 'u2' THEN"
            " RAISE EXCEPTION 'not % of %', NEW.user_id, NEW.conversation_id; END IF; RETURN NEW; END $$",
            "CREATE TRIGGER no_u2 BEFORE INSERT ON conversations FOR EACH ROW EXECUTE FUNCTION no_u2()",
        )
    else:
        ask(
            limited.admin,
            "CREATE TRIGGER no_u2 BEFORE INSERT ON conversations FOR EACH ROW IF NEW.user_id = 'u2' THEN"
            " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not c-u2'; END IF",
        )
    module = make_module(limited.url)
    store(module, "u1", "u2", "u3")
    assert module.flush_once() == 2
    (parked,) = module.parked()
    assert ("P0001" if limited.postgres else "1644") in parked["reason"]
    assert "c-u2" not in parked["reason"]


@ONLY_POSTGRES
def test_a_server_that_is_read_only_is_an_outage_and_parks_nothing(make_module: MakeModule, limited: Limited) -> None:
    ask(limited.admin, f"ALTER ROLE {limited.role} SET default_transaction_read_only = on")
    module = make_module(limited.url)
    store(module, "u1", "u2")
    with pytest.raises(StoreReadOnly):
        module.flush_once()
    assert module.parked() == []


def test_without_redis_a_refused_turn_is_raised_with_table_and_code(
    limited: Limited, caplog: pytest.LogCaptureFixture
) -> None:
    limited.revoke("INSERT", "memories")
    module = MemoryModule(None, "redis://127.0.0.1:1/0", limited.url)
    try:
        with caplog.at_level(logging.WARNING), pytest.raises(RowRefused, match="memories") as caught:
            store(module, "u1", reflection=REFLECTION)
    finally:
        module.close()
    assert (caught.value.table, caught.value.server_code) == ("memories", "42501" if limited.postgres else 1142)
    assert count(limited.admin) == 1  # what passes goes through
    assert SECRET not in caplog.text


def test_storing_records_by_hand_is_still_all_or_none(make_module: MakeModule, limited: Limited) -> None:
    limited.revoke("INSERT", "memories")
    module = make_module(limited.url)
    record = {"conversation_id": "c1", "user_id": "u1", "user_message": "hi", "reflection": REFLECTION}
    with pytest.raises(RowRefused, match="memories"):
        module.persist_long_term([record])
    assert count(limited.admin) == 0


def test_health_and_doctor_name_the_right_that_is_missing(
    make_module: MakeModule, limited: Limited, threadkeep: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited.revoke("INSERT", "memories")
    module = make_module(limited.url)
    health = module.health()
    assert health["database"]["status"] == "failed"
    (told,) = [one for one in health["database"]["misfits"] if one["fatal"]]
    assert ("memories" in told["problem"], "INSERT" in told["problem"], "GRANT" in told["fix"]) == (True, True, True)
    monkeypatch.setenv("MEMORY_TABLE_MAP", '{"conversations": "conversations"}')
    ended = threadkeep("doctor", "--url", limited.url, "--json")
    assert (ended.code, ended.json["mapped"]["ok"]) == (1, False)
    assert any("INSERT" in line and "memories" in line for line in ended.json["warnings"])
