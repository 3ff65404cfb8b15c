"""A session as ADK wants it: events by their numbers, each with the words that the archive has for it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from google.adk.events.event import Event
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.session import Session
from pydantic import PrivateAttr

from threadkeep.adapters.adk import events
from threadkeep.adapters.adk.ledger import FLIGHT, FRAME, Head, Ledger
from threadkeep.adapters.adk.state import APP, USER, app_space, scratch_name, user_space
from threadkeep.adapters.adk.turns import TurnLimits, Turns
from threadkeep.adapters.sealing import Seal
from threadkeep.compose.adapters import AgentStores
from threadkeep.model import Message
from threadkeep.ports.agent_rows import place_of
from threadkeep.scope import Scope

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
