"""Follow-up questions in their conversation, in four languages: what they find, and what of it the cache serves."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from bench.followups import Turn, figures, languages, measured
from tests.mcp.library import SETTINGS, document, fill, found_in, question
from threadkeep.agent.retrieval import Retrieval
from threadkeep.compose.knowledge import open_knowledge
from threadkeep.compose.retrieval import OwnParts, open_retrieval
from threadkeep.ports.knowledge import Access, Document

FACTS = {
    "dishwasher.md": "Brook is a dishwasher for fourteen settings. Its noise is 42 dB and its warranty is five years.",
    "fridge.md": "Fjord is a fridge with a freezer below. Its noise is 36 dB and its warranty is ten years.",
    "oven.md": "Ember is an oven that cleans itself. Its noise is 50 dB and its warranty is two years.",
}
BROOK, FJORD, WARRANTY = "What is the Brook dishwasher?", "What is the Fjord fridge?", "How long is the warranty?"


@pytest.fixture
async def kitchen(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/kitchen.db"
    await fill(url, *(document(name, text) for name, text in FACTS.items()))
    return url


@pytest.fixture(scope="module")
def chains() -> list[Turn]:
    return asyncio.run(measured())


def test_nineteen_of_twenty_follow_ups_find_their_document_in_the_first_three(chains: list[Turn]) -> None:
    for language in languages(chains):
        told = figures(one for one in chains if one.language == language)
        assert told["follow-up right"] >= 0.95 * told["follow-up"], language
        assert told["opening right"] == told["opening"] == 25, language


def test_no_change_of_topic_is_lost_in_its_conversation(chains: list[Turn]) -> None:
    told = figures(chains)
    assert (told["change"], told["change right"], told["lost"]) == (40, 40, 0)


@pytest.mark.parametrize(
    ("opening", "follow_up"),
    [
        (BROOK, "decibels?"),
        ("Zmywarka Brook?", "A hałas?"),
        ("Máy rửa Brook?", "Có ồn không?"),
        ("Brook 洗碗機", "吵不吵？"),
        (BROOK, "Does Siemens MagicCare Premium come along for households that wash twice every evening?"),
    ],
)
async def test_a_question_that_finds_nothing_by_itself_is_tried_with_its_conversation(
    tmp_path: Path, opening: str, follow_up: str
) -> None:
    url, settings = f"sqlite:///{tmp_path}/words.db", SETTINGS.model_copy(update={"embedder": "none"})
    await fill(url, document("brook.md", "Brook 14"))
    async with open_retrieval(url, settings) as retrieval:
        assert found_in(await retrieval.ask(question(follow_up))) == []
        await retrieval.ask(question(opening, conversation="c1"))
        assert found_in(await retrieval.ask(question(follow_up, conversation="c1"))) == ["brook.md"]


async def test_a_short_question_is_read_in_the_language_of_its_conversation(tmp_path: Path) -> None:
    """ "A" opens a question that goes on in Polish; English has the word too, where it opens nothing."""
    url = f"sqlite:///{tmp_path}/fala.db"
    await fill(
        url,
        document("fala.md", "Pralka Fala kosztuje 1900 zł i jest naprawiana pięć lat."),
        document("zasady.md", "Gwarancja: gwarancja obowiązuje od dnia zakupu."),
        document("sklep.md", "Sklep jest czynny od poniedziałku do soboty."),
    )
    async with open_retrieval(url, SETTINGS) as retrieval:
        await retrieval.ask(question("Ile kosztuje pralka Fala, jeśli się ją kupi na raty?", conversation="c1"))
        assert found_in(await retrieval.ask(question("A gwarancja?", conversation="c1")))[0] == "fala.md"


TURNS = {
    "en": (
        ("Bluefin launch", "The Bluefin launch is planned for May in Gdynia. Nine people work on it."),
        ("Aurora launch", "Aurora ships in October. Four people work on it."),
        "When is the Bluefin launch planned in Gdynia?",
        ("And the Aurora?", "and the aurora?", "what about the aurora launch?"),
    ),
    "pl": (
        ("Pralka Fala", "Pralka Fala kosztuje 1900 zł, a dostawa do Gdyni trwa dwa dni."),
        ("Piekarnik Żar", "Żar piecze w 300 stopniach i kosztuje 2400 zł."),
        "Ile trwa dostawa pralki Fala do Gdyni?",
        ("A Żar?", "a piekarnik żar?"),
    ),
    "vi": (
        ("Xe Sóng Biển", "Xe Sóng Biển chạy xăng, thay nhớt ở xưởng Hải Châu sau 2000 km."),
        ("Xe Đom Đóm", "Đom Đóm chạy điện, sạc tại nhà trong bốn giờ."),
        "Xe Sóng Biển thay nhớt ở xưởng Hải Châu khi nào?",
        ("Còn Đom Đóm thì sao?", "còn xe đom đóm?"),
    ),
    "zh-Hant": (
        ("植牙", "植牙要分兩次門診，麻醉後約一小時完成，費用八萬元。"),
        ("洗牙", "洗牙每半年一次，由牙醫師處理。"),
        "植牙麻醉後要多久完成？",
        ("那洗牙呢？", "洗牙呢"),
    ),
}


@pytest.mark.parametrize("language", TURNS)
async def test_a_document_that_the_follow_up_names_comes_before_the_one_talked_about(
    tmp_path: Path, language: str
) -> None:
    (old, told), (new, other), opening, follow_ups = TURNS[language]
    url = f"sqlite:///{tmp_path}/names.db"
    await fill(url, titled("old.md", old, told), titled("new.md", new, other))
    async with open_retrieval(url, SETTINGS) as retrieval:
        for number, follow_up in enumerate(follow_ups):
            assert found_in(await retrieval.ask(question(opening, conversation=f"c{number}")))[0] == "old.md"
            assert found_in(await retrieval.ask(question(follow_up, conversation=f"c{number}")))[0] == "new.md"
            back = f"{follow_up[:-1]} / {old}?"
            assert "old.md" in found_in(await retrieval.ask(question(back, conversation=f"c{number}")))


async def test_a_name_that_stands_in_no_title_is_found_by_its_capital(kitchen: str) -> None:
    async with open_retrieval(kitchen, SETTINGS) as retrieval:
        await retrieval.ask(question("How loud is the Brook dishwasher for fourteen settings?", conversation="c1"))
        turned = await retrieval.ask(question("And the Fjord?", conversation="c1"))
    assert found_in(turned)[0] == "fridge.md"
    assert not {"brook", "dishwa"} & set(turned.metrics["enrichedWith"])


async def test_a_word_of_a_title_that_the_last_document_speaks_of_too_turns_to_no_other(kitchen: str) -> None:
    await fill(kitchen, titled("terms.md", "Warranty", "A warranty begins on the day of delivery."))
    async with open_retrieval(kitchen, SETTINGS) as retrieval:
        await retrieval.ask(question(BROOK, conversation="c1"))
        assert found_in(await retrieval.ask(question(WARRANTY, conversation="c1")))[0] == "dishwasher.md"


@pytest.mark.parametrize("whole", ["bluefin launch", "Who approved the budget?"])
async def test_a_question_that_is_answered_by_itself_is_not_overruled_by_its_conversation(
    tmp_path: Path, whole: str
) -> None:
    url = f"sqlite:///{tmp_path}/whole.db"
    await fill(
        url,
        document("rag.md", "Retrieval-augmented generation (RAG): a language model answers from passages of a search."),
        document(
            "plan.md", "The bluefin launch is in May. The board approved the budget of 20000 euro for nine people."
        ),
    )
    async with open_retrieval(url, SETTINGS) as retrieval:
        for about in (
            "What is RAG, retrieval-augmented generation?",
            "Which language model answers from passages of a search?",
        ):
            await retrieval.ask(question(about, conversation="c1"))
        assert found_in(await retrieval.ask(question(whole, conversation="c1", top_k=1))) == ["plan.md"]


def titled(id_: str, title: str, text: str) -> Document:
    return replace(document(id_, text), title=title)


async def test_all_of_the_last_passages_counts(tmp_path: Path) -> None:
    """What stands behind the two hundredth character of what was found tells which of two words was taken up."""
    url = f"sqlite:///{tmp_path}/long.db"
    await fill(
        url,
        document("both.md", f"Guide to appliances. {'It is about the kitchen. ' * 20}The oven is kept closed."),
        document("oven.md", "An oven is kept closed and heats."),
        document("fridge.md", "A fridge is kept upright and cools."),
    )
    async with open_retrieval(url, SETTINGS) as retrieval:
        await retrieval.ask(question("A fridge or an oven?", conversation="c1"))
        await retrieval.ask(question("Which guide to kitchen appliances?", conversation="c1", top_k=1))
        lent = (await retrieval.ask(question("And is it kept?", conversation="c1"))).metrics["enrichedWith"]
    assert lent.index("oven") < lent.index("fridg")


async def cached(retrieval: Retrieval, *queries: str, conversation: str = "c1") -> list[bool]:
    return [(await retrieval.ask(question(one, conversation=conversation))).cached for one in queries]


async def test_a_repeated_question_is_served_from_the_cache_in_its_own_conversation(kitchen: str) -> None:
    async with open_retrieval(kitchen, SETTINGS) as retrieval:
        asked = [BROOK, BROOK, BROOK, WARRANTY, WARRANTY, f" {WARRANTY}"]
        assert await cached(retrieval, *asked) == [False, True, True, False, True, True]
        last = await retrieval.ask(question(WARRANTY, conversation="c1"))
        assert found_in(last)[0] == "dishwasher.md"
        assert (last.metrics["cacheHitRate"], last.metrics["enriched"]) == (round(5 / 7, 4), True)


async def test_an_opening_that_is_repeated_after_its_follow_up_is_searched_by_itself_again(kitchen: str) -> None:
    async with open_retrieval(kitchen, SETTINGS) as retrieval:
        first = await retrieval.ask(question(BROOK, conversation="c1"))
        await retrieval.ask(question("How loud is it?", conversation="c1"))
        again = await retrieval.ask(question(BROOK, conversation="c1"))
        assert (again.cached, again.metrics["enrichedWith"]) == (True, [])
        assert found_in(again) == found_in(first)


async def test_an_opening_that_needs_its_conversation_is_enriched_when_repeated(kitchen: str) -> None:
    async with open_retrieval(kitchen, SETTINGS) as retrieval:
        await retrieval.ask(question("How long is its warranty?", conversation="c1"))
        await retrieval.ask(question(FJORD, conversation="c1"))
        again = await retrieval.ask(question("How long is its warranty?", conversation="c1"))
        assert found_in(again)[0] == "fridge.md"


async def test_the_same_talk_is_served_from_the_cache_in_another_conversation(kitchen: str) -> None:
    async with open_retrieval(kitchen, SETTINGS) as retrieval:
        assert await cached(retrieval, BROOK, WARRANTY) == [False, False]
        assert await cached(retrieval, BROOK, WARRANTY, conversation="c2") == [True, True]


@pytest.mark.parametrize(
    "asked", ["What is the Brook dishwasher?", "Zmywarka Brook?", "Máy rửa Brook?", "Brook 洗碗機"]
)
async def test_a_question_in_other_capitals_is_served_from_the_cache(kitchen: str, asked: str) -> None:
    async with open_retrieval(kitchen, SETTINGS) as retrieval, open_knowledge(kitchen, SETTINGS) as knowledge:
        assert [(await retrieval.ask(question(one))).cached for one in (asked, asked.lower())] == [False, True]
        both = [await knowledge.ask(Access("default", "ann"), one) for one in (asked, asked.upper())]
        assert [one.cached for one in both] == [False, True]


async def test_the_same_words_about_another_topic_are_another_question(kitchen: str) -> None:
    async with open_retrieval(kitchen, SETTINGS) as retrieval:
        assert await cached(retrieval, BROOK, WARRANTY, FJORD, WARRANTY) == [False] * 4
        assert found_in(await retrieval.ask(question(WARRANTY, conversation="c1")))[0] == "fridge.md"
        assert not (await retrieval.ask(question(WARRANTY))).cached, "nor is it the same without a conversation"


async def test_follow_ups_after_the_same_question_are_not_served_each_others_answers(kitchen: str) -> None:
    long = "What is the Brook dishwasher with fourteen settings, a child lock, a delayed start and three spray arms?"
    async with open_retrieval(kitchen, SETTINGS) as retrieval:
        assert await cached(retrieval, long, "Is it loud?", "Is it cheap?") == [False] * 3


async def test_a_rewritten_question_is_not_enriched_again_and_is_cached_as_it_was_rewritten(kitchen: str) -> None:
    async def complete(_: str) -> str:
        return "How long is the warranty?"

    async with open_retrieval(kitchen, SETTINGS, OwnParts(complete=complete)) as retrieval:
        await retrieval.ask(question(BROOK, conversation="c1"))
        rewritten = await retrieval.ask(question("And how long does it last?", conversation="c1"))
        assert rewritten.metrics.items() >= {"rewritten": True, "enriched": True, "enrichedWith": []}.items()
        assert (await retrieval.ask(question(WARRANTY))).cached


async def test_a_repeated_opening_needs_no_model_to_rewrite_it(kitchen: str) -> None:
    prompts: list[str] = []

    async def complete(prompt: str) -> str:
        prompts.append(prompt)
        return "something else"

    async with open_retrieval(kitchen, SETTINGS, OwnParts(complete=complete)) as retrieval:
        assert await cached(retrieval, BROOK, BROOK) == [False, True]
    assert prompts == []
