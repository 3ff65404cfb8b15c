"""Turns of one session: who may write now, and what rests encrypted until its turn ends.

A turn begins with what a user says and ends with an agent's last word. Its key stands in the session's head and is
destroyed with the turn. While a long-running call waits for its answer, all of its turn stays, so it can be resumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from google.adk.errors import StaleSessionError
from google.adk.events.event import Event

from threadkeep.adapters.adk.events import answered_calls
from threadkeep.adapters.adk.ledger import FLIGHT, Body
from threadkeep.adapters.sealing import Seal, TurnKey

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
