"""Memory: the verbs, and the whole path on one page.

events ─► admit (policy) ─► archive (seq, one transaction) ─► sessions (window) ─► recall
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from threadkeep.errors import InvalidInput
from threadkeep.events import Event
from threadkeep.model import (
    ConversationChange,
    ConversationPage,
    Erased,
    ErasureProof,
    History,
    HistoryRange,
    Recalled,
    Receipt,
    Session,
    Stats,
)
from threadkeep.policy.admit import Rules, admit
from threadkeep.policy.fields import checked_id, checked_language, checked_text
from threadkeep.policy.ids import MessageIds
from threadkeep.policy.outward import OutwardLog
from threadkeep.ports.archive import Archive
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.index import LexicalIndex
from threadkeep.ports.scratch import Scratch
from threadkeep.ports.sessions import SessionLimits, Sessions
from threadkeep.recall.normalise import terms_of
from threadkeep.recall.rank import ranked
from threadkeep.recall.render import fenced, within_budget
from threadkeep.record import ConversationRecord
from threadkeep.scope import MAX_PART_LENGTH, Scope

_MOST_CANDIDATES = 500
_MOST_TERMS = 512
_LONGEST_QUERY = 100_000
_LONGEST_TITLE_BYTES = 1_024
_LARGEST_PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Stores:
    archive: Archive
    sessions: Sessions
    scratch: Scratch
    index: LexicalIndex


class Memory:
    """Open one with `open_memory(url)`. Every verb may be called from many tasks at once."""

    def __init__(
        self,
        stores: Stores,
        rules: Rules,
        limits: SessionLimits,
        clock: Clock = system_clock,
        outward_log: OutwardLog | None = None,
    ) -> None:
        self.scratch = stores.scratch
        self._stores = stores
        self._rules = rules
        self._window = HistoryRange(limit=limits.max_messages, max_chars=limits.max_chars)
        self._clock = clock
        self._outward_log = outward_log

    async def append(self, scope: Scope, events: Sequence[Event], key: str | None = None) -> Receipt:
        """Keep what policy admits of `events`, all or nothing, in order, recallable at once.

        With `key` the call may be repeated safely: a replay returns the first receipt, and the same key with another
        payload raises `Conflict`. Malformed events raise `InvalidEvent` or `TooLarge` and nothing is kept.
        """
        scope.require_conversation()
        _check_key(key)
        admission = admit(events, self._rules, MessageIds(scope, key), self._clock())
        receipt = await self._stores.archive.append(scope, admission, key)
        if self._outward_log and not receipt.replayed:
            self._outward_log.appended(scope, admission, receipt)
        return receipt

    async def history(self, scope: Scope, limit: int | None = None, before: int | None = None) -> History:
        """The newest messages in `seq` order: the session's window, or as many as `limit` asks for.

        `before` pages back: pass the `before` of the page in hand.
        """
        wanted = self._window if limit is None else HistoryRange(limit=_positive("limit", limit))
        if before is not None:
            wanted = replace(wanted, before=_positive("before", before))
        return await self._stores.archive.messages(scope, wanted)

    async def recall(
        self, scope: Scope, query: str, k: int = 10, budget: int | None = None, conversation: str | None = None
    ) -> Recalled:
        """At most `k` messages of this user that bear on `query`, of one `conversation` if named, best first.

        `budget` caps `text` in tokens. A scope with a conversation still recalls from all of the user's.
        """
        _check_query(query)
        place = scope.whole_user if conversation is None else scope.with_conversation(conversation)
        _check_budget(budget)
        terms = list(dict.fromkeys(terms_of(query)))[:_MOST_TERMS]
        candidates = await self._stores.index.candidates(place, terms, _MOST_CANDIDATES)
        hits = within_budget(ranked(terms, candidates, _positive("k", k)), budget)
        return Recalled(hits, fenced(hits))

    async def session(self, scope: Scope) -> Session | None:
        """The hot side of the conversation, None once its TTL has passed."""
        return await self._stores.sessions.read(scope)

    async def touch(self, scope: Scope) -> Session:
        """Open the session, or slide its TTL."""
        return await self._stores.sessions.touch(scope)

    async def set_language(self, scope: Scope, language: str) -> None:
        """The language the talk is held in from now on."""
        tag = checked_language("language", language)
        if tag is None:
            raise InvalidInput("language", "is missing", "use BCP 47, such as vi, pl-PL or zh-Hant")
        await self._stores.sessions.set_language(scope, tag)

    async def conversations(self, scope: Scope, after: str | None = None, limit: int = 50) -> ConversationPage:
        """The user's conversations, latest activity first."""
        _check_cursor(after)
        return await self._stores.archive.conversations(scope, after, min(_positive("limit", limit), _LARGEST_PAGE))

    async def rename(self, scope: Scope, title: str) -> None:
        """Title a conversation; the title is redacted like any text. Raises `NotFound`."""
        text = _required_text("title", title)
        await self._change(scope, ConversationChange(title=self.redacted(text)))

    async def close_conversation(self, scope: Scope) -> None:
        """Mark a conversation as ended; a new message reopens it. Raises `NotFound`."""
        await self._change(scope, ConversationChange(status="closed"))

    async def set_intent(self, scope: Scope, intent: str) -> None:
        """What the conversation is about, in a few words; redacted like any text. Raises `NotFound`."""
        text = _required_text("intent", intent)
        await self._change(scope, ConversationChange(intent=self.redacted(text)))

    def redacted(self, text: str) -> str:
        """The text as it would be kept."""
        return self._rules.redactor(text).text

    async def _change(self, scope: Scope, change: ConversationChange) -> None:
        scope.require_conversation()
        await self._stores.archive.change(scope, change)

    async def stats(self, scope: Scope | None = None) -> Stats:
        """Counts for a scope, or for the whole store."""
        return await self._stores.archive.stats(scope)

    async def erase(self, scope: Scope, message_id: str | None = None) -> ErasureProof:
        """Forget a message, a conversation or a whole user, everywhere; nothing in flight can bring it back.

        Safe to repeat. `complete` is False when a store could not remove what it found: call again.
        """
        if message_id is not None:
            scope.require_conversation()
            return await self._stores.archive.erase(scope, checked_id(message_id))
        sessions = await self._stores.sessions.erase(scope)
        scratch = await self._stores.scratch.erase(scope)
        proof = await self._stores.archive.erase(scope)
        return replace(proof, stores={**proof.stores, "sessions": sessions, "scratch": Erased(scratch, scratch)})

    async def export(self, scope: Scope | None = None) -> AsyncIterator[ConversationRecord]:
        """Every conversation of the scope (or of the store), whole, in the order of ids."""
        async for record in self._stores.archive.records(scope):
            yield record

    async def flushed(self, timeout: float = 30) -> None:  # noqa: ASYNC109
        """Return once nothing is waiting to reach the archive or the index. Embedded stores never wait."""

    async def close(self) -> None:
        """Finish what was accepted and let go of the stores. Closing twice is allowed."""
        await self._stores.sessions.close()
        await self._stores.archive.close()


