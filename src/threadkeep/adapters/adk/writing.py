"""One event on its way into a session.

What is said goes into the archive first, under the lease of its invocation, and only then does the event get its
number: so `seq` and numbers agree, and an event whose text is refused has left nothing behind.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from cachetools import LRUCache
from google.adk.errors import StaleSessionError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event

from threadkeep.adapters.adk import events
from threadkeep.adapters.adk.events import Kept
from threadkeep.adapters.adk.ledger import FLIGHT, FRAME, Body, Entry, Head, Ledger
from threadkeep.adapters.adk.state import Delta, delta_of, scratch_name, state_rows
from threadkeep.adapters.adk.turns import STALE, TurnLimits, Turns
from threadkeep.adapters.sealing import Seal
from threadkeep.compose.adapters import AgentStores
from threadkeep.errors import ScopeErased
from threadkeep.ports.agent_rows import place_of
from threadkeep.scope import Scope

_log = logging.getLogger("threadkeep.memory")
_MOST_REMEMBERED = 1_000
_SAME_MOMENT = 0.001  # seconds


@dataclass(frozen=True, slots=True)
class Known:
    """What the caller's session object knows of itself."""

    scope: Scope
    app: str
    version: int | None
    last_update_time: float


class Heads:
    """Heads of sessions whose lease this process holds: no other process can have changed them since."""

    def __init__(self) -> None:
        self._known: LRUCache[Scope, Head] = LRUCache(_MOST_REMEMBERED)

    def get(self, scope: Scope) -> Head | None:
        return self._known.get(scope)

    def keep(self, scope: Scope, head: Head) -> None:
        self._known[scope] = head

    def forget(self, scope: Scope) -> None:
        self._known.pop(scope, None)


