"""The router's own function for a new session's language."""

import pytest

from threadkeep import Settings
from threadkeep.compat import detect_language_bcp47


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("Dzień dobry, czy macie wolne pokoje na weekend?", "pl-PL"),
        ("Cho tôi hỏi giá card màn hình này với ạ", "vi"),
        ("請問附近有什麼好吃的餐廳？", "zh-Hant"),
        ("Is breakfast included in the price of the room?", "en-US"),
    ],
)
async def test_a_first_message_gets_the_tag_of_its_language_in_the_configured_form(text: str, tag: str) -> None:
    settings = Settings(languages=("vi", "pl-PL", "zh-Hant", "en-US"))
    assert await detect_language_bcp47(text, settings=settings) == tag


async def test_the_model_that_is_asked_is_the_one_the_setting_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_MODEL_LANG", "gemini-2.5-flash-lite")
    asked: list[str] = []

    async def ask_model(model: str, prompt: str) -> str:
        asked.append(model)
        return "pl"

    assert await detect_language_bcp47("Czy jest śniadanie?", ask_model) == "pl"
    assert asked == ["gemini-2.5-flash-lite"]


async def test_a_model_that_fails_leaves_the_language_to_be_told_offline() -> None:
    async def ask_model(model: str, prompt: str) -> str:
        raise OSError("no route")

    assert await detect_language_bcp47("Dzień dobry, czy macie wolne pokoje?", ask_model) == "pl"


async def test_a_model_whose_answer_is_withheld_leaves_the_language_to_be_told_offline() -> None:
    async def ask_model(model: str, prompt: str) -> str | None:
        return None

    assert await detect_language_bcp47("Dzień dobry, czy macie wolne pokoje?", ask_model) == "pl"


async def test_when_in_doubt_the_shop_speaks_vietnamese() -> None:
    assert await detect_language_bcp47("ok 123", settings=Settings(default_language="vi")) == "vi"
    assert await detect_language_bcp47("ok 123", settings=Settings()) is None


async def test_a_model_is_asked_about_the_message_as_memory_would_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    prompts: list[str] = []

    async def ask_model(model: str, prompt: str) -> str:
        prompts.append(prompt)
        return "pl"

    await detect_language_bcp47("Karta 4111 1111 1111 1111, ann@example.com?", ask_model)
    assert len(prompts) == 1
    assert "4111" not in prompts[0]
    assert "ann@example.com" not in prompts[0]
