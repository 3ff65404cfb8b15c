"""Settings that reach the parts they are for."""

from pathlib import Path

import pytest

from threadkeep import Scope, Settings, UserMessage, open_memory
from threadkeep.errors import InvalidSetting
from threadkeep.models.tokens import Tokenizer

ME = Scope(user="u1", conversation="c1")
RULES = """
allow = ["help@shop.example"]

[[rule]]
name = "ticket"
pattern = "TCK-[0-9]{6}"
finds = ["see TCK-123456"]
spares = ["TCK-12"]
"""


async def kept(settings: Settings, text: str) -> str:
    async with open_memory("sqlite://", settings=settings) as memory:
        await memory.append(ME, [UserMessage(text)])
        return (await memory.history(ME)).messages[0].content


async def test_internal_ids_of_the_operators_own_pattern_are_masked_before_anything_is_kept(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text(RULES)
    settings = Settings(redaction_rules=str(tmp_path / "rules.toml"))
    text = "ticket TCK-123456, mail help@shop.example or an@example.com"
    assert await kept(settings, text) == ("ticket [REDACTED:INTERNAL_ID], mail help@shop.example or [REDACTED:EMAIL]")


async def test_the_plain_style_holds_for_the_operators_rules_too(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text(RULES)
    settings = Settings(redaction_rules=str(tmp_path / "rules.toml"), redaction_style="plain")
    assert await kept(settings, "see TCK-123456") == "see [REDACTED]"


async def test_a_rules_file_may_be_marked_as_utf_8(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_bytes(RULES.encode("utf-8-sig"))
    assert await kept(Settings(redaction_rules=str(tmp_path / "rules.toml")), "TCK-123456") == "[REDACTED:INTERNAL_ID]"


async def test_a_rules_file_that_is_not_there_or_no_text_is_named_by_its_setting(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_bytes(RULES.encode("utf-16"))
    for path in ("/nowhere/rules.toml", str(tmp_path / "rules.toml")):
        with pytest.raises(InvalidSetting, match="THREADKEEP_REDACTION_RULES: cannot be read"):
            await kept(Settings(redaction_rules=path), "x")


async def test_a_rules_file_whose_examples_do_not_hold_keeps_the_memory_from_opening(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text(RULES.replace("see TCK-123456", "see nothing"))
    with pytest.raises(InvalidSetting, match="ticket"):
        await kept(Settings(redaction_rules=str(tmp_path / "rules.toml")), "x")


async def test_a_recall_keeps_its_budget_as_the_named_tokenizer_counts() -> None:
    async with open_memory("sqlite://", settings=Settings()) as memory:
        for number in range(30):
            await memory.append(ME, [UserMessage(f"the peanut story, part {number}, told once more at length")])
        recalled = await memory.recall(ME, "peanut story", k=30, budget=200)
        assert 0 < Tokenizer("cl100k_base").count(recalled.text) <= 200
        # An estimate would have left more of the room unused.
        assert Tokenizer("cl100k_base").count(recalled.text) > 200 - 30
