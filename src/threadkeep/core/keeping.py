"""Everything that is kept of a user: reflections, and one list, one count and one export of all that any owner has.

A reflection is redacted, stands with its evidence, and is never of what was erased while it was made. The owners are
those that an erasure covers, so what is listed is erased, and what can be erased was listed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from threadkeep.core.stores import Stores
from threadkeep.errors import CapabilityMissing, InvalidInput, InvalidScope, ScopeErased, StoreUnavailable
from threadkeep.model import (
    Conversation,
    ConversationPage,
    ConversationRecord,
    Erased,
    Exported,
    History,
    HistoryRange,
    Reflection,
    ReflectionKind,
    Stats,
    StoredReflection,
)
from threadkeep.ports.archive import Archive
from threadkeep.ports.redactor import Redactor
from threadkeep.ports.user_data import Counts, Keeper, Part, Place, Reflections
from threadkeep.scope import Scope

_ALL = 1_000_000
_NEWEST = 5


class Reflecting:
    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    async def keep(
        self,
        scope: Scope,
        reflection: Reflection,
        evidence: Sequence[str],
        at: datetime,
        redactor: Redactor,
        kind: ReflectionKind = "turn",
    ) -> bool:
        """False when what it was made of is erased, or when it repeats what the user has erased.

        The latest turn, where others read it, is updated too."""
        if not evidence:
            raise InvalidInput("evidence", "is empty", "name the messages it was made from")
        kept, before = self._kept(), await self._generation(scope)
        masked = Reflection(
            redactor(reflection.summary).text, tuple(redactor(cause).text for cause in reflection.causes)
        )
        stored = StoredReflection(masked, tuple(evidence), at, kind)
        if any(await self._stores.archive.erased_among(scope, [masked.summary, *masked.causes])):
            return False
        if not await kept.put(scope, stored):
            return False
        now = await self._generation(scope)
        # Generations only rise: a lower one is that of a store that has not heard of the last erase.
        if now > before or (scope.generation is not None and scope.generation < max(before, now)):
            await kept.erase(scope)
            return False
        await self._update_latest(scope, stored)
        return True

    async def of(self, scope: Scope, kind: ReflectionKind = "turn", limit: int = 50) -> Sequence[StoredReflection]:
        return await self._kept().of(scope, kind, limit)

    async def recorded(self, record: ConversationRecord) -> ConversationRecord:
        """With all that was thought of the conversation."""
        if self._stores.reflections is None:
            return record
        place = Scope(record.tenant, record.user, record.conversation)
        turns = await self._stores.reflections.of(place, "turn", _ALL)
        rolling = await self._stores.reflections.of(place, "rolling", _ALL)
        session = await self._stores.reflections.of(place, "session", _ALL)
        return replace(record, reflections=(*reversed(turns), *rolling, *session))

    async def erase(self, scope: Scope, message_id: str | None = None) -> Erased:
        """With a user's reflections goes what is counted of the user."""
        if self._stores.reflections is None:
            return Erased()
        try:
            if message_id is not None:
                await self._blank_latest(scope, message_id)
            removed = await self._stores.reflections.erase(scope, message_id)
            if self._stores.ledger is not None and message_id is None:
                lines = await self._stores.ledger.erase(scope)
                removed = Erased(removed.found + lines.found, removed.removed + lines.removed)
        except StoreUnavailable:
            return Erased(found=1, failed=1)
        return removed

    def _kept(self) -> Reflections:
        if self._stores.reflections is None:
            raise CapabilityMissing("these stores keep no reflections")
        return self._stores.reflections

    async def _generation(self, scope: Scope) -> int:
        history: History = await self._stores.archive.messages(scope, HistoryRange(limit=1))
        return history.scope.generation or 0

    async def _blank_latest(self, scope: Scope, message_id: str) -> None:
        """The latest turn shows one of the newest reflections, under the last message that it was made from."""
        if self._stores.latest is not None:
            for stored in await self._kept().of(scope, "turn", _NEWEST):
                if message_id in stored.evidence:
                    await self._update_latest(scope, replace(stored, reflection=Reflection("")))

    async def _update_latest(self, scope: Scope, stored: StoredReflection) -> None:
        """It expires by itself: a hot store that is unavailable is not waited for."""
        if self._stores.latest is not None and stored.kind == "turn":
            with suppress(StoreUnavailable, ScopeErased):
                await self._stores.latest.set_latest_reflection(scope, stored.evidence[-1], stored.reflection)


