"""How often each word stands in a message, how long messages are, and which version of the normaliser made the words.

Every statement may meet its own result, as in the first migration. Messages from before keep the words they have, each
counted once, until `threadkeep index rebuild` makes them anew.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import inspect

revision = "0004"
down_revision = "0003"

_COLUMNS = {
    "postgresql": {"tk_conversations": {"terms": "BIGINT NOT NULL DEFAULT 0"}},
    "mysql": {
        "tk_conversations": {"terms": "BIGINT NOT NULL DEFAULT 0"},
        "tk_messages": {"words": "LONGBLOB"},
        "tk_words": {"times": "INT NOT NULL DEFAULT 1", "length": "INT NOT NULL DEFAULT 0"},
    },
}
_TERMS = {
    "postgresql": (
        "UPDATE tk_conversations SET terms = counted.terms FROM (SELECT cid, sum(cardinality(words)) AS terms"
        " FROM tk_messages GROUP BY cid) AS counted WHERE counted.cid = tk_conversations.cid AND"
        " counted.terms IS NOT NULL"
    ),
    "mysql": (
        "UPDATE tk_conversations JOIN (SELECT cid, count(*) AS terms FROM tk_words GROUP BY cid) AS counted"
        " ON counted.cid = tk_conversations.cid SET tk_conversations.terms = counted.terms"
    ),
}
_INDEXES = {
    "postgresql": (
        "CREATE TABLE IF NOT EXISTS tk_indexes (name TEXT PRIMARY KEY, version BIGINT NOT NULL,"
        " reached BIGINT NOT NULL DEFAULT 0)"
    ),
    "mysql": (
        "CREATE TABLE IF NOT EXISTS tk_indexes (name VARCHAR(32) NOT NULL PRIMARY KEY, version BIGINT NOT NULL,"
        " reached BIGINT NOT NULL DEFAULT 0) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
    ),
}
_OLD = (
    "INSERT INTO tk_indexes (name, version) SELECT 'terms', 0 WHERE EXISTS (SELECT 1 FROM tk_messages)"
    " AND NOT EXISTS (SELECT 1 FROM tk_indexes)"
)


def upgrade() -> None:
    connection = op.get_bind()
    server = "postgresql" if connection.dialect.name == "postgresql" else "mysql"
    for table, columns in _COLUMNS[server].items():
        there = {column["name"] for column in inspect(connection).get_columns(table)}
        for name, kind in columns.items():
            if name not in there:
                op.execute(f"ALTER TABLE {table} ADD COLUMN {name} {kind}")
    op.execute(_TERMS[server])
    op.execute(_INDEXES[server])
    op.execute(_OLD if server == "postgresql" else _OLD.replace(" WHERE ", " FROM dual WHERE ", 1))