class Writer:
    def __init__(self, stores: AgentStores, seal: Seal, limits: TurnLimits, heads: Heads) -> None:
        self._stores = stores
        self._ledger = Ledger(stores.rows, stores.keep_seconds)
        self._seal = seal
        self._limits = limits
        self._heads = heads

    async def append(self, known: Known, event: Event, *, held: bool) -> Head:
        """`held`: the turn continues after an agent's last event, until its holder ends it."""
        head = await self._current(known, event)
        turns = self._turns(head.body)
        writer = event.invocation_id or event.id
        turns.check(writer)
        speaks = events.has_content(event)
        ours = events.said_in(event)
        if medium := events.unsummarised(event):
            _log.warning("%s was not kept: it came without a media_summary in the run's custom_metadata", medium)
        message = events.message_in(ours)
        if speaks and not turns.holds(writer):
            head = await self._leased(known.scope, head, writer)
        kept = None
        if message is not None and (seq := await self._said(known.scope, head, ours)) is not None:
            kept = Kept(str(message.id), seq)
        return await self._placed(known, head, event, kept, ends=not held and events.ends_turn(event))

    async def end_turn(self, known: Known, invocation: str) -> Head | None:
        """Nothing of it is in flight any more but what waits for an answer; others may write.

        The head, where the caller's session knows all that it stands for.
        """
        head = await self._ledger.head(known.scope)
        lease = None if head is None else head.body.get("lease")
        if head is None or (lease and lease["by"] != invocation):
            return None
        body = copy.deepcopy(head.body)
        turns = self._turns(body)
        turns.release()
        deleted = turns.ended()
        self._heads.forget(known.scope)
        ended = await self._ledger.swap(known.scope, head, body, deleted=deleted) if lease or deleted else head
        return ended if known.version == head.version else None

    async def _current(self, known: Known, event: Event) -> Head:
        """The head that the caller's session was read from. Raises `SessionNotFoundError` and `StaleSessionError`."""
        head = self._heads.get(known.scope)
        held = head is not None and self._turns(head.body).holds(event.invocation_id or event.id)
        if head is None or not held or known.version != head.version:
            head = await self._ledger.head(known.scope)
        if head is None or head.body["app"] != known.app:
            raise SessionNotFoundError(f"Session {known.scope.conversation} not found.")
        if known.version is None:
            stale = abs(head.body["updated"] - known.last_update_time) > _SAME_MOMENT
        else:
            stale = known.version != head.version
        if stale:
            raise StaleSessionError(STALE)
        return head

    async def _leased(self, scope: Scope, head: Head, writer: str) -> Head:
        body = copy.deepcopy(head.body)
        self._turns(body).take(writer)
        return await self._swapped(scope, head, body)

    async def _said(self, scope: Scope, head: Head, ours: Sequence[events.OurEvent]) -> int | None:
        """Where it was put; None where policy did not keep it. The same event again is not stored twice."""
        try:
            receipt = await self._stores.memory.append(scope.at(head.body["generation"]), [*ours])
        except ScopeErased:
            raise SessionNotFoundError(f"Session {scope.conversation} not found.") from None
        return receipt.seq if receipt.kept else None

    async def _placed(self, known: Known, head: Head, event: Event, message: Kept | None, *, ends: bool) -> Head:
        body = copy.deepcopy(head.body)
        turns = self._turns(body)
        deleted = turns.begun(event.invocation_id) if events.has_content(event) else []
        delta = delta_of(event.actions.state_delta, self._stores.memory.redacted, self._limits.not_persisted)
        body |= {"n": body["n"] + 1, "updated": event.timestamp, "state": body["state"] | delta.session}
        if delta.scratch:
            body["scratch"] = sorted({*body.get("scratch", ()), *delta.scratch})
        put = await self._entries(known.scope, body, turns, event, (message, delta), ends=ends)
        turns.answered(event)
        if ends:
            deleted += turns.ended()
        if ends or event.long_running_tool_ids or not event.invocation_id:
            turns.release()
        elif events.has_content(event):
            turns.take(event.invocation_id)
        more = state_rows(known.scope, known.app, delta, events.packed, self._stores.keep_seconds)
        placed = await self._swapped(known.scope, head, body, put, more, deleted)
        for name, (value, seconds) in delta.scratch.items():
            await self._stores.memory.scratch.put(known.scope, scratch_name(name), value, seconds)
        self._heads.keep(known.scope, placed)
        return placed

    async def _entries(
        self, scope: Scope, body: Body, turns: Turns, event: Event, kept: tuple[Kept | None, Delta], *, ends: bool
    ) -> list[Entry]:
        """Its frame, unless it is nothing but traffic; and while the turn is in flight, what the frame cannot hold."""
        message, delta = kept
        number: int = body["n"]
        frame = events.frame_of(event, message, delta.kept, self._stores.memory.redacted)
        put: list[Entry] = []
        if not events.is_only_traffic(event) or delta.kept:
            put.append(Entry(number, FRAME, events.packed(frame)))
        if ends or events.is_whole(frame, events.text_of(event) if message else None, event, delta.kept):
            return put
        key = turns.key(event.invocation_id, place_of(scope))
        earlier = turns.rows_of(event.invocation_id)
        seconds = turns.rests(event, number)
        sealed = key.sealed(events.without_words(event, delta.kept), number.to_bytes(8, "big"))
        put.append(Entry(number, FLIGHT, sealed, seconds))
        if event.long_running_tool_ids and earlier:  # all of a turn that waits stays as long as its call
            found = await self._ledger.entries(scope, range(earlier[0], earlier[-1] + 1), earlier)
            put += [Entry(one, FLIGHT, found[one][FLIGHT], seconds) for one in earlier if FLIGHT in found.get(one, {})]
        return put

    async def _swapped(self, scope: Scope, head: Head, body: Body, *changes: Sequence[object]) -> Head:
        new = await self._ledger.swap(scope, head, body, *changes)  # type: ignore[arg-type]
        if new is None:
            self._heads.forget(scope)
            raise StaleSessionError(STALE)
        return new

    def _turns(self, body: Body) -> Turns:
        return Turns(body, self._stores.clock().timestamp(), self._limits, self._seal)
