"""A talk's language: of the first message that tells it. What is only the default is not kept."""

from __future__ import annotations

from tests.agent.conftest import Open


async def test_a_first_message_that_tells_no_language_leaves_it_open(talk_with: Open) -> None:
    async with talk_with("pc_shop") as talk:
        assert (await talk.say("RTX 5060")).language == "vi"
        assert (await talk.memory.history(talk.scope)).language is None
        assert (await talk.say("How much is the RTX 5060?")).language == "en"
        asked_so_far = talk.detector.calls
        for text in ("ok", "RTX 5060 giá bao nhiêu vậy shop?", "RTX 5070"):
            assert (await talk.say(text)).language == "en"
        assert talk.detector.calls == asked_so_far
        assert (await talk.memory.history(talk.scope)).language == "en"


async def test_a_hello_is_answered_in_its_language_until_a_message_tells_more(talk_with: Open) -> None:
    async with talk_with("pc_shop") as talk:
        assert (await talk.say("hello")).language == "en"
        assert (await talk.say("RTX 5060")).language == "en"
        assert (await talk.say("Tư vấn cho tôi cấu hình chơi game")).language == "vi"
        assert (await talk.say("How much is the RTX 5060?")).language == "vi"


async def test_a_first_message_that_tells_is_the_only_one_the_detector_sees(talk_with: Open) -> None:
    async with talk_with("hotel_concierge") as talk:
        for text in ("Do you have wifi?", "ok", "Dziękuję bardzo", "hello", "Is there a sauna?"):
            assert (await talk.say(text)).language == "en"
    assert talk.detector.calls == 1
