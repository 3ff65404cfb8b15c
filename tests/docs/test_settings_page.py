"""The settings page lists every setting with the default it really has."""

import json
import re
from pathlib import Path
from typing import Any

from pydantic import AliasChoices

from threadkeep import Settings
from threadkeep.compose.mapped import CONFIG_PATH_VARIABLE
from threadkeep.settings import CONFIG_FILE_VARIABLE, TOKEN_VARIABLE

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"
ROW = re.compile(r"^\| `([A-Z_]+)` \| (.+?) \| .+ \|$", re.MULTILINE)


def shown(default: Any) -> str:
    if default is None:
        return "none"
    if isinstance(default, tuple):
        return f"`{','.join(default)}`"
    return f"`{json.dumps(default) if isinstance(default, dict) else default}`"


def test_every_setting_stands_on_its_page_with_its_default() -> None:
    expected = {}
    for field in Settings.model_fields.values():
        assert isinstance(field.validation_alias, AliasChoices)
        expected[field.validation_alias.choices[0]] = shown(field.get_default(call_default_factory=True))
    assert dict(ROW.findall(PAGE.read_text("utf-8"))) == expected


def test_variables_that_are_no_settings_stand_on_the_page_too() -> None:
    listed = re.findall(r"^\| `([A-Z_]+)` \| [^|]+ \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert listed == [CONFIG_FILE_VARIABLE, TOKEN_VARIABLE, CONFIG_PATH_VARIABLE]