_BETWEEN = "_"  # the parts of a cursor, one for each owner
_PARTS_AT_ONCE = 20
Listing = Callable[[str | None, int], Awaitable[Sequence[Conversation]]]
Naming = Callable[[Sequence[str]], Awaitable[Sequence[Conversation]]]


class Keeping:
    def __init__(self, stores: Stores, reflecting: Reflecting) -> None:
        self._stores = stores
        self._reflecting = reflecting
        self._keepers: Sequence[Keeper] = tuple(stores.keepers.values())

    async def conversations(self, user: Scope, after: str | None, limit: int) -> ConversationPage:
        """Latest activity first, each id once: where it was active last. A few queries for each owner."""
        owners = self._owners(user, after)
        found: list[Conversation] = []
        cursors: list[str] = []  # where each of their lists continues
        while len(found) <= limit:
            wanted = limit + 1 - len(found)
            for owner in owners:
                await owner.fill(wanted)
            taken = _latest(owners, wanted)
            if not taken:
                break
            same = await _in_all(owners, taken)
            for one in taken:
                if one.owner is max(same[one.name], key=lambda other: other.rank).owner:
                    found.append(_joined([other.listed for other in same[one.name]]))
                    cursors.append(one.cursor)
        return ConversationPage(tuple(found[:limit]), cursors[limit - 1] if len(found) > limit else None)

    async def stats(self, scope: Scope | None) -> Stats:
        counted = await self._stores.archive.stats(scope)
        for keeper in self._keepers:
            counted = _with(counted, await keeper.counted(scope))
        if scope is None:
            return counted
        anything = counted.conversations or counted.threads.count or counted.sessions or counted.items
        return replace(counted, users=int(bool(anything)))

    async def records(self, scope: Scope | None) -> AsyncIterator[Exported]:
        """Conversations in the order of ids, whichever owner has them; then what belongs to no conversation."""
        others = _Others(self._keepers)
        await others.look(scope)
        async for record in self._stores.archive.records(scope):
            key = record.tenant, record.user, record.conversation
            while (before := others.next_before(key)) is not None:
                if (alone := await others.alone(before)) is not None:
                    yield alone
            parts = await others.parts(key)
            yield _completed(await self._reflecting.recorded(record), parts)
        while (rest := others.next_before(None)) is not None:
            if (alone := await others.alone(rest)) is not None:
                yield alone
        for keeper in self._keepers:
            async for value in keeper.records(scope):
                yield value

    async def parts(self, scope: Scope) -> Sequence[Part]:
        key = scope.tenant, scope.user, scope.require_conversation()
        return [part for keeper in self._keepers for part in (await keeper.parts([key])).values()]

    def _owners(self, user: Scope, after: str | None) -> list[_Owner]:
        archive = self._stores.archive

        async def page(after: str | None, limit: int) -> Sequence[Conversation]:
            return (await archive.conversations(user, after, limit)).items

        def listing(keeper: Keeper) -> Listing:
            return lambda after, limit: keeper.conversations(user, after, limit)

        def naming(keeper: Archive | Keeper) -> Naming:
            return lambda names: keeper.named(user, names)

        owners = [_Owner(0, page, naming(archive))]
        owners += [_Owner(-n, listing(keeper), naming(keeper)) for n, keeper in enumerate(self._keepers, 1)]
        if after is not None:
            cursors = after.split(_BETWEEN)
            if len(cursors) != len(owners):
                raise InvalidInput("after", "is not a cursor", "pass the `after` of the page before")
            for owner, cursor in zip(owners, cursors, strict=True):
                owner.begin(cursor)
        return owners


@dataclass(slots=True)
class _Owner:
    """One owner's list on its way into the one of all. Of two that were active at the same time the one with the higher
    `order` has the conversation."""

    order: int
    list_: Listing
    named: Naming
    taken: str = ""  # up to where
    _fetched: str = ""
    _waiting: list[Conversation] = field(default_factory=list[Conversation])
    _done: bool = False

    def begin(self, cursor: str) -> None:
        self.taken = self._fetched = cursor

    async def fill(self, wanted: int) -> None:
        missing = wanted - len(self._waiting)
        if missing > 0 and not self._done:
            some = await self.list_(self._fetched or None, missing)
            self._done = len(some) < missing
            self._waiting += some
            self._fetched = some[-1].cursor if some else self._fetched

    @property
    def latest(self) -> Conversation | None:
        return self._waiting[0] if self._waiting else None

    def take(self) -> Conversation:
        one = self._waiting.pop(0)
        self.taken = one.cursor
        return one


