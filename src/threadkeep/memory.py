"""Memory: the verbs, and the whole path on one page.

events ─► admit (policy) ─► archive (seq, one transaction) ─► sessions (window) ─► recall
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from functools import partial

from threadkeep.core import arguments
from threadkeep.core.arguments import (
    checked_budget,
    checked_cursor,
    checked_indexing,
    checked_key,
    checked_query,
    checked_scope,
    forgettable,
    is_all_masked,
    language_tag,
    one_conversation,
    positive,
    short_text,
    text_length,
)
from threadkeep.core.erasing import Erasing
from threadkeep.core.keeping import Keeping, Reflecting
from threadkeep.core.language import ConversationLanguage
from threadkeep.core.stores import HealthCheck, LastWrite
from threadkeep.core.stores import Stores as Stores  # named here for other parts
from threadkeep.errors import StoreError, StoreUnavailable
from threadkeep.events import Event
from threadkeep.identity.audit import current_trail
from threadkeep.model import (
    Admission,
    ConversationChange,
    ConversationPage,
    ErasureProof,
    Exported,
    History,
    HistoryRange,
    Indexing,
    Message,
    Recalled,
    Receipt,
    Reflection,
    ReflectionKind,
    Session,
    Stats,
    StoredReflection,
)
from threadkeep.policy.admit import DIRECTLY, MessageIds, Rules, admit
from threadkeep.policy.logs import LOG_KEEPS, OutwardLog
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.health import Health
from threadkeep.ports.index import Near
from threadkeep.ports.models import LanguageRules
from threadkeep.ports.sessions import SessionLimits
from threadkeep.ports.user_data import Part
from threadkeep.recall.context import CountTokens, most_tokens_in
from threadkeep.recall.pipeline import Pipeline, Request
from threadkeep.recall.question import Question
from threadkeep.resilience.one_call import in_one_call, sparing
from threadkeep.scope import Scope

_MOST_ON_THE_LOOP = 20_000  # characters
_LARGEST_PAGE = 1_000
_EXPORT_WAIT_SECONDS = 30.0
_INDEX_WAIT_SECONDS = 10.0  # for a queued message to reach the archive, where its vector is stored


class Memory:
    """Open one with `open_memory(url)`. Every verb may be called from many tasks at once."""

    def __init__(
        self,
        stores: Stores,
        rules: Rules,
        limits: SessionLimits,
        clock: Clock = system_clock,
        outward_log: OutwardLog | None = None,
        conversation_language: ConversationLanguage | None = None,
        count_tokens: CountTokens = most_tokens_in,
    ) -> None:
        self.scratch = stores.scratch
        self.slots = stores.slots
        self.claims = stores.claims
        self.redactor_at = rules.redactor_at
        self.ledger = stores.ledger
        self._reflecting = Reflecting(stores)
        self._erasing = Erasing(stores, self._reflecting)
        self._keeping = Keeping(stores, self._reflecting)
        self.usage = stores.usage  # of graph runs, where the archive counts them
        self.keys = stores.keys  # API keys, where the archive holds them
        self.agent_rows = stores.agent_rows
        self._stores = stores
        self._health = stores.health or HealthCheck(
            stores.archive, connections=stores.connections, may_write=stores.may_write
        )
        self._last_write = LastWrite()
        self._rules = rules
        self.limits = limits
        self.clock = clock
        self._window = HistoryRange(limit=limits.max_messages, max_chars=limits.max_chars)
        self._outward_log = outward_log
        self._conversation_language = conversation_language or ConversationLanguage(None)
        self._count_tokens = count_tokens

    @in_one_call
    async def append(
        self,
        scope: Scope,
        events: Sequence[Event],
        key: str | None = None,
        index: Indexing = "later",
        *,
        languages: Sequence[str] | None = None,
    ) -> Receipt:
        """Keep what policy admits of `events`, all or nothing, in order.

        What is `stored` is recalled at once by its words. What is `queued` is in `history` at once, and recalled by its
        words where `recall` names its conversation; `conversations`, `stats` and recall over the whole user know it
        once it was flushed (`flushed` waits for that).
        With `key` the call may be repeated safely: a replay returns the first receipt, and the same key with another
        payload raises `Conflict`. Malformed events raise `InvalidEvent` or `TooLarge` and nothing is kept.
        A conversation without a language gets it from the first message of the user that shows it, one of `languages`
        where there are any, otherwise of those that the settings name for the tenant, otherwise any.
        `index="sync"` returns once it can be recalled by its meaning too, also where it is queued first; `indexed` is
        False when that took longer than ten seconds.
        """
        now = checked_indexing(index) == "sync"
        ids = MessageIds(one_conversation(scope), checked_key(key))
        with sparing():
            language = await self._conversation_language.of(scope, self.history)
            admission = await self._admitted(events, ids, language)
            named = await self._conversation_language.named(scope, admission, self.history, languages)
        try:
            receipt = await self._stores.archive.append(scope, named.admission, key)
        except StoreError as error:
            self._last_write.failed(error)
            raise
        self._last_write.failure = None
        self._conversation_language.stored(scope, named, receipt)
        if self._outward_log and not receipt.replayed:
            self._outward_log.appended(scope, admission, receipt)
        return await self._embedded(scope, admission, receipt) if now else self._noted(receipt)

    def _noted(self, receipt: Receipt) -> Receipt:
        if self._stores.embedding is not None:
            self._stores.embedding.wake()
        return receipt

    async def _embedded(self, scope: Scope, admission: Admission, receipt: Receipt) -> Receipt:
        embedding, drafts = self._stores.embedding, [one for one in admission.drafts if one.id in receipt.kept]
        if embedding is None or (receipt.status == "queued" and not await self._reached_the_archive()):
            return replace(self._noted(receipt), indexed=False)
        return replace(self._noted(receipt), indexed=await embedding.at_once(scope, drafts))

    async def _reached_the_archive(self) -> bool:
        """A vector stands beside its message, so what is queued has to be flushed first."""
        assert self._stores.flushing is not None, "only what stands behind a journal is queued"
        try:
            await self._stores.flushing.flushed(_INDEX_WAIT_SECONDS)
        except StoreUnavailable:
            return False
        return True

    async def _admitted(self, events: Sequence[Event], ids: MessageIds, language: str | None) -> Admission:
        """Long texts are redacted in a thread: others should not wait for them."""
        trail = current_trail.get()
        through = DIRECTLY if trail is None else trail.through()
        work = partial(admit, events, self._rules, ids, self.clock(), language, through)
        return await asyncio.to_thread(work) if text_length(events) > _MOST_ON_THE_LOOP else work()

    @in_one_call
    async def history(
        self, scope: Scope, limit: int | None = None, before: int | None = None, max_chars: int | None = None
    ) -> History:
        """The newest messages in `seq` order: the session's window, or `limit` of them.

        `before` pages back: pass the `before` of the page in hand. `max_chars` ends a page of `limit` messages earlier,
        before the one with which their text would be longer; the newest is always there.
        """
        wanted = self._window
        if limit is not None:
            most = None if max_chars is None else positive("max_chars", max_chars)
            wanted = HistoryRange(limit=positive("limit", limit), max_chars=most)
        if before is not None:
            wanted = replace(wanted, before=positive("before", before))
        return await self._stores.archive.messages(one_conversation(scope), wanted)

    @in_one_call
    async def recall(
        self, scope: Scope, query: str, k: int = 10, budget: int | None = None, conversation: str | None = None
    ) -> Recalled:
        """At most `k` messages of this user that bear on `query`, of one `conversation` if named, best first.

        `budget` bounds `text` in tokens, as `TOKENIZER_NAME` counts them. `text` quotes at most `k` recalled messages:
        the hits, and where they are fewer, the messages right before and after them. A scope with a conversation still
        recalls from all of the user's; its own latest messages stand in `text` too, as far as the budget goes. Every
        hit says in `why` what it rests on.
        """
        user = checked_scope(scope).whole_user
        place = user if conversation is None else user.with_conversation(conversation)
        name = scope.conversation if conversation is None else conversation
        talk = None if name is None else user.with_conversation(name)
        question = Question(checked_query(query), asked_in=scope.conversation, asked_at=self.clock())
        most, room = positive("k", k), checked_budget(budget)
        with sparing():  # an answer by words alone is possible, so time is left for it
            sent = await self._sent(user, talk, question.text)
        stores, nearest = self._stores, self._nearest if self._stores.nearest else None
        pipeline = Pipeline(stores.index, nearest, stores.rerank, stores.queued, self._recent, self._count_tokens)
        return await pipeline.run(Request(question, sent, place, talk, most, room))

    async def _nearest(self, scope: Scope, question: str, k: int) -> Sequence[Near]:
        assert self._stores.nearest is not None
        with sparing():
            return await self._stores.nearest(scope, question, k)

    async def _sent(self, user: Scope, conversation: Scope | None, question: str) -> str:
        """As it would be kept if it were sent in the conversation: some embedders and rerankers send it to a server."""
        goes_out = self._stores.nearest is not None or self._stores.rerank is not None
        language = (
            await self._conversation_language.of(conversation, self.history) if conversation and goes_out else None
        )
        return self._rules.redactor_at(conversation or user)(question, language).text

    async def _recent(self, conversation: Scope | None) -> Sequence[Message] | None:
        """None where no store answers in time: what was recalled is an answer without it."""
        try:
            return (
                ()
                if conversation is None
                else (await self._stores.archive.messages(conversation, self._window)).messages
            )
        except StoreUnavailable:
            return None

    @in_one_call
    async def session(self, scope: Scope) -> Session | None:
        """The hot side of the conversation, None once its TTL has passed."""
        return await self._stores.sessions.read(one_conversation(scope))

    @in_one_call
    async def touch(self, scope: Scope) -> Session:
        """Open the session, or slide its TTL."""
        return await self._stores.sessions.touch(one_conversation(scope))

    def languages(self, scope: Scope) -> LanguageRules:
        """What the settings say that is spoken in this tenant."""
        return self._conversation_language.rules(checked_scope(scope))

    @in_one_call
    async def set_language(self, scope: Scope, language: str) -> None:
        """Set the language of the conversation from now on."""
        await self.may_write()
        await self._stores.sessions.set_language(one_conversation(scope), language_tag(language))
        self._conversation_language.forget(scope)

    async def conversations(self, scope: Scope, after: str | None = None, limit: int = 50) -> ConversationPage:
        """The user's conversations, latest activity first, threads and sessions of frameworks among them."""
        size = min(positive("limit", limit), _LARGEST_PAGE)
        return await self._keeping.conversations(checked_scope(scope).whole_user, checked_cursor(after), size)

    async def parts(self, scope: Scope) -> Sequence[Part]:
        """Return what frameworks keep of the conversation besides messages: its thread, its session, as JSON."""
        return await self._keeping.parts(one_conversation(scope))

    async def rename(self, scope: Scope, title: str) -> None:
        """Title a conversation; the title is redacted like any text. Raises `NotFound`."""
        await self._change(scope, ConversationChange(title=self._kept(scope, short_text("title", title))))

    async def close_conversation(self, scope: Scope) -> None:
        """Mark a conversation as ended; a new message reopens it. Raises `NotFound`."""
        await self._change(scope, ConversationChange(status="closed"))

    async def set_intent(self, scope: Scope, intent: str) -> None:
        """What the conversation is about, in a few words; redacted like any text. Raises `NotFound`."""
        await self._change(scope, ConversationChange(intent=self._kept(scope, short_text("intent", intent))))

    def redacted(self, text: str) -> str:
        """The text as it would be kept, where nothing is known of whose it is."""
        return self._rules.redactor(text).text

    def _kept(self, scope: Scope, text: str) -> str:
        return self._rules.redactor_at(checked_scope(scope))(text).text

    @in_one_call
    async def _change(self, scope: Scope, change: ConversationChange) -> None:
        await self.may_write()
        await self._stores.archive.change(one_conversation(scope), change)

    @in_one_call
    async def stats(self, scope: Scope | None = None) -> Stats:
        """Counts for a conversation, a user, or the whole store: of messages, threads, sessions and items."""
        counted = await self._keeping.stats(scope if scope is None else checked_scope(scope))
        return replace(counted, usage=await self.ledger.of(scope)) if self.ledger else counted

    async def reflect(
        self, scope: Scope, reflection: Reflection, evidence: Sequence[str], kind: ReflectionKind = "turn"
    ) -> bool:
        """Keep what a turn meant beside it, redacted; `evidence` are the ids of its messages, the answer's last.

        False when the conversation was erased concurrently. A later one replaces the one before it.
        """
        await self.may_write()
        redactor = self.redactor_at(one_conversation(scope))
        return await self._reflecting.keep(scope, reflection, evidence, self.clock(), redactor, kind)

    async def reflections(
        self, scope: Scope, kind: ReflectionKind = "turn", limit: int = 50
    ) -> Sequence[StoredReflection]:
        """Newest first; of the conversation, or of the whole user."""
        return await self._reflecting.of(checked_scope(scope), kind, positive("limit", limit))

    async def erase(self, scope: Scope, message_id: str | None = None) -> ErasureProof:
        """Forget a message, a conversation or a whole user, everywhere; nothing in flight can bring it back.

        Safe to repeat. `complete` is False when a store could not remove what it found: call again. Raises
        `HotStoreMismatch`, with nothing erased, where the archive has another Redis or mode than this process.
        """
        await self.may_write()
        if message_id is not None:
            proof = await self._erasing.message(one_conversation(scope), arguments.message_id(message_id))
            return self._noting_the_log(proof)
        self._conversation_language.forget(checked_scope(scope))
        return self._noting_the_log(await self._erasing.everything(scope))

    def _noting_the_log(self, proof: ErasureProof) -> ErasureProof:
        """The outward log is the operator's own: the receipt says that it still has what it was given."""
        return replace(proof, notes=(*proof.notes, LOG_KEEPS)) if self._outward_log else proof

    async def may_write(self) -> None:
        """Raise `HotStoreMismatch` where the archive has another Redis or another mode than this process."""
        if self._stores.may_write is not None:
            await self._stores.may_write()

    async def forget(self, scope: Scope, text: str) -> ErasureProof:
        """Erase every message of the conversation or the user that says `text`, wherever it stands in the message.

        Compared as kept, word by word: case, spaces, punctuation, invisible characters and look-alike letters make no
        difference, and a number right after it makes it another value. From then on it is refused from models,
        operators and imports, and kept only when the user says it again. Safe to repeat, as `erase` is.
        """
        given = forgettable(text)
        kept = self._kept(scope, given)
        phrases = [given] if kept == given or is_all_masked(kept) else [given, kept]
        return self._noting_the_log(await self._erasing.text(scope, phrases))

    async def export(self, scope: Scope | None = None) -> AsyncIterator[Exported]:
        """Every conversation of the scope (or of the store), whole, in the order of ids, with its thread and session;
        then items and state that are the user's and belong to no conversation.

        What is queued is waited for. Raises `StoreUnavailable` when it does not reach the archive: an export that lacks
        something does not begin. What was given up on (`threadkeep dlq`) is not in it.
        """
        if self._stores.flushing is not None:
            await self._stores.flushing.flushed(_EXPORT_WAIT_SECONDS)
        async for record in self._keeping.records(scope if scope is None else checked_scope(scope)):
            yield record

    async def flushed(self, timeout: float = 30) -> None:  # noqa: ASYNC109
        """Return once all that is queued now has reached the archive and, where this process embeds, the index.

        Raises `StoreUnavailable` when that takes longer than `timeout` seconds.
        """
        ends = asyncio.get_running_loop().time() + timeout
        if self._stores.flushing is not None:
            await self._stores.flushing.flushed(timeout)
        if self._stores.embedding is not None:
            await self._stores.embedding.flushed(max(0.0, ends - asyncio.get_running_loop().time()))

    async def health(self) -> Health:
        """Return whether a turn can be stored now, which stores answer, and what an operator should mend.

        Nothing is written. A store that is unavailable is reported, not raised.
        """
        return self._last_write.seen_in(await self._health())

    async def close(self) -> None:
        """Finish what was accepted and close the stores. Closing twice is allowed."""
        if self._stores.embedding is not None:
            await self._stores.embedding.close()
        if self._stores.flushing is not None:
            await self._stores.flushing.close()
        await self._stores.sessions.close()
        await self._stores.archive.close()
