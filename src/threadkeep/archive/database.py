"""The archive on a database: what SQLite and the servers have in common, which is all but their upkeep."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from copy import copy
from functools import partial
from typing import Self, TypeVar

from threadkeep.archive.append import append, last_seq, looked_up
from threadkeep.archive.erase import erase, forget
from threadkeep.archive.front import attach, check_writer, detach, front, note_missed, seed
from threadkeep.archive.place import leave_gap, place
from threadkeep.archive.read import (
    change_conversation,
    counts,
    list_conversations,
    named_conversations,
    read_messages,
    read_record,
    scopes_within,
)
from threadkeep.db.database import Database
from threadkeep.db.messages import Span, moment
from threadkeep.db.statements import Verb
from threadkeep.model import (
    Admission,
    Conversation,
    ConversationChange,
    ConversationPage,
    ConversationRecord,
    ErasureProof,
    History,
    HistoryRange,
    Receipt,
    Stats,
)
from threadkeep.ports.archive import Entry, Placed, Spot
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.health import HealthFinding
from threadkeep.ports.sessions import Claim, Front, Seed, SessionLimits
from threadkeep.scope import Scope
from threadkeep.wording import NO_KEY, ErasedTexts

T = TypeVar("T")
TermsOf = Callable[[str], str]  # a text's normalised terms, repeats and all, separated by spaces
_SHORT_WINDOW = 50  # messages that are read in no time
_A_ROW = 200  # characters that storing a message takes the time of, besides its own
_ERASE_SECONDS = 600.0  # a user may have a great many messages


class DatabaseArchive(ABC):
    """Sessions share the database: one transaction stores a message, its index entry and the session's new TTL."""

    def __init__(
        self,
        database: Database,
        terms_of: TermsOf,
        limits: SessionLimits | None = None,
        clock: Clock = system_clock,
        erased_texts: ErasedTexts = NO_KEY,
    ) -> None:
        self._database = database
        self._erased_texts = erased_texts
        self._terms_of = terms_of
        self._session_ttl = int((limits or SessionLimits()).ttl_seconds * 1_000_000)
        self._clock = clock
        self.claim = Claim()

    @property
    def database(self) -> Database:
        return self._database

    def on(self, database: Database) -> Self:
        """Return the same archive with its verbs run by `database`, which wraps its own."""
        other = copy(self)
        other._database = database
        return other

    async def append(self, scope: Scope, admission: Admission, key: str | None = None) -> Receipt:
        scope.require_conversation()
        words = [self._words(scope, draft.content) for draft in admission.drafts]
        span, claim, erased, dialect = self._span(), self.claim, self._erased_texts, self._database.dialect
        return await self._database.write(
            lambda: append(scope, admission, words, key, span, claim, erased, dialect),
            size=sum(_A_ROW + len(draft.content) for draft in admission.drafts),
        )

    async def place(self, entries: Sequence[Entry]) -> Sequence[Placed]:
        """See `ports.placing`. One transaction for the whole batch."""
        words = [[self._words(entry.scope, message.content) for message in entry.messages] for entry in entries]
        return await self._database.write(lambda: self._place(entries, words))

    def _place(self, entries: Sequence[Entry], words: Sequence[Sequence[Sequence[int]]]) -> Verb[list[Placed]]:
        return place(entries, words, self._session_ttl, self.claim, self._erased_texts, self._database.dialect)

    async def seed(self, scope: Scope, ids: Sequence[str] = (), key: str | None = None) -> Seed:
        return await self._database.read(lambda: seed(scope, ids, key, self._database.dialect))

    async def last_seq(self, scope: Scope) -> int:
        return await self._database.read(lambda: last_seq(scope, self._database.dialect))

    async def leave_gap(self, scope: Scope, size: int) -> int:
        scope.require_conversation()
        span = self._span()
        return await self._write(lambda: leave_gap(scope, size, span, self._database.dialect))

    async def messages(self, scope: Scope, wanted: HistoryRange) -> History:
        scope.require_conversation()
        short = wanted.limit is not None and wanted.limit <= _SHORT_WINDOW
        return await self._database.read(lambda: read_messages(scope, wanted, self._database.dialect), short=short)

    async def conversations(self, scope: Scope, after: str | None, limit: int) -> ConversationPage:
        return await self._database.read(lambda: list_conversations(scope, after, limit, self._database.dialect))

    async def named(self, scope: Scope, names: Sequence[str]) -> Sequence[Conversation]:
        if not names:
            return []
        return await self._database.read(lambda: named_conversations(scope, names, self._database.dialect))

    async def change(self, scope: Scope, change: ConversationChange) -> None:
        scope.require_conversation()
        await self._write(lambda: change_conversation(scope, change, self._database.dialect))

    async def erase(self, scope: Scope, message_id: str | None = None) -> ErasureProof:
        return await self._cleaned(await self._erased(scope, message_id))

    async def _erased(self, scope: Scope, message_id: str | None) -> ErasureProof:
        return await self._write(
            lambda: erase(scope, message_id, self._erased_texts, self._database.dialect), seconds=_ERASE_SECONDS
        )

    async def forget(
        self, scope: Scope, messages: Sequence[Spot], texts: Sequence[str] = (), phrases: Sequence[str] = ()
    ) -> ErasureProof:
        proof = await self._write(
            lambda: forget(scope, messages, self._erased_texts, texts, phrases, self._database.dialect),
            seconds=_ERASE_SECONDS,
        )
        return proof if phrases else await self._cleaned(proof)

    @abstractmethod
    async def _cleaned(self, proof: ErasureProof) -> ErasureProof:
        """Remove, or report, what deleted rows leave behind. The rows are deleted by now, so raise nothing."""

    async def erased_among(self, scope: Scope, texts: Sequence[str]) -> Sequence[bool]:
        return await self._database.read(
            lambda: looked_up(self._erased_texts.erased(scope, texts), self._database.dialect)
        )

    async def _write(self, verb: Callable[[], Verb[T]], *, seconds: float | None = None) -> T:
        """In the same transaction: a hot store that another process attaches is seen by the next write."""

        def checked() -> Verb[T]:
            yield from check_writer(self.claim)
            return (yield from verb())

        return await self._database.write(checked, seconds=seconds)

    @property
    @abstractmethod
    def is_ready(self) -> bool: ...

    @property
    @abstractmethod
    def address(self) -> str: ...

    @abstractmethod
    async def write_obstacle(self) -> HealthFinding | None: ...

    async def front(self) -> Front | None:
        return await self._database.read(front)

    async def attach(self, front: Front) -> Front:
        return await self._database.write(lambda: attach(front, self._database.dialect))

    async def note_missed(self) -> None:
        await self._database.write(note_missed)

    async def detach(self, id: str | None = None) -> bool:
        return await self._database.write(partial(detach, id))

    async def may_write(self) -> None:
        """Raise `HotStoreMismatch` where an append or erase would."""
        self.claim.check_writer(await self.front())

    async def stats(self, scope: Scope | None) -> Stats:
        return await self._database.read(lambda: counts(scope, self._database.dialect))

    async def records(self, scope: Scope | None) -> AsyncIterator[ConversationRecord]:
        for names in await self._database.read(lambda: scopes_within(scope, self._database.dialect)):
            record = await self._database.read(lambda names=names: read_record(names, self._database.dialect))
            if record is not None:  # erased since we listed it
                yield record

    async def close(self) -> None:
        await self._database.close()

    def _span(self) -> Span:
        return Span(moment(self._clock()), self._session_ttl)

    def _words(self, scope: Scope, content: str) -> Sequence[int]:
        """What a server's index finds the message by. SQLite indexes messages later, a batch at a time."""
        return ()
