"""Erasing everywhere: every store reports its part, also where it cannot be reached, and nothing in flight stays."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from threadkeep.core.keeping import Reflecting
from threadkeep.core.stores import Stores
from threadkeep.errors import StoreFull, StoreUnavailable
from threadkeep.model import ConversationChange, Erased, ErasureProof, StoredReflection
from threadkeep.ports.archive import Spot
from threadkeep.ports.checkpoints import TELLS_FROM_MEMORY
from threadkeep.resilience.one_call import one_call
from threadkeep.scope import Scope
from threadkeep.wording import Words, words_of

_NOT_REACHED = Erased(found=1, failed=1)
_SPARED = (
    "checkpoints of a graph's thread of this name are left as they are, whatever they hold of the message:"
    " erase the conversation to remove them"
)
_STATE_SPARED = (
    "items of a LangGraph store and the state of agent sessions are left as they are, whatever they hold of the text:"
    " erase the user to remove them"
)


@dataclass(slots=True)
class _Saying:
    """Where a phrase was found."""

    spots: dict[Spot, str] = field(default_factory=dict[Spot, str])  # with what the message says
    made_of: dict[tuple[Scope, str], None] = field(default_factory=dict[tuple[Scope, str], None])  # reflections to go
    # Conversations whose title or intent says it.
    named: dict[Scope, ConversationChange] = field(default_factory=dict[Scope, ConversationChange])
    hot_unread: bool = False


class Erasing:
    def __init__(self, stores: Stores, reflecting: Reflecting) -> None:
        self._stores = stores
        self._reflecting = reflecting

    async def message(self, scope: Scope, message_id: str) -> ErasureProof:
        """Reflections and checkpoints once more afterwards, for those that were being made concurrently."""
        with one_call(shared=False):
            return await self._noted(await self._with_room(lambda: self._message(scope, message_id)))

    async def _message(self, scope: Scope, message_id: str) -> ErasureProof:
        await self._reflecting.erase(scope, message_id)
        before = await self._retold(scope)
        proof = await self._archive(scope, message_id)
        await self._reflecting.erase(scope, message_id)
        return _with_checkpoints(proof, _both(before, await self._retold(scope)))

    async def _with_room(self, erase: Callable[[], Awaitable[ErasureProof]]) -> ErasureProof:
        """On a full disk erase once more with what was set aside for it. An erase may be repeated at any point."""
        try:
            return await erase()
        except StoreFull:
            if self._stores.make_room is None or not await self._stores.make_room():
                raise
        return await erase()

    async def _retold(self, scope: Scope) -> Erased:
        """Remove the threads that assistants once wrote, of which memory has everything; others are not ours."""
        if self._stores.checkpoints is None:
            return Erased()
        return await _reported(self._stores.checkpoints.erase(scope, TELLS_FROM_MEMORY))

    async def text(self, scope: Scope, phrases: Sequence[str]) -> ErasureProof:
        """Every message that says one of the phrases, hot or stored, every reflection, title and intent that does.

        They are refused before they are looked for: what a model writes concurrently is found or not stored. What
        is hot is looked at first, since messages go from there to the archive and never back.
        """
        with one_call(shared=False):
            return await self._noted(await self._with_room(lambda: self._text(scope, phrases)))

    async def _text(self, scope: Scope, phrases: Sequence[str]) -> ErasureProof:
        proof = await self._stores.archive.forget(scope, (), (), phrases)
        found = await self._saying(scope, [words_of(phrase) for phrase in phrases])
        before = await self._retold(scope)
        if found.spots or found.made_of or found.named:
            proof = await self._several(scope, found)
        if found.hot_unread or await self._left(scope, found):
            proof = replace(proof, stores={**proof.stores, "hot": _NOT_REACHED})
        if self._stores.items is not None and await self._stores.items.holds(scope.whole_user):
            proof = replace(proof, notes=(*proof.notes, _STATE_SPARED))
        return _with_checkpoints(proof, _both(before, await self._retold(scope)))

    async def _saying(self, scope: Scope, phrases: Sequence[Words]) -> _Saying:
        """By reading all of the user's messages: search terms merge look-alikes, so they cannot find every one."""
        found = _Saying()
        if self._stores.waiting is not None:
            hot = await self._stores.waiting(scope)
            found.hot_unread = hot is None
            found.spots |= {(name, one.id): one.content for name, one in hot or () if _say(one.content, phrases)}
        async for record in self._stores.archive.records(scope):
            own = [one for one in record.messages if _say(one.content, phrases)]
            found.spots |= {(record.conversation, one.id): one.content for one in own}
            place = Scope(record.tenant, record.user, record.conversation)
            title, intent = ("" if text and _say(text, phrases) else None for text in (record.title, record.intent))
            if title is not None or intent is not None:
                found.named[place] = ConversationChange(title=title, intent=intent)
            reflections = (await self._reflecting.recorded(record)).reflections
            saying = [one for one in reflections if _say(_text_of(one), phrases)]
            found.made_of |= dict.fromkeys((place, one.evidence[-1]) for one in saying)
        return found

    async def _several(self, scope: Scope, found: _Saying) -> ErasureProof:
        """As `message` does for one: what was made of them is deleted before, and afterwards once more."""
        spots = [(scope.with_conversation(name), id_) for name, id_ in found.spots]
        for place, change in found.named.items():
            await self._stores.archive.change(place, change)
        before = await self._made_of([*spots, *found.made_of], spots)
        proof = await self._stores.archive.forget(scope, list(found.spots), list(found.spots.values()))
        after = await self._made_of(spots, spots)
        made = {name: _both(part, after[name]) for name, part in before.items()}
        if found.named:
            made["conversations"] = Erased(len(found.named), len(found.named))
        return replace(proof, stores={**proof.stores, **made})

    async def _made_of(
        self, reflected: Sequence[tuple[Scope, str]], embedded: Sequence[tuple[Scope, str]]
    ) -> dict[str, Erased]:
        made: dict[str, Erased] = {}
        if self._stores.reflections is not None:
            made["reflections"] = _total([await self._reflecting.erase(place, id_) for place, id_ in reflected])
        if self._stores.embedding is not None:
            made["vectors"] = _total([await self._stores.embedding.erase(place, id_) for place, id_ in embedded])
        return made

    async def _left(self, scope: Scope, found: _Saying) -> bool:
        """Whether the hot store still shows one: a document that another application wrote is not ours to change."""
        if self._stores.waiting is None or not found.spots:
            return False
        hot = await self._stores.waiting(scope)
        return hot is None or any((name, one.id) in found.spots for name, one in hot)

    async def everything(self, scope: Scope) -> ErasureProof:
        """Each part of a store that did not answer reports that; only the first waits for it."""
        with one_call(shared=False):
            return await self._noted(await self._with_room(lambda: self._everything(scope)))

    async def _noted(self, proof: ErasureProof) -> ErasureProof:
        """Last of all: a file that is written anew now must have nothing of it any more."""
        if self._stores.remains is None:
            return proof
        return replace(proof, notes=(*proof.notes, *await self._stores.remains()))

    async def _everything(self, scope: Scope) -> ErasureProof:
        sessions = await self._stores.sessions.erase(scope)
        before, knowledge = await self._checkpoints(scope), await self._knowledge(scope)
        # At once: both may have to wait for the same store that does not answer.
        scratch, proof = await asyncio.gather(_reported(self._scratch(scope)), self._archive(scope))
        after = await self._checkpoints(scope)  # those that were being made concurrently
        if any(part.removed for part in after.values()):
            proof = _joined(proof, await self._archive(scope))  # which scrubs what these have left behind
        made = {name: _both(part, after[name]) for name, part in before.items()}
        return replace(proof, stores={"sessions": sessions, **proof.stores, "scratch": scratch} | made | knowledge)

    async def _archive(self, scope: Scope, message_id: str | None = None) -> ErasureProof:
        """Vectors before it, to count them; and after it, for those that were being made concurrently."""
        embedding = self._stores.embedding
        if embedding is None:
            return await self._stores.archive.erase(scope, message_id)
        before = await embedding.erase(scope, message_id)
        proof = await self._stores.archive.erase(scope, message_id)
        after = await embedding.erase(scope, message_id)
        vectors = Erased(before.removed + after.found, before.removed + after.removed, after.failed)
        return replace(proof, stores={**proof.stores, "vectors": vectors})

    async def _scratch(self, scope: Scope) -> Erased:
        """It has a TTL of its own: that it cannot be reached now must not keep the rest from being erased."""
        kept = [self._stores.scratch, *([self._stores.slots] if self._stores.slots else [])]
        with one_call(shared=scope.conversation is not None):
            removed = sum(await asyncio.gather(*(store.erase(scope) for store in kept)))
        return Erased(removed, removed)

    async def _checkpoints(self, scope: Scope) -> dict[str, Erased]:
        """Before the archive, which then scrubs what they have left behind."""
        erased: dict[str, Erased] = {}
        for name, keeper in self._stores.keepers.items():
            erased[name] = await _reported(keeper.erase(scope))
        if self._stores.reflections is not None:
            erased["reflections"] = await self._reflecting.erase(scope)
        return erased

    async def _knowledge(self, scope: Scope) -> dict[str, Erased]:
        if self._stores.knowledge is None or scope.conversation is not None:
            return {}
        return {"knowledge": await _reported(self._stores.knowledge.erase(scope))}


