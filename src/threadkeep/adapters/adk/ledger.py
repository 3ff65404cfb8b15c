"""The rows of ADK's sessions: a head each, a frame for each event, and what is in flight, sealed.

Every change is a compare-and-set of the head's version, in one transaction with the rows of the event. So each number
in the order is given out once, whatever the clocks say.

A turn begins with what a user says and ends with an agent's last word. Its key stands in the session's head and is
destroyed with the turn. While a long-running call waits for its answer, all of its turn stays, so it can be resumed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.adk.errors import StaleSessionError
from google.adk.events.event import Event

from threadkeep.adapters.adk.events import answered_calls, packed, unpacked
from threadkeep.adapters.sealing import Seal, TurnKey
from threadkeep.ports.agent_rows import AgentRows, Row, StoredRow, encoded_namespace, place_of
from threadkeep.rows.agent_sessions import FLIGHT as FLIGHT  # named here for other parts
from threadkeep.rows.agent_sessions import FRAME, NUMBER_BYTES, adk_events, adk_head, session_row
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


STALE = "The session has been modified in storage since it was loaded; load it again with get_session."
BUSY = "The session is being modified in storage by another invocation; load it again once that has ended."


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """How long work in flight may rest, a call may wait for its answer, and a silent writer keeps others out.

    `not_persisted` are prefixes of state that is scratch: it lives for minutes and is never in the database, beside
    `tool.temp.`, `retrieval.cache.` and `features.`, which always are.
    """

    in_flight_seconds: float = 30 * 60
    long_running_seconds: float = 7 * 24 * 60 * 60
    lease_seconds: float = 60
    not_persisted: tuple[str, ...] = ()


class Turns:
    """The part of a head's body that is about turns; changes the body it is given."""

    def __init__(self, body: Body, now: float, limits: TurnLimits, seal: Seal) -> None:
        self._body = body
        self._now = now
        self._limits = limits
        self._seal = seal
        self._turns: dict[str, dict[str, Any]] = body.setdefault("turns", {})

    def check(self, writer: str) -> None:
        """Raises `StaleSessionError` while another writer's turn is under way."""
        lease = self._body.get("lease")
        if lease and lease["by"] != writer and lease["until"] > self._now:
            raise StaleSessionError(BUSY)

    def holds(self, writer: str) -> bool:
        """For long enough to write."""
        lease = self._body.get("lease")
        return bool(lease) and lease["by"] == writer and lease["until"] > self._now + self._limits.lease_seconds / 2

    def take(self, writer: str) -> None:
        self._body["lease"] = {"by": writer, "until": self._now + self._limits.lease_seconds}

    def release(self) -> None:
        self._body.pop("lease", None)

    def begun(self, invocation: str) -> list[tuple[int, bytes]]:
        """What a turn that never ended has left behind goes when the next one begins."""
        doomed = [name for name, turn in self._turns.items() if name != invocation and not turn["open"]]
        expired = [name for name, turn in self._turns.items() if turn["until"] <= self._now]
        return [] if invocation in self._turns and not expired else self._dropped({*doomed, *expired})

    def ended(self) -> list[tuple[int, bytes]]:
        return self._dropped({name for name, turn in self._turns.items() if not turn["open"]})

    def key(self, invocation: str, bound_to: bytes) -> TurnKey:
        turn = self._turns.get(invocation)
        found = None if turn is None else self._seal.opened(turn["key"], bound_to)
        if found is not None:
            return found
        key = self._seal.new()
        sealed = self._seal.at_rest(key, bound_to)
        self._turns[invocation] = {"key": sealed, "rows": [], "open": [], "until": 0.0}
        return key

    def keys(self, bound_to: bytes) -> dict[int, TurnKey]:
        """Number of an event in flight → the key it is under, where this process can open it."""
        opened = [(turn, self._seal.opened(turn["key"], bound_to)) for turn in self._turns.values()]
        return {number: key for turn, key in opened if key is not None for number in turn["rows"]}

    def rests(self, event: Event, number: int) -> float:
        """Note that it is in flight; for how many seconds it may be."""
        turn = self._turns[event.invocation_id]
        turn["rows"].append(number)
        turn["open"] = sorted({*turn["open"], *(event.long_running_tool_ids or ())})
        seconds = self._limits.long_running_seconds if turn["open"] else self._limits.in_flight_seconds
        turn["until"] = max(turn["until"], self._now + seconds)
        return seconds

    def rows_of(self, invocation: str) -> list[int]:
        return list(self._turns[invocation]["rows"]) if invocation in self._turns else []

    def answered(self, event: Event) -> None:
        for turn in self._turns.values():
            turn["open"] = sorted({*turn["open"]} - answered_calls(event))

    def _dropped(self, names: set[str]) -> list[tuple[int, bytes]]:
        return [(number, FLIGHT) for name in names for number in self._turns.pop(name)["rows"]]
