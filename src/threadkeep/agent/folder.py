"""An assistant's folder, read and checked: configuration, persona, prompt, knowledge and tools.

A folder that cannot be used is refused before anything starts, with the file, the line and the fix.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from threadkeep.agent.config import AssistantConfig
from threadkeep.agent.phrases import HISTORY_BLOCKS
from threadkeep.agent.places import line_in_toml_error, line_of_key, refused
from threadkeep.agent.tool_file import Tool, load_tools
from threadkeep.models.language import closest
from threadkeep.settings import Settings
from threadkeep.unknown_keys import fix_for, keys_beside

CONFIG = "assistant.toml"
PERSONA = "persona.md"
PROMPTS = ("prompt.txt", "prompt.md")
KNOWLEDGE = "knowledge"
TOOLS = "tools.py"


@dataclass(frozen=True, slots=True)
class AssistantFolder:
    path: Path
    config: AssistantConfig
    persona: Persona
    prompt: str  # with the block on the conversation's history
    threshold: float  # of confidence in an intent
    tools: Sequence[Tool] = ()
    knowledge: Path | None = None


def load_folder(path: Path, settings: Settings) -> AssistantFolder:
    """Raises `InvalidAssistant`."""
    if not path.is_dir():
        raise refused(path, None, "is not a folder", "name the folder that holds assistant.toml")
    config = read_config(path / CONFIG)
    threshold = config.confidence_threshold
    return AssistantFolder(
        path,
        config,
        _persona(path / PERSONA, settings),
        _prompt(path, config.default_language),
        settings.intent_confidence_threshold if threshold is None else threshold,
        load_tools(path / TOOLS) if (path / TOOLS).exists() else (),
        _knowledge(path / KNOWLEDGE),
    )


def read_config(path: Path) -> AssistantConfig:
    text = _read(path, "every assistant has one: start with name and default_language")
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise refused(path, line_in_toml_error(str(error)), f"is not TOML ({error})", "correct the line") from None
    try:
        return AssistantConfig.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = [part for part in first["loc"] if part != "[key]"]
        name = ".".join(map(str, where)) or "the file"
        fix = "add it" if first["type"] == "missing" else "correct it"
        if first["type"] == "extra_forbidden":
            fix = fix_for(str(where[-1]), keys_beside(AssistantConfig, where))
        raise refused(path, line_of_key(text, where) or 1, f"{name}: {first['msg']}", fix) from None


def _persona(own: Path, settings: Settings) -> Persona:
    """`PERSONA_PATH`, where somebody has set it, wins over the folder's own file."""
    is_set = "persona_path" in settings.model_fields_set
    chosen = Path(settings.persona_path) if is_set or not own.exists() else own
    if not chosen.exists():
        fix = "write it, or name another with PERSONA_PATH"
        raise refused(chosen if is_set else own, None, "is missing", f"{fix} (now {chosen})")
    persona = read_persona(_read(chosen, "write who the assistant is"), settings.persona_max_chars)
    if not persona.text:
        raise refused(chosen, 1, "says nothing but a greeting", "write who the assistant is")
    return persona


def _prompt(folder: Path, language: str) -> str:
    found = [folder / name for name in PROMPTS if (folder / name).exists()]
    if not found:
        raise refused(folder / PROMPTS[0], None, "is missing", "write what the assistant does and how it answers")
    if len(found) > 1:
        raise refused(found[1], None, f"stands beside {PROMPTS[0]}", "keep one of the two")
    text = _read(found[0], "write what the assistant does").strip()
    if not text:
        raise refused(found[0], 1, "is empty", "write what the assistant does and how it answers")
    if any(block.splitlines()[0] in text for block in HISTORY_BLOCKS.values()):
        return text
    return f"{text}\n\n{closest(HISTORY_BLOCKS, language) or HISTORY_BLOCKS['en']}"


def _knowledge(path: Path) -> Path | None:
    if path.exists() and not path.is_dir():
        raise refused(path, None, "is a file", "make it a folder of Markdown, text, HTML or PDF files")
    return path if path.exists() else None


def _read(path: Path, fix: str) -> str:
    try:
        return path.read_text("utf-8-sig")  # some editors mark their files
    except FileNotFoundError:
        raise refused(path, None, "is missing", fix) from None
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise refused(path, line, "is not UTF-8", "save it as UTF-8") from None
    except OSError as error:
        raise refused(path, None, f"cannot be read ({error.strerror})", "let this user read it") from None


_GREETING = re.compile(r"^\s*Greeting(?:\.([A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*))?:[ \t]*(.*)$", re.MULTILINE)
_ANY = ""


@dataclass(frozen=True, slots=True)
class Persona:
    """`text` is what the model is told, greetings left out, cut to as many characters as may be."""

    text: str
    greetings: Mapping[str, str] = field(default_factory=dict[str, str])

    def greeting(self, language: str | None) -> str | None:
        return closest(self.greetings, language) or self.greetings.get(_ANY)


def read_persona(text: str, longest: int) -> Persona:
    greetings: dict[str, str] = {}
    for language, greeting in _GREETING.findall(text):
        if greeting.strip():
            greetings.setdefault(language, greeting.strip())
    return Persona(_GREETING.sub("", text).strip()[:longest].rstrip(), greetings)
