"""A conversation gets its language from the user's words, once; the detector is asked as little as can be."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.agent.recording import CountedDetector
from threadkeep import ModelResponse, Scope, Settings, UserMessage, open_memory
from threadkeep.compose.memory import tenant_languages
from threadkeep.errors import InvalidSetting
from threadkeep.memory import Memory
from threadkeep.models.language import LanguageRules, OfflineDetector
from threadkeep.settings import load_settings

ME = Scope(tenant="shop", user="u42", conversation="c1")
VIETNAMESE = UserMessage("Tôi muốn đặt một phòng đôi cho hai đêm.")
POLISH = UserMessage("Chciałbym zarezerwować pokój na dwie noce.")
SHORT = UserMessage("ok")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'test.db'}"


@pytest.fixture
def detector() -> CountedDetector:
    return CountedDetector(OfflineDetector())


@pytest.fixture
async def memory(url: str, detector: CountedDetector) -> AsyncIterator[Memory]:
    async with open_memory(url, settings=Settings(), detector=detector) as memory:
        yield memory


async def language_of(memory: Memory, scope: Scope = ME) -> str | None:
    return (await memory.history(scope)).language


async def test_the_first_message_that_tells_gives_the_talk_its_language(memory: Memory) -> None:
    await memory.append(ME, [VIETNAMESE, ModelResponse("Of course.")])
    history = await memory.history(ME)
    assert history.language == "vi"
    assert [message.language for message in history.messages] == ["vi", None]
    session = await memory.session(ME)
    assert session is not None
    assert session.language == "vi"


async def test_the_detector_is_not_asked_again_once_the_talk_has_a_language(
    memory: Memory, detector: CountedDetector
) -> None:
    for event in (VIETNAMESE, POLISH, SHORT, POLISH):
        await memory.append(ME, [event])
    assert (await language_of(memory), detector.calls) == ("vi", 1)


async def test_another_process_does_not_ask_either(url: str, memory: Memory, detector: CountedDetector) -> None:
    await memory.append(ME, [VIETNAMESE])
    theirs = CountedDetector(OfflineDetector())
    async with open_memory(url, settings=Settings(), detector=theirs) as other:
        await other.append(ME, [POLISH])
        await memory.append(ME, [POLISH])
        await other.append(ME, [POLISH])
    assert (await language_of(memory), detector.calls, theirs.calls) == ("vi", 1, 0)


async def test_a_message_too_short_to_tell_leaves_the_talk_open(memory: Memory, detector: CountedDetector) -> None:
    await memory.append(ME, [SHORT])
    assert await language_of(memory) is None
    await memory.append(ME, [POLISH])
    assert (await language_of(memory), detector.calls) == ("pl", 2)


async def test_a_language_the_caller_names_is_taken_without_the_detector(
    memory: Memory, detector: CountedDetector
) -> None:
    await memory.append(ME, [UserMessage("ok", language="pl-PL")])
    await memory.append(ME, [VIETNAMESE])
    elsewhere = ME.with_conversation("c2")
    await memory.set_language(elsewhere, "en")
    await memory.append(elsewhere, [VIETNAMESE])
    assert [await language_of(memory), await language_of(memory, elsewhere)] == ["pl-PL", "en"]
    assert detector.calls == 0


@pytest.mark.parametrize(
    "events",
    [[ModelResponse("How may I help you today?")], [UserMessage(modality="voice", summary="She asks for a room.")]],
)
async def test_only_what_the_user_wrote_tells(
    memory: Memory, detector: CountedDetector, events: list[UserMessage | ModelResponse]
) -> None:
    await memory.append(ME, events)
    assert (await language_of(memory), detector.calls) == (None, 0)


@pytest.mark.parametrize("whole_user", [True, False])
async def test_an_erased_talk_starts_without_a_language(memory: Memory, whole_user: bool) -> None:
    await memory.append(ME, [VIETNAMESE])
    await memory.erase(ME.whole_user if whole_user else ME)
    await memory.append(ME, [POLISH])
    assert await language_of(memory) == "pl"


async def test_an_erase_by_another_process_is_noticed(url: str, memory: Memory) -> None:
    for _ in range(3):
        await memory.append(ME, [VIETNAMESE])
    async with open_memory(url, settings=Settings()) as other:
        await other.erase(ME)
    await memory.append(ME, [POLISH])  # believes that the talk has a language, and learns that it has begun anew
    await memory.append(ME, [POLISH])
    assert await language_of(memory) == "pl"


async def test_a_retry_that_no_longer_asks_the_detector_is_the_same_payload(
    url: str, memory: Memory, detector: CountedDetector
) -> None:
    first = await memory.append(ME, [VIETNAMESE], key="k1")
    again = await memory.append(ME, [VIETNAMESE], key="k1")
    async with open_memory(url, settings=Settings()) as other:
        elsewhere = await other.append(ME, [VIETNAMESE], key="k1")
    assert first == again == elsewhere
    assert (again.replayed, elsewhere.replayed, detector.calls) == (True, True, 1)


async def test_the_detector_sees_no_more_than_is_kept(url: str) -> None:
    class Curious(OfflineDetector):
        seen = ""

        async def detect(self, text, allowed=None):  # type: ignore[no-untyped-def]
            self.seen = text
            return await super().detect(text, allowed)

    detector = Curious()
    async with open_memory(url, settings=Settings(), detector=detector) as memory:
        await memory.append(ME, [UserMessage("Proszę pisać na jan.kowalski@example.pl, dziękuję")])
        assert await language_of(memory) == "pl"
    assert "[REDACTED:EMAIL]" in detector.seen
    assert "kowalski" not in detector.seen


async def test_each_tenant_speaks_its_own_languages(url: str) -> None:
    settings = Settings.model_validate(
        {"languages": "en,pl-PL", "tenant_languages": {"hotel": {"languages": ["vi-VN", "en"], "default": "vi-VN"}}}
    )
    async with open_memory(url, settings=settings) as memory:
        hotel = Scope(tenant="hotel", user="u", conversation="c")
        await memory.append(hotel, [VIETNAMESE])
        await memory.append(ME, [POLISH])
        assert [await language_of(memory, hotel), await language_of(memory)] == ["vi-VN", "pl-PL"]


async def test_more_talks_than_are_remembered_keep_their_languages(
    url: str, detector: CountedDetector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("threadkeep.core.language._MOST_REMEMBERED", 2)
    talks = [ME.with_conversation(f"c{number}") for number in range(5)]
    async with open_memory(url, settings=Settings(), detector=detector) as memory:
        for _ in range(2):
            for talk in talks:
                await memory.append(talk, [VIETNAMESE])
        assert {await language_of(memory, talk) for talk in talks} == {"vi"}
    assert detector.calls == len(talks)


def test_the_languages_may_be_given_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THREADKEEP_LANGUAGES", "vi, pl-PL,zh-Hant")
    monkeypatch.setenv("THREADKEEP_DEFAULT_LANGUAGE", "vi")
    monkeypatch.setenv("THREADKEEP_TENANT_LANGUAGES", '{"hotel": {"languages": ["en-US"]}}')
    languages = tenant_languages(load_settings())
    assert languages.of("shop") == LanguageRules(("vi", "pl-PL", "zh-Hant"), "vi")
    assert languages.of("hotel") == LanguageRules(("en-US",), None)


@pytest.mark.parametrize("value", ["vi,,en", "vi;en", "English", ","])
def test_what_is_no_list_of_languages_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("THREADKEEP_LANGUAGES", value)
    with pytest.raises(InvalidSetting, match="THREADKEEP_LANGUAGES"):
        load_settings()


async def test_a_talk_that_never_tells_is_asked_about_ever_more_seldom(
    memory: Memory, detector: CountedDetector
) -> None:
    for _ in range(100):
        await memory.append(ME, [SHORT])
    assert detector.calls == 8 + len((8, 16, 32, 64))
    for _ in range(29):  # with the 128th it is asked again, and a message that tells still gives it its language
        await memory.append(ME, [VIETNAMESE])
    assert await language_of(memory) == "vi"


async def test_without_a_list_a_talk_is_in_whatever_language_it_is_told_to_be_in(memory: Memory) -> None:
    await memory.append(ME, [UserMessage("Guten Tag, haben Sie noch ein Zimmer für zwei Nächte frei?")])
    assert await language_of(memory) == "de"


async def test_the_languages_of_who_answers_go_before_those_of_the_settings(memory: Memory) -> None:
    await memory.append(ME, [VIETNAMESE], languages=("en", "pl"))
    assert await language_of(memory) is None
    await memory.append(ME, [POLISH], languages=("en", "pl-PL"))
    assert await language_of(memory) == "pl-PL"
