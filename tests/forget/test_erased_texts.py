"""What was erased does not come back by its text: not from a model, the journal, a replay or a summary."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from tests.forget.conftest import Place
from tests.servers.redis import RedisServer
from threadkeep import Memory, ModelResponse, Origin, Scope, Settings, UserMessage
from threadkeep.compose.worker import open_journal
from threadkeep.model import Reflection

ME = Scope("shop", "ann")
TALK, OTHER = ME.with_conversation("c1"), ME.with_conversation("c2")
SAID = "I keep a parrot at home"
ALIKE = "i KEEP a pаrrot\u200b at  home."  # with a Cyrillic а
NEIGHBOUR = "I keep a parrot at home 2"
Flushing = Callable[[], AbstractAsyncContextManager[Memory]]


async def shown(memory: Memory, scope: Scope) -> list[str]:
    return [message.content for message in (await memory.history(scope)).messages]


async def test_an_erased_text_is_refused_from_a_model_and_kept_from_the_user(place: Place) -> None:
    async with place.open() as memory:
        await memory.append(TALK, [UserMessage(SAID, id="m1"), ModelResponse("Noted.")])
        assert (await memory.erase(TALK, "m1")).complete
        for scope in (TALK, OTHER):
            receipt = await memory.append(scope, [ModelResponse(ALIKE), ModelResponse(NEIGHBOUR)])
            assert (dict(receipt.refused), len(receipt.kept)) == ({"erased": 1}, 1)
            assert await shown(memory, scope) == ["Noted.", NEIGHBOUR][scope == OTHER :]
        receipt = await memory.append(TALK, [UserMessage(SAID)])
        assert (dict(receipt.refused), len(receipt.kept)) == ({}, 1)
        others = await memory.append(Scope("shop", "bob", "c1"), [ModelResponse(SAID)])
        assert dict(others.refused) == {}
    async with place.open(worker=True) as memory:
        await memory.flushed()
        assert await shown(memory, TALK) == ["Noted.", NEIGHBOUR, SAID]
        assert await shown(memory, OTHER) == [NEIGHBOUR]
        assert NEIGHBOUR in [hit.content for hit in (await memory.recall(ME, NEIGHBOUR)).hits]


async def test_an_erased_text_is_refused_from_an_import_and_an_operator(place: Place) -> None:
    async with place.open() as memory:
        await memory.append(TALK, [UserMessage(SAID, id="m1")])
        assert (await memory.erase(TALK, "m1")).complete
        for author, refused in (
            ("import", {"erased": 1}),
            ("operator", {"erased": 1}),
            ("model", {"erased": 1}),
            ("user", {}),
        ):
            event = UserMessage(ALIKE, origin=Origin(author, "cli"))
            assert dict((await memory.append(OTHER, [event])).refused) == refused, author
        assert await shown(memory, OTHER) == [ALIKE]


async def test_a_forgotten_phrase_is_refused_inside_of_what_a_model_writes(place: Place) -> None:
    async with place.open() as memory:
        await memory.append(TALK, [UserMessage(f"Hello, {SAID}, and a cat")])
        assert (await memory.forget(ME, text=SAID)).complete
        written = [f"You told me: {ALIKE}", f"Hello, {SAID}, and a cat", f"You told me: {NEIGHBOUR}", "A parrot, then?"]
        receipt = await memory.append(OTHER, [ModelResponse(text) for text in written])
        assert dict(receipt.refused) == {"erased": 2}
        assert await shown(memory, OTHER) == written[2:]


async def test_a_retry_of_what_is_stored_is_not_refused_for_its_text(place: Place) -> None:
    async with place.open() as memory:
        await memory.append(TALK, [UserMessage(SAID, id="m1")])
        twin = await memory.append(OTHER, [ModelResponse(SAID, id="m2")], key="k")
        if place.redis is None or place.worker:
            await memory.flushed()
        await memory.erase(TALK, "m1")
        again = await memory.append(OTHER, [ModelResponse(SAID, id="m2")], key="k")
        assert (again, again.replayed) == (twin, True)
        assert await shown(memory, OTHER) == [SAID]


async def test_a_summary_that_says_it_is_not_kept(place: Place) -> None:
    async with place.open(worker=True) as memory:
        receipt = await memory.append(TALK, [UserMessage(SAID, id="m1"), UserMessage("hello"), ModelResponse("hi")])
        await memory.forget(ME, text=SAID)
        evidence = list(receipt.kept[1:])
        assert not await memory.reflect(TALK, Reflection(f"The user said: {ALIKE}"), evidence)
        assert not await memory.reflect(TALK, Reflection("A greeting", causes=(SAID,)), evidence)
        assert await memory.reflect(TALK, Reflection("A greeting", causes=(NEIGHBOUR,)), evidence)


async def test_what_a_model_had_queued_is_refused_by_the_flush_and_what_the_user_had_is_not(
    queued: Place, flushing: Flushing
) -> None:
    async with queued.open() as memory:
        await memory.append(TALK, [UserMessage(SAID, id="m1"), UserMessage(SAID, id="m2")])
        await memory.append(OTHER, [UserMessage("What do I keep?"), ModelResponse(SAID)])
        await memory.erase(TALK, "m1")
        assert await shown(memory, TALK) == [SAID]
    async with flushing() as memory:
        assert await shown(memory, TALK) == [SAID]
        assert await shown(memory, OTHER) == ["What do I keep?"]
        assert [hit.content for hit in (await memory.recall(ME, "parrot")).hits] == [SAID]


async def test_what_the_user_says_again_is_kept_though_it_is_queued_when_the_worker_comes(
    queued: Place, flushing: Flushing
) -> None:
    async with queued.open() as memory:
        await memory.append(TALK, [UserMessage(SAID)])
        await memory.forget(ME, text=SAID)
        await memory.append(TALK, [UserMessage(SAID)])
    async with flushing() as memory:
        assert await shown(memory, TALK) == [SAID]


async def test_a_replayed_dead_letter_brings_nothing_back(queued: Place, flushing: Flushing) -> None:
    async with queued.open() as memory:
        await memory.append(TALK, [UserMessage(f"Hello! {SAID}.")])
        await memory.append(OTHER, [ModelResponse(SAID)])
        assert queued.redis is not None
        async with open_journal(queued.redis, settings=Settings()) as journal:
            for entry in await journal.claim("test", 10):
                assert await journal.park(entry, "a test")
            assert (await memory.forget(ME, text=SAID)).complete
            await journal.replay([letter.id for letter in await journal.dead()])
            assert (await journal.depth()).dead == 0
    async with flushing() as memory:
        assert await shown(memory, TALK) == []
        assert await shown(memory, OTHER) == []
        assert (await memory.stats(ME)).messages == 0


async def test_a_wiped_redis_does_not_let_a_model_write_it_into_the_archive(
    queued: Place, flushing: Flushing, redis_server: RedisServer
) -> None:
    async with queued.open() as memory:
        await memory.append(TALK, [UserMessage(SAID)])
        await memory.forget(ME, text=SAID)
    redis_server.wipe()
    async with queued.open() as memory:
        assert (await memory.append(TALK, [UserMessage("hello"), ModelResponse(SAID)])).status == "queued"
    async with flushing() as memory:
        assert await shown(memory, TALK) == ["hello"]
        assert [hit.content for hit in (await memory.recall(ME, "parrot hello")).hits] == ["hello"]
