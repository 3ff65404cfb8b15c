"""The hot store: one script, one round trip for each verb; and the id of the archive behind it, in every partition."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, TypeVar, cast

from threadkeep.errors import Conflict, HotStoreMismatch, ScopeErased, StoreError, StoreUnavailable
from threadkeep.model import Admission, Erased, Message, Receipt, Reflection
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.sessions import AskArchive, Durability, Fronting, Hot, Seed
from threadkeep.resilience.one_call import one_call
from threadkeep.scope import DEFAULT_TENANT, DEFAULT_USER, Scope
from threadkeep.sessions.redis import scripts
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.sessions.redis.encoding import (
    NO_ANSWERS,
    Absorbed,
    Answers,
    HotOptions,
    absorbed,
    append_arguments,
    hot_of,
    read_receipt,
    reflection_arguments,
    refresh_arguments,
    restate_arguments,
    to_json,
    tombstone,
)
from threadkeep.sessions.redis.scripts import Argument, Keys, name_in_keys
from threadkeep.wording import LookUp

AWAY = Seed(last_seq=-1)  # given to a script when the archive does not answer


@dataclass(slots=True)
class Question:
    """About one append."""

    ask: AskArchive
    scope: Scope
    admission: Admission
    key: str | None
    away: StoreUnavailable | None = None

    async def __call__(self, must: bool) -> Seed:
        """What the archive says; raises `ArchiveKnows` when that decides it."""
        try:
            ids = () if self.admission.new_ids else [draft.id for draft in self.admission.drafts]
            seed = await self.ask(self.scope, ids, self.key)
        except StoreUnavailable as error:
            self.away = error
            return AWAY if must else Seed()  # the worker will find out what it knows
        check_against(seed, self.admission)
        return seed


class ArchiveKnows(Exception):
    """Not an error: the receipt to answer with, or what is left to append without the messages that were erased."""

    def __init__(self, receipt: Receipt | None, rest: Admission) -> None:
        super().__init__()
        self.receipt = receipt
        self.rest = rest


def check_against(seed: Seed, admission: Admission) -> None:
    """Raises `ArchiveKnows`, `Conflict` and `ScopeErased`, as an archive would by itself."""
    if seed.key_erased:
        raise ScopeErased(_KEY_ERASED)
    if seed.receipt is not None:
        if seed.payload != admission.digest:
            raise Conflict(_KEY_REUSED)
        raise ArchiveKnows(replace(seed.receipt, replayed=True), admission)
    erased = {index for index, draft in enumerate(admission.drafts) if draft.id in seed.erased}
    if erased:
        rest = without(admission, erased)
        nothing = not rest.drafts and not seed.last_seq  # not even the empty conversation comes back
        raise ArchiveKnows(
            Receipt("queued", 0, (), rest.refused, rest.stripped, rest.redacted) if nothing else None, rest
        )


def without(admission: Admission, erased: set[int]) -> Admission:
    """Messages that were erased one by one are not kept again; the receipt says so."""
    left = tuple(draft for index, draft in enumerate(admission.drafts) if index not in erased)
    refused = {**admission.refused, "erased": admission.refused.get("erased", 0) + len(erased)}
    return replace(admission, drafts=left, refused=refused)


def still_standing(hot: Hot, seed: Seed) -> Hot:
    """Return what is hot without what was erased from the archive."""
    if (hot.scope.generation or 0) < seed.generation:
        return replace(hot, scope=hot.scope.at(seed.generation), window=(), pending=(), last_seq=0, language=None)
    window, pending = (tuple(one for one in some if one.id not in seed.erased) for some in (hot.window, hot.pending))
    return replace(hot, window=window, pending=pending)


def indices(listed: bytes) -> set[int]:
    """As a script answers them."""
    return {int(index) for index in listed.split()}


T = TypeVar("T")
_MOST_QUESTIONS = 8
_NICE = 2
_STALE = 3
_AT_ONCE = 32
_KEY_ERASED = "what this idempotency key had stored was erased; nothing was stored again"
_KEY_REUSED = "this idempotency key was used for another payload; use a new key"
_REFUSALS = {
    b"erased": partial(ScopeErased, "this scope was erased after the work on it began; nothing was stored"),
    b"forgotten": partial(ScopeErased, _KEY_ERASED),
    b"other-payload": partial(Conflict, _KEY_REUSED),
    b"other-content": partial(Conflict, "a message with this id is already stored with other content; use a new id"),
    b"other-message": partial(Conflict, "another message already stands at this seq"),
}


class RedisHotStore:
    """`ask_archive` is called when the counter cannot be vouched for: after a restart, roll-back, expiry or wipe."""

    def __init__(
        self,
        client: RedisClient,
        ask_archive: AskArchive,
        options: HotOptions = HotOptions(),  # noqa: B008
        clock: Clock = system_clock,
    ) -> None:
        self._client = client
        self._ask_archive = ask_archive
        self._tokens = options.tokens
        self._frame = options.frame()
        self._options = options
        self._clock = clock
        self.front = ""  # the id of this store, once it is known; without it appends go unchecked

    async def append(
        self, scope: Scope, admission: Admission, key: str | None = None, at: datetime | None = None
    ) -> Receipt:
        return await self._append(scope, admission, key, at)

    async def _append(
        self, scope: Scope, admission: Admission, key: str | None, at: datetime | None, *, allowed: bool = False
    ) -> Receipt:
        arguments = append_arguments(scope, admission, key, self._tokens, self.front, allowed=allowed)
        about = Question(self._ask_archive, scope, admission, key)
        try:
            reply = await self._run(scripts.APPEND, scope, arguments, at, about=about)
        except ArchiveKnows as found:
            if found.receipt is not None:
                return found.receipt
            return await self._append(scope, found.rest, key, at, allowed=allowed)
        if reply[0] == b"unknown":
            assert about.away is not None
            raise about.away
        if reply[0] == b"replay":
            return replace(read_receipt(reply[1]), replayed=True)
        if reply[0] == b"tombstones":
            return await self._append(scope, without(admission, indices(reply[1])), key, at, allowed=allowed)
        if reply[0] == b"texts":
            unsaid = await self._erased_texts(scope, self._options.erased_texts.refused(scope, admission.drafts))
            erased = {index for index, draft in enumerate(admission.drafts) if draft.id in unsaid}
            rest = without(admission, erased) if erased else admission
            return await self._append(scope, rest, key, at, allowed=True)
        kept = tuple([draft.id for draft in admission.drafts])
        new = tuple([kept[index] for index in sorted(indices(reply[2]))])
        counts = admission.refused, admission.stripped, admission.redacted
        return Receipt("queued", int(reply[1]), kept, *counts, new=new)

    async def refresh(self, scope: Scope, messages: Sequence[Message]) -> None:
        reply = await self._run(scripts.REFRESH, scope, refresh_arguments(scope, messages, self._tokens))
        if reply[0] == b"tombstones":
            erased = indices(reply[1])
            await self.refresh(scope, [one for index, one in enumerate(messages) if index not in erased])

    async def restate(self, scope: Scope, message: Message) -> None:
        """Replace a message of the window, if it stands there, by what the archive has of it now. Slides no TTL."""
        await self._run(scripts.RESTATE, scope, restate_arguments(scope, message))

    async def read(self, scope: Scope, pending: int | None = None) -> Hot | None:
        hot = await self._read(scope, pending)
        if hot is not None and hot.stale:
            with suppress(StoreError):  # while the archive is down, it is all there is to show
                return still_standing(hot, await self._known_of(scope, hot))
        return hot

    async def _read(self, scope: Scope, pending: int | None = None) -> Hot | None:
        reply = await self._run(scripts.READ, scope, (-1 if pending is None else pending,))
        if reply[0] == b"none":
            return None
        if reply[0] == b"foreign":
            found = self._absorbed(scope, reply[2])
            created = found.created_at or self._clock()
            place = scope.at(int(reply[1]))
            return Hot(place, found.messages, (), 0, found.language, created, whole=False)
        return hot_of(scope, reply)

    async def touch(self, scope: Scope) -> Hot:
        with one_call():
            await self._run(scripts.TOUCH, scope, [b""])
            hot = await self.read(scope, pending=0)
            if hot is not None and not hot.last_seq:  # new here, though perhaps not to the archive
                with suppress(StoreError):
                    known = await self._ask_archive(scope, (), None)
                    hot = replace(hot, scope=scope.at(max(known.generation, hot.scope.generation or 0)))
        if hot is None:
            raise ScopeErased("this scope was erased in the moment it was touched")
        return hot

    async def set_language(self, scope: Scope, language: str) -> None:
        await self._run(scripts.TOUCH, scope, [to_json(language)])

    async def set_latest_reflection(self, scope: Scope, message_id: str, reflection: Reflection) -> bool:
        """See `ports.latest`."""
        own = [to_json(message_id), *reflection_arguments(reflection, self._tokens)]
        return (await self._run(scripts.REFLECT, scope, own))[0] == b"ok"

    async def seed(self, scope: Scope, seed: Seed) -> None:
        await self._run(scripts.SEED, scope, known=seed)

    async def erase(
        self, scope: Scope, message_id: str | None = None, generation: int | None = None
    ) -> Mapping[str, Erased]:
        raised = "+1" if generation is None else str(generation)
        if message_id is not None:
            own = [to_json(message_id), tombstone(scope, message_id)]
            return _erased([await self._run(scripts.ERASE_MESSAGE, scope, own)])
        if scope.conversation is not None:
            return _erased([await self._run(scripts.ERASE, scope, [raised])])
        return await self._erase_user(scope, raised)

    async def release(self, scope: Scope, message_id: str) -> None:
        """Show a message no more that the archive has kept for long enough. It may be stored again: none is erased."""
        await self._run(scripts.ERASE_MESSAGE, scope, [to_json(message_id), ""])

    async def conversations(self, scope: Scope) -> Sequence[str]:
        keys = (await self._client.link()).keys
        found = [await self._client.command("ZRANGE", keys.for_user(scope, tag)[1], 0, -1) for tag in keys.tags]
        return [name.decode() for names in found for name in names]

    async def bury(self, scope: Scope, digests: Sequence[bytes]) -> None:
        """In every partition: a draft is looked at where its conversation is."""
        keys = (await self._client.link()).keys
        fields = [part for digest in digests for part in (digest.hex(), 1)]
        for tag in keys.tags:
            await self._client.command("HSET", keys.for_user(scope, tag)[0], "texts", 1, *fields)

    async def _erased_texts(self, scope: Scope, asking: LookUp[T]) -> T:
        keys = (await self._client.link()).keys
        record = keys.for_user(scope, keys.tag(scope))[0]
        try:
            wanted = sorted(next(asking))
            while True:
                kept = await self._client.command("HMGET", record, *(one.hex() for one in wanted)) if wanted else ()
                wanted = sorted(asking.send({one for one, there in zip(wanted, kept, strict=True) if there}))
        except StopIteration as answer:
            return answer.value

    async def close(self) -> None:
        await self._client.close()

    async def _run(
        self,
        script: scripts.Script,
        scope: Scope,
        own: Sequence[Argument] = (),
        at: datetime | None = None,
        known: Seed | None = None,
        about: Callable[[bool], Awaitable[Seed]] | None = None,
    ) -> list[Any]:
        """Answer the script's questions, again when an erase came between question and answer."""
        conversation = scope.require_conversation()
        keys = (await self._client.link()).keys.for_conversation(scope)
        generation = b"" if scope.generation is None else scope.generation
        head = (*self._frame, conversation, to_json((at or self._clock()).isoformat()), generation)
        answers: tuple[Argument, ...] = Answers(seed=known).arguments() if known else NO_ANSWERS
        for _ in range(_MOST_QUESTIONS):
            reply = await self._client.run(script, keys, (*head, *answers, *own))
            if reply[0] == b"front":
                raise HotStoreMismatch("REDIS_URL", "this Redis no longer records the archive's id", "repeat the call")
            if reply[0] in _REFUSALS:
                raise _REFUSALS[reply[0]]()
            if reply[0] != b"ask":
                return reply
            if reply[3] == _STALE:
                await self._erase_what_was_erased(scope)
            seed = known or await self._seed_for(scope, reply[3], about)
            answers = Answers(reply[1], seed, reply[2], self._absorbed(scope, reply[2])).arguments()
        raise StoreUnavailable("the scope is being erased again and again; nothing was stored")

    def _absorbed(self, scope: Scope, document: bytes) -> Absorbed:
        return absorbed(document, scope, self._options.keep, self._options.limits.max_messages, self._clock())

    async def _seed_for(self, scope: Scope, need: int, about: Callable[[bool], Awaitable[Seed]] | None) -> Seed:
        """`need`: 0 for none, 2 for one that would be good to have, others for one that is required."""
        if not need:
            return Seed()
        return await (about(need != _NICE) if about else self._ask_archive(scope, (), None))

    async def _erase_what_was_erased(self, scope: Scope) -> None:
        """Erase here what was erased from the archive: a server that lost its latest writes shows it again."""
        hot = await self._read(scope)
        for id_ in (await self._known_of(scope, hot)).erased if hot else ():
            await self.erase(scope, id_)

    async def _known_of(self, scope: Scope, hot: Hot) -> Seed:
        return await self._ask_archive(scope, [message.id for message in (*hot.pending, *hot.window)], None)

    async def _erase_user(self, scope: Scope, raised: str) -> Mapping[str, Erased]:
        """Partition by partition. One that cannot be reached is counted as failed, unless none can."""
        keys = (await self._client.link()).keys
        partitions = await asyncio.gather(
            *(self._erase_in(scope, tag, raised) for tag in keys.tags), return_exceptions=True
        )
        problems = [found for found in partitions if isinstance(found, BaseException)]
        if len(problems) == len(partitions) or any(not isinstance(one, StoreError) for one in problems):
            raise problems[0]
        replies = [reply for found in partitions if isinstance(found, list) for reply in found]
        return _erased(replies, failed=len(problems))

    async def _erase_in(self, scope: Scope, tag: str, raised: str) -> list[list[Any]]:
        keys = (await self._client.link()).keys
        conversations: list[bytes] = await self._client.run(scripts.ERASE_USER, keys.for_user(scope, tag), [raised])
        own = "+1" if raised == "+1" else "="
        some = asyncio.Semaphore(_AT_ONCE)

        async def one(conversation: bytes) -> list[Any]:
            async with some:
                of = Scope(scope.tenant, scope.user, conversation.decode())
                return await self._run(scripts.ERASE, of, [own])

        return list(await asyncio.gather(*map(one, conversations)))


