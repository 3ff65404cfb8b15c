"""The rows of ADK's sessions: a head each, a frame for each event, and what is in flight, sealed.

Every change is a compare-and-set of the head's version, in one transaction with the rows of the event. So each number
in the order is given out once, whatever the clocks say.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from threadkeep.adapters.adk.events import packed, unpacked
from threadkeep.agent_rows.places import FLIGHT as FLIGHT  # named here for other parts
from threadkeep.agent_rows.places import FRAME, NUMBER_BYTES, adk_events, adk_head, session_row
from threadkeep.ports.agent_rows import AgentRows, Row, StoredRow, place_of
from threadkeep.ports.items import encoded_namespace
from threadkeep.scope import Scope

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Head:
    row: StoredRow
    body: Body

    @property
    def version(self) -> int:
        return self.row.version


@dataclass(frozen=True, slots=True)
class Entry:
    number: int
    kind: bytes
    value: bytes
    ttl_seconds: float | None = None


class Ledger:
    """`keep_seconds`: how long a head or a frame stays after it was last written; None where nothing is written."""

    def __init__(self, rows: AgentRows, keep_seconds: float | None = None) -> None:
        self.rows = rows
        self._keep = keep_seconds

    async def head(self, scope: Scope) -> Head | None:
        found = await self.rows.get([adk_head(scope)])
        return Head(found[0], unpacked(found[0].value)) if found else None

    async def heads(self, tenant: str, app: str, user: str | None) -> list[tuple[str, Body]]:
        """Of one user, or of all: the user each belongs to stands in its body."""
        namespace = None if user is None else encoded_namespace([user])
        rows = await self.rows.all_of([_directory(tenant, app)], namespace)
        return [(row.name.decode("utf-8", "surrogatepass"), unpacked(row.value)) for row in rows]

    async def create(self, scope: Scope, body: Body, more: Sequence[Row]) -> bool:
        return await self.rows.create(_head_row(scope, body, 1, self._keep), more)

    async def swap(
        self,
        scope: Scope,
        old: Head,
        body: Body,
        put: Sequence[Entry] = (),
        more: Sequence[Row] = (),
        deleted: Sequence[tuple[int, bytes]] = (),
    ) -> Head | None:
        """The new head; None, and nothing is changed, when another writer was first."""
        row = _head_row(scope, body, old.version + 1, self._keep)
        rows = [*(_entry_row(scope, entry, self._keep) for entry in put), *more]
        doomed = [_entry_key(scope, number, kind) for number, kind in deleted]
        if not await self.rows.swap(old.row, row, rows, doomed):
            return None
        return Head(StoredRow(row.key, row.namespace, row.name, row.value, row.facts), body)

    async def entries(
        self, scope: Scope, numbers: range | None = None, in_flight: Collection[int] = ()
    ) -> Mapping[int, dict[bytes, bytes]]:
        """Number → kind → value: all of them, or of these numbers the frames, and what else is in flight."""
        if numbers is None:
            rows = await self.rows.all_of([adk_events(scope)])
        else:
            keys = [_entry_key(scope, one, FRAME) for one in numbers]
            keys += [_entry_key(scope, one, FLIGHT) for one in in_flight if one in numbers]
            rows = await self.rows.get(keys)
        found: dict[int, dict[bytes, bytes]] = {}
        for row in rows:
            number = int.from_bytes(row.name[:NUMBER_BYTES], "big")
            found.setdefault(number, {})[row.name[NUMBER_BYTES:]] = row.value
        return found

    async def delete(self, scope: Scope) -> None:
        await self.rows.remove([adk_head(scope)], [adk_events(scope)])


def _directory(tenant: str, app: str) -> bytes:
    return Scope(tenant, "-").digest("adk sessions", app)


def _entry_key(scope: Scope, number: int, kind: bytes) -> bytes:
    return scope.digest("adk event", str(number), kind.decode())


def _head_row(scope: Scope, body: Body, version: int, keep_seconds: float | None) -> Row:
    return session_row(
        adk_head(scope), _directory(scope.tenant, body["app"]), scope, packed(body), version, keep_seconds
    )


def _entry_row(scope: Scope, entry: Entry, keep_seconds: float | None) -> Row:
    return Row(
        _entry_key(scope, entry.number, entry.kind),
        adk_events(scope),
        entry.number.to_bytes(NUMBER_BYTES, "big") + entry.kind,
        scope.tenant,
        scope.user,
        place_of(scope),
        entry.value,
        ttl_seconds=keep_seconds if entry.ttl_seconds is None else entry.ttl_seconds,
    )
