"""`forget(scope, text=…)` erases every message that says it, and nothing else."""

from __future__ import annotations

import random

import pytest

from tests.forget.conftest import Place
from threadkeep import Memory, ModelResponse, Scope, UserMessage
from threadkeep.adapters.adk import ThreadkeepSessionService
from threadkeep.adapters.langgraph import ThreadkeepStore
from threadkeep.errors import InvalidInput
from threadkeep.model import Reflection

ME = Scope("shop", "ann")
BOB = Scope("shop", "bob")
# A phrase, how it is said elsewhere, and what is said that is not it.
PHRASES = {
    "I keep a parrot at home": (
        [
            "well, i KEEP a parrot at home!",
            "I keep a\u200b pаrrot at home",
            "I keep a parrot at home\nand a cat",
            "So:I keep a parrot at home—noted",
        ],
        ["I keep a parrot", "I keep a parrot at homes", "I keep a parrot at home 2", "my parrot is at home"],
    ),
    "Boję się pająków": (
        ["Cóż, boję się pająków.", "BOJĘ  SIĘ PAJĄKÓW", "boję się paj\u0105k\u00f3w, serio"],
        ["Boje sie pajakow", "Boję się pająka", "Boję się pająków 3", "Nie lubię pająków"],
    ),
    "Tôi thích ăn bún chả": (
        ["Dạ,tôi thích ăn bún chả,nhớ nhé", "TÔI THÍCH ĂN BÚN CHẢ", "Tôi thích ăn bún chả, và phở"],
        ["Tôi thích ăn bún cha", "Tôi thích ăn bún", "Tôi thích ăn bún chả 2", "Tôi ăn bún chả"],
    ),
    "我最怕蛇": (
        ["老實說，我最怕蛇～", "我 最怕 蛇", "我最怕蛇，真的"],
        ["我最怕狗", "我怕蛇", "我最怕蛇2號", "蛇最怕我"],
    ),
}


def messages() -> list[tuple[str, str]]:
    """Five hundred, each with the conversation it is said in."""
    chance, said = random.Random(17), list[str]()
    for phrase, (alike, others) in PHRASES.items():
        said += [phrase, *alike, *others]
    said += [f"filler {number} {chance.choice(list(PHRASES))[:3]}" for number in range(500 - len(said))]
    chance.shuffle(said)
    return [(f"c{chance.randrange(7)}", text) for text in said]


async def told(memory: Memory, owner: Scope, said: list[tuple[str, str]]) -> None:
    for number, (conversation, text) in enumerate(said):
        event = ModelResponse(text) if number % 3 == 2 else UserMessage(text)
        await memory.append(owner.with_conversation(conversation), [event])


async def kept(memory: Memory, owner: Scope) -> list[str]:
    found: list[str] = []
    for number in range(7):
        history = await memory.history(owner.with_conversation(f"c{number}"), limit=1_000)
        found += [message.content for message in history.messages]
    return sorted(found)


async def test_every_message_that_says_it_is_erased_and_no_other(place: Place) -> None:
    said = messages()
    async with place.open() as memory:
        await told(memory, ME, said)
        await told(memory, BOB, said[:60])
        bobs = await kept(memory, BOB)
        if not place.queues:
            await memory.flushed()
        for phrase, (alike, others) in PHRASES.items():
            before = await kept(memory, ME)
            proof = await memory.forget(ME, text=phrase)
            assert proof.complete
            counts = proof.stores["journal" if place.queues else "archive"]
            assert (counts.found, counts.removed) == (1 + len(alike), 1 + len(alike))
            gone = sorted([phrase, *alike])
            assert await kept(memory, ME) == sorted(text for text in before if text not in gone)
            assert set(others) <= set(await kept(memory, ME))
            for text in gone:
                assert not [hit for hit in (await memory.recall(ME, text)).hits if hit.content in gone]
        assert await kept(memory, BOB) == bobs
    async with place.open(worker=True) as memory:
        await memory.flushed()
        left = await kept(memory, ME)
        assert len(left) == 500 - sum(1 + len(alike) for alike, _ in PHRASES.values())
        assert not set(left) & {text for phrase, (alike, _) in PHRASES.items() for text in (phrase, *alike)}


async def test_a_conversation_can_be_told_to_forget_alone(place: Place) -> None:
    async with place.open() as memory:
        for name in ("c1", "c2"):
            await memory.append(ME.with_conversation(name), [UserMessage("I keep a parrot at home")])
        assert (await memory.forget(ME.with_conversation("c1"), text="i keep a parrot at home")).complete
        assert await kept(memory, ME) == ["I keep a parrot at home"]
        assert (await memory.history(ME.with_conversation("c1"))).messages == ()


async def test_a_masked_text_is_compared_as_it_is_kept(place: Place) -> None:
    async with place.open() as memory:
        talk = ME.with_conversation("c1")
        await memory.append(talk, [UserMessage("write to ann@example.com today"), UserMessage("mail bob@example.com")])
        await memory.forget(ME, text="write to ann@example.com")
        assert await kept(memory, ME) == ["mail [REDACTED:EMAIL]"]
        proof = await memory.forget(ME, text="bob@example.com")  # of which nothing was kept
        assert proof.complete
        assert await kept(memory, ME) == ["mail [REDACTED:EMAIL]"]


async def test_titles_and_reflections_that_say_it_go_too(place: Place) -> None:
    async with place.open(worker=True) as memory:
        talk = ME.with_conversation("c1")
        receipt = await memory.append(talk, [UserMessage("hello"), ModelResponse("hi")])
        await memory.flushed()
        await memory.rename(talk, "I keep a parrot at home")
        assert await memory.reflect(talk, Reflection("The user: I keep a parrot at home."), list(receipt.kept))
    async with place.open() as memory:
        assert (await memory.forget(ME, text="I keep a parrot at home")).complete
        assert await memory.reflections(talk) == []
        assert [one.title for one in await memory.conversations(ME)] == [""]
        assert len((await memory.history(talk)).messages) == 2


@pytest.mark.parametrize("text", ["", "  ", "\u200b", None, 5, "x" * 100_001])
async def test_a_text_that_says_nothing_is_refused_in_words(text: str) -> None:
    async with Place("sqlite://").open() as memory:
        with pytest.raises(InvalidInput, match="text"):
            await memory.forget(ME, text=text)


async def test_items_and_state_are_left_and_the_receipt_says_so(place: Place) -> None:
    phrase = "keeps a parrot at home"
    async with place.open() as memory:
        await memory.append(ME.with_conversation("c"), [UserMessage(f"She {phrase}.")])
        assert not any("state of agent sessions" in note for note in (await memory.forget(ME, phrase)).notes)
    async with ThreadkeepStore.from_url(place.url, tenant=ME.tenant, user=ME.user) as store:
        await store.aput(("memories",), "pets", {"text": f"She {phrase}."})
    async with ThreadkeepSessionService.from_url(place.url, tenant=BOB.tenant, redis=place.redis or "") as sessions:
        state = {"user:note": f"He {phrase}."}
        await sessions.create_session(app_name="bot", user_id=BOB.user, session_id="s", state=state)
    async with place.open() as memory:
        for user in (ME, BOB):
            assert any("state of agent sessions" in note for note in (await memory.forget(user, phrase)).notes)
