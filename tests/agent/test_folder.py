"""An assistant's folder: what it may say, and how one that cannot be used is refused."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.agent.conftest import EXAMPLES
from threadkeep import Settings
from threadkeep.agent.config import HISTORY_BLOCKS
from threadkeep.agent.folder import load_folder
from threadkeep.errors import InvalidAssistant


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLES / "pc_shop", tmp_path / "shop"))


def changed(path: Path, old: str, new: str) -> int:
    """The line of what was changed."""
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return text[: text.index(old)].count("\n") + 1


@pytest.mark.parametrize("name", ["pc_shop", "hotel_concierge"])
def test_the_examples_can_be_used(name: str) -> None:
    folder = load_folder(EXAMPLES / name, Settings())
    assert folder.config.name == name
    assert folder.knowledge is not None


def test_the_greeting_is_the_line_of_the_persona_that_says_so(shop: Path) -> None:
    (shop / "persona.md").write_text("You help.\nGreeting: Xin chào!\nGreeting.en: Hello!\nBe brief.", encoding="utf-8")
    persona = load_folder(shop, Settings()).persona
    assert persona.greeting("vi") == "Xin chào!"
    assert persona.greeting("en") == "Hello!"
    assert "Greeting" not in persona.text
    assert persona.text.startswith("You help.")


def test_the_persona_is_cut_to_as_many_characters_as_it_may_have(shop: Path) -> None:
    (shop / "persona.md").write_text("x" * 9_000, encoding="utf-8")
    assert len(load_folder(shop, Settings()).persona.text) == 4_000
    assert len(load_folder(shop, Settings(persona_max_chars=50)).persona.text) == 50


def test_persona_path_names_another_persona(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "system_persona_vi.md"
    other.write_text("Greeting: Chào từ nơi khác\nMột trợ lý khác.", encoding="utf-8")
    monkeypatch.setenv("PERSONA_PATH", str(other))
    monkeypatch.setenv("PERSONA_MAX_CHARS", "7")
    persona = load_folder(shop, Settings()).persona
    assert persona.greeting("vi") == "Chào từ nơi khác"
    assert persona.text == "Một trợ"


def test_the_default_persona_is_used_where_the_folder_has_none(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (shop / "persona.md").unlink()
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "system_persona_vi.md").write_text("Greeting: Dạ, em chào!\nMột trợ lý.", encoding="utf-8")
    persona = load_folder(shop, Settings()).persona
    assert (persona.greeting("vi"), persona.text) == ("Dạ, em chào!", "Một trợ lý.")


def test_files_that_an_editor_has_marked_as_utf_8_say_the_same(shop: Path) -> None:
    plain = load_folder(shop, Settings())
    for name in ("assistant.toml", "persona.md", "prompt.md"):
        marked = (shop / name).read_text("utf-8").replace("\n", "\r\n")
        (shop / name).write_bytes(marked.encode("utf-8-sig"))
    assert load_folder(shop, Settings()) == plain


def test_the_setting_is_the_threshold_unless_the_folder_names_one(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTENT_CONFIDENCE_THRESHOLD", "0.8")
    assert load_folder(shop, Settings()).threshold == 0.8
    changed(shop / "assistant.toml", 'default_language = "vi"', 'default_language = "vi"\nconfidence_threshold = 0.3')
    assert load_folder(shop, Settings()).threshold == 0.3


def test_a_prompt_without_a_word_on_history_gets_one(shop: Path) -> None:
    (shop / "prompt.md").write_text("Answer well.", encoding="utf-8")
    assert load_folder(shop, Settings()).prompt == f"Answer well.\n\n{HISTORY_BLOCKS['vi']}"


def test_the_concierges_prompt_ends_with_the_block_its_authors_wrote() -> None:
    folder = load_folder(EXAMPLES / "hotel_concierge", Settings())
    assert folder.prompt.endswith(HISTORY_BLOCKS["pl"])
    assert (EXAMPLES / "hotel_concierge" / "prompt.txt").read_text("utf-8").rstrip().endswith(HISTORY_BLOCKS["pl"])
    assert HISTORY_BLOCKS["pl"].splitlines() == [
        "Historia rozmowy",
        "- Możesz otrzymywać historię poprzednich wiadomości w tej samej sesji (user/assistant).",
        "- Jeśli historia jest pusta, traktuj bieżące pytanie jak pierwsze w nowej rozmowie.",
        "- Jeśli historia jest niepusta, wykorzystaj ją jako kontekst odpowiedzi, nie powtarzaj jednak mechanicznie"
        " całej treści — odnoś się do niej naturalnie.",
    ]


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        ("assistant.toml", 'languages = ["vi", "en"]', 'languages = ["vi", "en"', "is not TOML"),
        ("assistant.toml", 'default_language = "vi"', 'default_langage = "vi"', "default_language: Field required"),
        ("assistant.toml", 'ask_on = "Quý', 'ask_onn = "Quý', "phrases.vi.ask_onn: Extra inputs"),
        ("assistant.toml", 'retrieval = "always"', 'retrieval = "perhaps"', "intents.1.retrieval"),
        ("assistant.toml", 'default_language = "vi"', 'default_language = "fr"', "not one of languages"),
        ("assistant.toml", 'name = "warranty"', 'name = "shopping"', "same name"),
        ("assistant.toml", 'name = "warranty"', 'name = "unknown"', "is taken"),
    ],
)
def test_a_mistake_in_the_configuration_is_told_with_its_line(
    shop: Path, file: str, old: str, new: str, problem: str
) -> None:
    changed(shop / file, old, new)
    with pytest.raises(InvalidAssistant, match=re.escape(problem)) as refused:
        load_folder(shop, Settings())
    assert re.match(rf"{re.escape(str(shop / file))}:\d+: .+; .+", str(refused.value))


def test_the_line_is_the_one_where_the_mistake_stands(shop: Path) -> None:
    line = changed(shop / "assistant.toml", 'retrieval = "always"', 'retrieval = "perhaps"')
    with pytest.raises(InvalidAssistant) as refused:
        load_folder(shop, Settings())
    assert str(refused.value).startswith(f"{shop / 'assistant.toml'}:{line}:")


TOOLS = {
    "def broken(:\n": "is not Python",
    "import nothing_like_it\n": "fails on import",
    "def look(what: str) -> str:\n    return what\n": "has no docstring",
    'def look(what) -> str:\n    """Looks."""\n    return what\n': "has no annotation",
    'def look(*what: str) -> str:\n    """Looks."""\n    return ""\n': "name every parameter",
    'def look(what: str, /) -> str:\n    """Looks."""\n    return ""\n': "take out the slash",
}


@pytest.mark.parametrize("code", list(TOOLS), ids=list(TOOLS.values()))
def test_tools_that_cannot_be_used_are_told_with_their_line(shop: Path, code: str) -> None:
    (shop / "tools.py").write_text("X = 1\n\n" + code, encoding="utf-8")
    with pytest.raises(InvalidAssistant, match=re.escape(TOOLS[code])) as refused:
        load_folder(shop, Settings())
    assert str(refused.value).startswith(f"{shop / 'tools.py'}:3:")


@pytest.mark.parametrize(
    ("missing", "fix"),
    [("assistant.toml", "every assistant has one"), ("persona.md", "PERSONA_PATH"), ("prompt.md", "")],
)
def test_a_missing_file_is_named(shop: Path, missing: str, fix: str) -> None:
    (shop / missing).unlink()
    with pytest.raises(InvalidAssistant, match="is missing") as refused:
        load_folder(shop, Settings())
    assert fix in str(refused.value)


def test_a_persona_that_is_named_and_missing_is_named(shop: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "nope" / "p.md"
    with pytest.raises(InvalidAssistant, match="is missing") as refused:
        load_folder(shop, Settings(PERSONA_PATH=str(elsewhere)))  # pyright: ignore[reportCallIssue]
    assert str(refused.value).startswith(str(elsewhere))
    assert str(shop / "persona.md") not in str(refused.value)


def test_two_prompts_no_text_and_bytes_that_are_none_are_refused(shop: Path) -> None:
    (shop / "prompt.txt").write_text("Answer.", encoding="utf-8")
    with pytest.raises(InvalidAssistant, match="keep one of the two"):
        load_folder(shop, Settings())
    (shop / "prompt.txt").unlink()
    (shop / "prompt.md").write_text(" \n", encoding="utf-8")
    with pytest.raises(InvalidAssistant, match="is empty"):
        load_folder(shop, Settings())
    (shop / "prompt.md").write_bytes(b"fine\nnot \xff\n")
    with pytest.raises(InvalidAssistant, match=r"prompt\.md:2: is not UTF-8"):
        load_folder(shop, Settings())
    with pytest.raises(InvalidAssistant, match="is not a folder"):
        load_folder(shop / "nowhere", Settings())
