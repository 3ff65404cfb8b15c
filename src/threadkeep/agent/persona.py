"""The persona: a text outside the code. Its lines `Greeting: …` (`Greeting.en: …`) open conversations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from threadkeep.models.language import closest

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
