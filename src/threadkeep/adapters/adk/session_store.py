"""ADK's sessions as they are stored: `Reader` joins the ledger's events with the archive's texts, `Writer` adds one.

What is said goes into the archive first, under the lease of its invocation, and only then does the event get its
number: so `seq` and numbers agree, and an event whose text is refused has left nothing behind.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cachetools import LRUCache
from google.adk.errors import StaleSessionError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.session import Session
from pydantic import PrivateAttr

from threadkeep.adapters.adk import events
from threadkeep.adapters.adk.events import Kept
from threadkeep.adapters.adk.ledger import FLIGHT, FRAME, STALE, Body, Entry, Head, Ledger, TurnLimits, Turns
from threadkeep.adapters.adk.state import APP, USER, Delta, app_space, delta_of, scratch_name, state_rows, user_space
from threadkeep.adapters.sealing import Seal
from threadkeep.compose.memory import AgentStores, admission_rules
from threadkeep.errors import ScopeErased, StoreUnavailable
from threadkeep.model import Message
from threadkeep.ports.agent_rows import place_of
from threadkeep.scope import Scope
from threadkeep.settings import load_settings

_PAGE = 500
_FOREIGN = 200  # messages of other writers that are searched for those of events without a noted `seq`
Entries = Mapping[int, dict[bytes, bytes]]


class Reader:
    def __init__(self, stores: AgentStores, seal: Seal, limits: TurnLimits) -> None:
        self._stores = stores
        self._ledger = Ledger(stores.rows, stores.keep_seconds)
        self._seal = seal
        self._limits = limits

    async def session(self, scope: Scope, app: str, config: GetSessionConfig | None = None) -> Session | None:
        head = await self._ledger.head(scope)
        if head is None or head.body["app"] != app:
            return None
        recent = None if config is None else config.num_recent_events
        reading = self._all(scope, head) if recent is None else self._recent(scope, head, recent)
        found, shared = await asyncio.gather(reading, self.shared_state(scope.tenant, app, scope.user))
        if config is not None and config.after_timestamp is not None:
            found = [event for event in found if event.timestamp >= config.after_timestamp]
        return built(scope, head, head.body["state"] | await self._scratch(scope, head) | shared, found)

    async def shared_state(self, tenant: str, app: str, user: str) -> dict[str, Any]:
        """What the app and the user have, under the names a session sees."""
        spaces = ((APP, app_space(tenant, app)), (USER, user_space(tenant, user, app)))
        found = await asyncio.gather(*(self._stores.rows.all_of([space]) for _, space in spaces))
        return {
            prefix + row.name.decode("utf-8", "surrogatepass"): events.unpacked(row.value)
            for (prefix, _), rows in zip(spaces, found, strict=True)
            for row in rows
        }

    async def _scratch(self, scope: Scope, head: Head) -> dict[str, Any]:
        names: list[str] = head.body.get("scratch", [])
        values = {name: await self._stores.memory.scratch.get(scope, scratch_name(name)) for name in names}
        return {name: value for name, value in values.items() if value is not None}

    async def _all(self, scope: Scope, head: Head) -> list[Event]:
        return (await self._events(scope, head, await self._ledger.entries(scope)))[0]

    async def _recent(self, scope: Scope, head: Head, wanted: int) -> list[Event]:
        """From the newest back, a stretch at a time: numbers of a turn's traffic are empty once it has ended."""
        found: list[Event] = []
        last: int = head.body["n"]
        before: int | None = None
        in_flight = self._turns(head).keys(place_of(scope))
        while len(found) < wanted and last > 0:
            first = max(1, last - 2 * (wanted - len(found)) + 1)
            entries = await self._ledger.entries(scope, range(first, last + 1), in_flight)
            older, before = await self._events(scope, head, entries, before)
            found[:0] = older
            last = first - 1
        return found[-wanted:] if wanted else []

    async def _events(
        self, scope: Scope, head: Head, entries: Entries, before: int | None = None
    ) -> tuple[list[Event], int | None]:
        """The events, and the `seq` from which the text of events before these is searched, as `before` for these."""
        frames = {number: events.unpacked(kinds[FRAME]) for number, kinds in entries.items() if FRAME in kinds}
        seqs = {frame["message"]: frame.get("seq") for frame in frames.values() if "message" in frame}
        texts, before = await self._texts(scope, seqs, before)
        keys = self._turns(head).keys(place_of(scope))
        found: list[Event] = []
        for number in sorted(entries):
            frame = frames.get(number)
            text = None if frame is None else texts.get(frame.get("message", ""))
            if frame is not None and "message" in frame and text is None:
                continue  # it was erased
            sealed = entries[number].get(FLIGHT)
            key = keys.get(number)
            plain = None if sealed is None or key is None else key.opened(sealed, number.to_bytes(8, "big"))
            if plain is not None:
                found.append(events.with_words(plain, text, frame))
            elif frame is not None:
                found.append(events.rebuilt(frame, text))
        return found, before

    async def _texts(
        self, scope: Scope, seqs: Mapping[str, int | None], before: int | None
    ) -> tuple[dict[str, str], int | None]:
        """The texts, searched back from `before` until all are found, and how far back that was. `seqs` are ids and the
        `seq` of each where it was noted. Erased messages are not searched through the whole conversation."""
        found: dict[str, Message] = {}
        missing, seen, after = {*seqs}, 0, before
        while missing and (seen <= len(seqs) + _FOREIGN or _lies_before(after, [seqs[id_] for id_ in missing])):
            most = _PAGE if seen else min(_PAGE, len(missing) + 1)
            page = await self._stores.memory.history(scope, most, after)
            found |= {one.id: one for one in page.messages if one.id in missing}
            missing -= found.keys()
            seen, after = seen + len(page.messages), _past_others(page.before, [seqs[id_] for id_ in missing])
            if after is None or not page.messages:
                break
        oldest = min((one.seq for one in found.values()), default=before)
        return {id_: one.content for id_, one in found.items()}, oldest

    def _turns(self, head: Head) -> Turns:
        return Turns(head.body, self._stores.clock().timestamp(), self._limits, self._seal)


