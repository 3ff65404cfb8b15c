"""Alembic's entry: runs on the connection that `migrate` holds. There is no other way to run it, and no ini file."""

from __future__ import annotations

from alembic import context

from threadkeep.archive.sql.migrate import VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
with context.begin_transaction():
    context.run_migrations()