@dataclass(frozen=True, slots=True)
class _Taken:
    owner: _Owner
    listed: Conversation
    cursor: str = ""  # where all the owners' lists continue

    @property
    def name(self) -> str:
        return self.listed.conversation

    @property
    def rank(self) -> tuple[datetime, int]:
        return self.listed.last_activity_at, self.owner.order


def _latest(owners: Sequence[_Owner], most: int) -> list[_Taken]:
    taken: list[_Taken] = []
    while len(taken) < most:
        first = max(
            (_Taken(owner, owner.latest) for owner in owners if owner.latest is not None),
            key=lambda one: one.rank,
            default=None,
        )
        if first is None:
            break
        first.owner.take()
        taken.append(replace(first, cursor=_BETWEEN.join(owner.taken for owner in owners)))
    return taken


async def _in_all(owners: Sequence[_Owner], taken: Sequence[_Taken]) -> Mapping[str, list[_Taken]]:
    """Each of these conversations as every owner has it that has it, in the owners' order."""
    found: dict[str, list[_Taken]] = {one.name: [] for one in taken}
    for owner in owners:
        own = {one.name: one for one in taken if one.owner is owner}
        others = [name for name in found if name not in own and _may_be_shared(name)]
        if others:
            own |= {one.conversation: _Taken(owner, one) for one in await owner.named(others)}
        for name, one in own.items():
            found[name].append(one)
    return found


def _may_be_shared(name: str) -> bool:
    """A thread's id may be any text; only what a scope may name can be elsewhere, too."""
    try:
        Scope(user="-", conversation=name)
    except InvalidScope:
        return False
    return True


def _joined(same: Sequence[Conversation]) -> Conversation:
    """Of one conversation: the archive's, if it has it; and what the others know of it."""
    return replace(
        same[0],
        kind=next((one.kind for one in same if one.kind != "conversation"), "conversation"),
        queries=next((one.queries for one in same if one.queries is not None), None),
        started_at=min(one.started_at for one in same),
        last_activity_at=max(one.last_activity_at for one in same),
    )


class _Others:
    """What others than the archive have, in the order of ids, a few conversations at a time."""

    def __init__(self, keepers: Sequence[Keeper]) -> None:
        self._keepers = keepers
        self._having: dict[Place, list[Keeper]] = {}
        self._order: list[Place] = []
        self._next = 0
        self._loaded: dict[Place, list[Part]] = {}

    async def look(self, scope: Scope | None) -> None:
        for keeper in self._keepers:
            for key in await keeper.places(scope):
                self._having.setdefault(key, []).append(keeper)
        self._order = sorted(self._having)

    def next_before(self, key: Place | None) -> Place | None:
        """The next one that stands before this one."""
        if self._next == len(self._order):
            return None
        following = self._order[self._next]
        return following if key is None or following < key else None

    async def parts(self, key: Place) -> Sequence[Part]:
        """Of one that is the next, or that no other owner has."""
        if key not in self._having:
            return ()
        if key not in self._loaded:
            await self._load(self._order[self._next : self._next + _PARTS_AT_ONCE])
        self._next += 1
        return self._loaded[key]

    async def alone(self, key: Place) -> ConversationRecord | None:
        """As a record of its own; None where it was erased concurrently."""
        parts = await self.parts(key)
        if not parts:
            return None
        times = min(part.started_at for part in parts), max(part.ended_at for part in parts)
        return _completed(ConversationRecord(*key, (), *times), parts)

    async def _load(self, keys: Sequence[Place]) -> None:
        self._loaded = {key: [] for key in keys}
        for keeper in self._keepers:
            found = await keeper.parts([key for key in keys if keeper in self._having[key]])
            for key, part in found.items():
                self._loaded[key].append(part)


def _completed(record: ConversationRecord, parts: Sequence[Part]) -> ConversationRecord:
    if not parts:
        return record
    return replace(record, kind=parts[0].kind, parts={part.name: part.value for part in parts})


def _with(stats: Stats, counts: Counts) -> Stats:
    firsts = [moment for moment in (stats.first_at, counts.first_at) if moment is not None]
    lasts = [moment for moment in (stats.last_at, counts.last_at) if moment is not None]
    return replace(
        stats,
        users=stats.users + counts.users,
        threads=counts.threads if counts.threads.count else stats.threads,
        sessions=stats.sessions + counts.sessions,
        items=stats.items + counts.items,
        first_at=min(firsts, default=None),
        last_at=max(lasts, default=None),
    )
