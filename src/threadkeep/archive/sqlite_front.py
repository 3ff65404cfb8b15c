"""The archive's record of its hot store, in a SQLite file."""

from __future__ import annotations

import sqlite3

from threadkeep.ports.fronts import Front


def front(connection: sqlite3.Connection) -> Front | None:
    row = connection.execute("SELECT id, durability, address, missed FROM tk_front").fetchone()
    return None if row is None else Front(*row)


def attach(connection: sqlite3.Connection, front_: Front) -> Front:
    connection.execute(
        "INSERT INTO tk_front (slot, id, durability, address) VALUES (1, ?, ?, ?) ON CONFLICT DO NOTHING",
        (front_.id, front_.durability, front_.address),
    )
    return front(connection) or front_


def note_missed(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE tk_front SET missed = missed + 1")


def detach(connection: sqlite3.Connection, id: str | None) -> bool:
    return connection.execute("DELETE FROM tk_front WHERE id = coalesce(?, id)", (id,)).rowcount > 0
