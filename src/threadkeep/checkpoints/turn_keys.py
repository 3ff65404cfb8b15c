"""Keys of turns in flight, on any of the databases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from threadkeep.checkpoints.parts import THREAD_HELD, text_of
from threadkeep.db.database import Database
from threadkeep.db.statements import Change
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.threads import Thread, escaped, ns_key, unescaped
from threadkeep.ports.turn_keys import OpenTurn, TurnKey, TurnRemains
from threadkeep.scope import Scope

_AT_ONCE = 200
_GET = "SELECT sealed, began_at FROM tk_turn_keys WHERE thread_key = :key"
_INSERT = "INSERT INTO tk_turn_keys (thread_key, sealed, began_at) VALUES (:key, :sealed, :now)"
_LATER = {  # a moment that was never used before, whatever the clock says
    "sqlite": "ON CONFLICT (thread_key) DO UPDATE SET began_at = max(excluded.began_at, tk_turn_keys.began_at + 1)",
    "postgres": (
        "ON CONFLICT (thread_key) DO UPDATE SET began_at = greatest(excluded.began_at, tk_turn_keys.began_at + 1)"
    ),
    "mysql": "ON DUPLICATE KEY UPDATE began_at = greatest(:now, began_at + 1)",
}
# On PostgreSQL a deletion that holds the thread's row, and a put that holds the key, would wait for each other.
_THREAD_FIRST = (
    "WITH thread AS MATERIALIZED (SELECT 1 FROM conversation_metadata WHERE thread_key = :key FOR NO KEY UPDATE)"
)

# A writer under a key locks it until the commit, and moves it on: a process that ends the turn sees that, or waits.
HOLD = {
    "sqlite": "UPDATE tk_turn_keys SET began_at = max(began_at + 1, :now) WHERE thread_key = :key AND sealed = :turn",
    "postgres": (
        f"{_THREAD_FIRST} UPDATE tk_turn_keys SET began_at = greatest(began_at + 1, :now)"  # noqa: S608
        f" WHERE thread_key = :key AND sealed = :turn AND {THREAD_HELD}"
    ),
    "mysql": (
        "UPDATE tk_turn_keys SET began_at = greatest(began_at + 1, :now) WHERE thread_key = :key AND sealed = :turn"
    ),
}
# For what stays of a turn: an erasure of the thread with its key, or the turn's end, comes first.
_STANDS = "SELECT 1 FROM tk_turn_keys WHERE thread_key = :key AND sealed = :turn"
STANDS = {
    "sqlite": _STANDS,
    "postgres": f"{_THREAD_FIRST} {_STANDS} AND {THREAD_HELD} FOR SHARE",
    "mysql": f"{_STANDS} LOCK IN SHARE MODE",
}


class SqlTurnKeys:
    def __init__(self, database: Database, clock: Clock = system_clock) -> None:
        self._database = database
        self._clock = clock

    async def get(self, thread: Thread) -> TurnKey | None:
        rows = await self._database.rows(_GET, {"key": thread.key})
        return TurnKey(bytes(rows[0][0]), rows[0][1]) if rows else None

    async def begin(self, thread: Thread, sealed: bytes) -> TurnKey:
        while True:
            now = int(self._clock().timestamp() * 1_000_000)
            statement = f"{_INSERT} {_LATER[self._database.dialect.name]}"
            await self._database.changed([Change(statement, {"key": thread.key, "sealed": sealed, "now": now})])
            if (found := await self.get(thread)) is not None:  # or another process has ended it in between
                return found

    async def end(self, thread: Thread, key: TurnKey, remains: TurnRemains) -> bool:
        gone = "DELETE FROM tk_turn_keys WHERE thread_key = :key AND began_at = :used_at"
        first = Change(gone, {"key": thread.key, "used_at": key.used_at})
        rest = [*self._drop_checkpoints(thread, remains.checkpoints), *self._drop_lists(thread, remains.lists)]
        rest += self._drop_writes(thread, remains.writes)
        return bool(await self._database.changed([first, *rest], only_if_first=True))

    def _drop_checkpoints(self, thread: Thread, checkpoints: Sequence[tuple[str, str]]) -> Iterator[Change]:
        for table in ("tk_checkpoint_writes", "conversation_checkpoints"):
            gone = f"DELETE FROM {table} WHERE thread_key = :key AND ns_key = :ns AND checkpoint_id = :id"  # noqa: S608
            for ns, id_ in checkpoints:
                id_bound = self._database.dialect.id(escaped(id_))
                yield Change(gone, {"key": thread.key, "ns": ns_key(ns), "id": id_bound})

    def _drop_writes(self, thread: Thread, writes: Sequence[tuple[str, str, str, int]]) -> Iterator[Change]:
        gone = (
            "DELETE FROM tk_checkpoint_writes WHERE thread_key = :key AND ns_key = :ns AND checkpoint_id = :id"
            " AND task_id = :task AND idx = :idx"
        )
        for ns, id_, task, idx in writes:
            place, whose = (self._database.dialect.id(escaped(one)) for one in (id_, task))
            yield Change(gone, {"key": thread.key, "ns": ns_key(ns), "id": place, "task": whose, "idx": idx})

    def _drop_lists(self, thread: Thread, lists: Sequence[bytes]) -> Iterator[Change]:
        for start in range(0, len(lists), _AT_ONCE):
            some, values = self._database.dialect.among("strand", lists[start : start + _AT_ONCE])
            gone = f"DELETE FROM tk_checkpoint_items WHERE thread_key = :key AND strand IN {some}"  # noqa: S608
            yield Change(gone, values | {"key": thread.key})

    async def idle(self, owner: Scope | None, before: int, limit: int) -> Sequence[OpenTurn]:
        condition, values = "", dict[str, Any]()
        if owner is not None:
            condition = " AND m.tenant = :tenant AND m.user_id = :user"
            values = {
                "tenant": self._database.dialect.id(owner.tenant),
                "user": self._database.dialect.id(owner.user),
            }
        query = (
            "SELECT m.tenant, m.user_id, m.thread_id, k.began_at FROM tk_turn_keys k"  # noqa: S608
            f" JOIN conversation_metadata m ON m.thread_key = k.thread_key WHERE k.began_at < :before{condition}"
            " ORDER BY k.began_at LIMIT :most"
        )
        rows = await self._database.rows(query, values | {"before": before, "most": limit})
        return [_open_turn(*row) for row in rows]

    async def count_idle(self, before: int) -> int:
        query = (
            "SELECT count(*) FROM tk_turn_keys k JOIN conversation_metadata m ON m.thread_key = k.thread_key"
            " WHERE k.began_at < :before"
        )
        return (await self._database.rows(query, {"before": before}))[0][0]


def _open_turn(tenant: str | bytes, user: str | bytes, thread_id: str | bytes, used_at: int) -> OpenTurn:
    return OpenTurn(Thread(Scope(text_of(tenant), text_of(user)), unescaped(text_of(thread_id))), used_at)
