"""A misspelled key in a configuration file names the key that was meant, at the level where it stands."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from threadkeep.agent.folder import load_folder
from threadkeep.archive.mapped.config import MappedConfig
from threadkeep.errors import InvalidAssistant, InvalidSetting, closest
from threadkeep.policy.redact import load_rules
from threadkeep.settings import Settings

SHOP = Path(__file__).parents[2] / "examples" / "pc_shop"


@pytest.mark.parametrize(
    ("added", "known"),
    [
        ("datasource = []", "datasources"),
        ("[budget]\nhistory = 5", "budgets"),
        ("[budgets]\nhistori = 5", "history"),
        ("[slots]\nminute = 5", "minutes"),
        ('[phrases.en]\nask_onn = "more?"', "ask_on"),
        ('[[intents]]\nname = "x"\nkeyword = {en = ["x"]}\nkeywords = {en = ["x"]}', "keywords"),
    ],
)
def test_in_an_assistants_file(tmp_path: Path, added: str, known: str) -> None:
    folder = tmp_path / "shop"
    shutil.copytree(SHOP, folder)
    head = 'name = "shop"\nlanguages = ["en"]\ndefault_language = "en"\n'
    (folder / "assistant.toml").write_text(head + added, "utf-8")
    with pytest.raises(InvalidAssistant) as refused:
        load_folder(folder, Settings())
    assert str(refused.value).endswith(f"; did you mean {known}?")


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ('allows = ["x"]', "allow"),
        ('placeholders = "plain"', "placeholder"),
        ('[[rules]]\nname = "x"', "rule"),
        ('[[rule]]\nname = "t"\npatern = "T"\npattern = "T-[0-9]{6}"\nfinds = ["T-123456"]', "pattern"),
    ],
)
def test_in_a_file_of_redaction_rules(text: str, known: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        load_rules(text)
    assert refused.value.fix == f"did you mean {known}?"


def test_in_the_mapping_of_tables(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"column_map": {}}))
    with pytest.raises(InvalidSetting) as refused:
        MappedConfig.read(tmp_path / "config.json")
    assert refused.value.fix == "did you mean columns_map?"
    (tmp_path / "config.json").write_text(json.dumps({"zzz": {}}))
    with pytest.raises(InvalidSetting) as refused:
        MappedConfig.read(tmp_path / "config.json")
    assert "columns_map" in refused.value.fix


def test_what_is_like_no_name_is_like_none() -> None:
    assert closest("xyzzy", ["allow", "names", "rule"]) is None
    assert closest("Redis-URL", ["redis_url", "database_url"]) == "redis_url"
