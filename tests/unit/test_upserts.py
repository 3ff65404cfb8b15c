"""One row put into the place of another, in each database's words."""

from __future__ import annotations

import re
from pathlib import Path

import threadkeep
from threadkeep.db.statements import MYSQL, POSTGRES

ROWS = [{"id": ":id0", "text": ":text0"}, {"id": ":id1", "text": ":text1"}]


def test_where_the_dialect_has_a_name_for_the_new_row_it_is_used() -> None:
    assert POSTGRES.upsert("notes", ROWS, "id", ["text"]) == (
        "INSERT INTO notes (id, text) VALUES (:id0, :text0), (:id1, :text1)"
        " ON CONFLICT (id) DO UPDATE SET text = excluded.text"
    )


def test_on_mysql_and_mariadb_the_new_rows_are_a_table_with_a_name() -> None:
    assert MYSQL.upsert("notes", ROWS, "id", ["text"]) == (
        "INSERT INTO notes (id, text) SELECT * FROM (SELECT :id0 AS id, :text0 AS text UNION ALL SELECT :id1, :text1)"
        " AS new ON DUPLICATE KEY UPDATE text = new.text"
    )


def test_no_statement_uses_what_mysql_warns_of_at_every_write() -> None:
    folder = Path(threadkeep.__file__).parent
    old_name = re.compile(r"=[^\n]*\bVALUES\([a-z{]")
    assert [path.name for path in folder.rglob("*.py") if old_name.search(path.read_text())] == []