def _lies_before(after: int | None, seqs: Sequence[int | None]) -> bool:
    """Whether any of them is still to come on the way back."""
    return after is not None and any(seq is not None and seq < after for seq in seqs)


def _past_others(after: int | None, seqs: Sequence[int | None]) -> int | None:
    """Right behind the newest of them, where each `seq` is known: later messages of others are not read."""
    known = [seq for seq in seqs if seq is not None]
    return after if after is None or not known or len(known) < len(seqs) else min(after, max(known) + 1)


class StoredSession(Session):
    """A session that was read from the store, with the version of its head; copies of it keep that."""

    _version: int | None = PrivateAttr(default=None)

    @property
    def version(self) -> int | None:
        return self._version

    def note_version(self, version: int) -> None:
        self._version = version


def built(scope: Scope, head: Head, state: dict[str, Any], found: list[Event]) -> Session:
    session = StoredSession(
        id=scope.require_conversation(),
        app_name=head.body["app"],
        user_id=scope.user,
        state=state,
        events=found,
        last_update_time=head.body["updated"],
    )
    session.note_version(head.version)
    return session


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


Masked = Callable[[str], str]


async def masked_at(stores: AgentStores, scope: Scope) -> Masked:
    """With the operator's rules, for the tenant and the conversation's current language."""
    redactor = stores.memory.redactor_at(scope)
    try:
        language = (await stores.memory.history(scope, 1)).language or None
    except StoreUnavailable:  # as an append does then
        language = None
    return lambda text: redactor(text, language).text


def masked_anywhere() -> Masked:
    """With the operator's rules, where nothing else is known of whose it is."""
    redactor = admission_rules(load_settings()).redactor
    return lambda text: redactor(text).text