def _with_checkpoints(proof: ErasureProof, checkpoints: Erased) -> ErasureProof:
    if not checkpoints.found:
        return proof
    stores = {**proof.stores, "checkpoints": checkpoints}
    spared = checkpoints.found > checkpoints.removed + checkpoints.failed
    return replace(proof, stores=stores, notes=(*proof.notes, _SPARED) if spared else proof.notes)


def _say(text: str, phrases: Sequence[Words]) -> bool:
    words = words_of(text)
    return any(words.say(phrase) for phrase in phrases)


def _text_of(stored: StoredReflection) -> str:
    return "\n".join([stored.reflection.summary, *stored.reflection.causes])


def _total(parts: Sequence[Erased]) -> Erased:
    return Erased(*(sum(getattr(part, name) for part in parts) for name in ("found", "removed", "failed")))


def _joined(first: ErasureProof, then: ErasureProof) -> ErasureProof:
    return replace(
        then, stores={name: _both(first.stores.get(name, Erased()), part) for name, part in then.stores.items()}
    )


def _both(first: Erased, then: Erased) -> Erased:
    """What failed at first may be deleted by now."""
    return Erased(first.removed + then.found, first.removed + then.removed, then.failed)


async def _reported(erasing: Awaitable[Erased]) -> Erased:
    try:
        return await erasing
    except StoreUnavailable:
        return _NOT_REACHED