def _erased(replies: Sequence[list[Any]], failed: int = 0) -> dict[str, Erased]:
    """Each reply says how many sessions (or messages in a window) and how many messages on their way there were."""
    hot, waiting = sum(reply[1] for reply in replies), sum(reply[2] for reply in replies)
    return {
        "sessions": Erased(found=hot + failed, removed=hot, failed=failed),
        "journal": Erased(found=waiting, removed=waiting),
    }


_DETACHING = "-"  # before the id, from the moment an operator detaches until it is done
_FIELDS = ("id", "durability", "archive")
_CLEARED_AT_ONCE = 500


class RedisFront:
    """`hot` is this process's own view of the same Redis; None where nothing is appended through it."""

    def __init__(self, client: RedisClient, hot: RedisHotStore | None = None) -> None:
        self._client = client
        self._hot = hot

    @property
    def address(self) -> str:
        return self._client.address

    async def read(self) -> Fronting | None:
        """What the partitions agree on. Raise `HotStoreMismatch` where they do not, or a detach was not finished."""
        found = {one for one in await self._recorded() if one is not None}
        if any(one.id.startswith(_DETACHING) for one in found):
            fix = "run `threadkeep detach` to its end"
            raise HotStoreMismatch("REDIS_URL", "names a Redis whose detaching was not finished", fix)
        if len(found) > 1:
            fix = "give each archive a cluster of its own"
            raise HotStoreMismatch("REDIS_URL", "names a cluster that stands in front of several archives", fix)
        return next(iter(found), None)

    async def put(self, fronting: Fronting) -> None:
        keys = (await self._client.link()).keys
        values = (fronting.id, fronting.durability, fronting.archive, fronting.missed)
        await asyncio.gather(*(self._client.run(scripts.FRONT, (keys.journal(tag),), values) for tag in keys.tags))

    async def use(self, id: str) -> None:
        if self._hot is not None:
            self._hot.front = id

    async def begin_detaching(self) -> tuple[int, int]:
        """Refuse appends from now on; entries and dead letters that wait, in which case nothing is changed."""
        waiting = await self._detach("begin")
        if any(waiting):
            await self._detach("undo")
        return waiting

    async def end_detaching(self) -> None:
        await self._detach("end")

    async def evict_sessions(self) -> int:
        """Remove everything that is the archive's, and return how many conversations were hot.

        An erasure that comes later cannot reach this store any more, so nothing that users said, nor their names, may
        stay: documents and latest turns of the conversations it knows, then every key under the own prefix. Until
        `end_detaching` the record of the archive stays, and what was cut short can be repeated.
        """
        keys, evicted = (await self._client.link()).keys, 0
        for tag in keys.tags:
            for here in await self._default_users(tag):  # where the counter has expired, only this list has the name
                evicted += await self._leave(tag, here)
        async for latest in self._client.keys_like("conv:*:latest"):
            if (found := keys.conversation_in(latest)) is not None:
                evicted += await self._leave(*found)
        async for key in self._client.keys_like("threadkeep:*"):
            if (tag := keys.tag_in(key)) is not None and key.startswith(meta := keys.meta(tag, "")):
                evicted += await self._leave(tag, key.removeprefix(meta))
        await self._clear_the_rest()
        return evicted

    async def _default_users(self, tag: str) -> list[str]:
        """Return the default user's conversations as keys name them: the keys alone could be other applications'."""
        keys = (await self._client.link()).keys
        _, conversations = keys.for_user(Scope(DEFAULT_TENANT, DEFAULT_USER), tag)
        found: list[bytes] = await self._client.command("ZRANGE", conversations, 0, -1)
        return [name_in_keys(DEFAULT_TENANT, DEFAULT_USER, conversation.decode()) for conversation in found]

    async def _leave(self, tag: str, here: str) -> int:
        keys = (await self._client.link()).keys
        return await self._client.run(scripts.LEAVE, (*self._streams(keys, tag), *keys.of_session(tag, here)), ())

    async def _clear_the_rest(self) -> None:
        keys = (await self._client.link()).keys
        rest: dict[str, list[str]] = {}
        async for key in self._client.keys_like("threadkeep:*"):
            if (tag := keys.tag_in(key)) is not None and key != keys.front(tag):
                rest.setdefault(tag, []).append(key)
                if len(rest[tag]) >= _CLEARED_AT_ONCE:
                    await self._clear(keys, tag, rest.pop(tag))
        for tag, some in rest.items():
            await self._clear(keys, tag, some)

    async def _clear(self, keys: Keys, tag: str, some: list[str]) -> None:
        await self._client.run(scripts.CLEAR, (*self._streams(keys, tag), *some), ())

    def _streams(self, keys: Keys, tag: str) -> tuple[str, str]:
        return keys.journal(tag), keys.dead(tag)

    async def recorded_id(self) -> str | None:
        """Also of a Redis whose detaching was not finished."""
        return next((one.id.removeprefix(_DETACHING) for one in await self._recorded() if one is not None), None)

    async def _recorded(self) -> list[Fronting | None]:
        keys = (await self._client.link()).keys
        answers = await asyncio.gather(*(self._client.command("HMGET", keys.front(tag), *_FIELDS) for tag in keys.tags))
        recorded: list[Fronting | None] = []
        for answer in answers:
            id, durability, archive = (str(value or b"", "utf-8") for value in answer)
            recorded.append(Fronting(id, cast("Durability", durability), archive) if id else None)
        return recorded

    async def _detach(self, step: str) -> tuple[int, int]:
        keys = (await self._client.link()).keys
        found = await asyncio.gather(
            *(self._client.run(scripts.DETACH, (keys.journal(tag), keys.dead(tag)), (step,)) for tag in keys.tags)
        )
        return sum(one[0] for one in found), sum(one[1] for one in found)