def _check_key(key: Any) -> None:
    if key is not None and (not isinstance(key, str) or not 0 < len(key) <= MAX_PART_LENGTH):
        raise InvalidInput("key", "is not an idempotency key", f"use a string of 1 to {MAX_PART_LENGTH} characters")


def _check_query(query: Any) -> None:
    if not isinstance(query, str):
        raise InvalidInput("query", f"is a {type(query).__name__}", "give a string")
    if len(query) > _LONGEST_QUERY:
        raise InvalidInput("query", f"has {len(query):,} characters", f"the limit is {_LONGEST_QUERY:,}")


def _check_cursor(after: Any) -> None:
    if after is not None and not isinstance(after, str):
        raise InvalidInput("after", f"is a {type(after).__name__}", "pass the `after` of the page before")


def _check_budget(budget: Any) -> None:
    """Nought is an answer too: there was no room left."""
    if budget is not None and (type(budget) is not int or budget < 0):
        raise InvalidInput("budget", "is not a number of tokens", "give 0 or more, or leave it out")


def _required_text(field: str, value: Any) -> str:
    if value is None:
        raise InvalidInput(field, "is missing", "give a string")
    return checked_text(field, value, _LONGEST_TITLE_BYTES)


def _positive(field: str, value: Any) -> int:
    if type(value) is not int or value < 1:
        raise InvalidInput(field, "is not a positive whole number", "give 1 or more")
    return value
