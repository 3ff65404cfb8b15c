"""What a question asks for, read from its words alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from threadkeep.recall.dates import Named, dates_in
from threadkeep.recall.function_words import BY_LANGUAGE
from threadkeep.recall.normalise import fold, is_written_without_spaces, query_weights, words_of
from threadkeep.recall.times import asks_how_many, asks_when

_ABOUT_ME = re.compile(
    r"\b(i|me|my|mine|myself|i'm|i've|i'd|i'll)\b|\b(toi|minh|em|chung toi)\b"
    r"|\b(ja|mi|mnie|mna|moj\w{0,3}|moich|moim|mam|jestem|bylem|bylam|mialem|mialam)\b|我"
)
_ABOUT_YOU = re.compile(
    r"\b(you|your|yours)\b|\b(ban)\b|\b(ty|ci|ciebie|tobie|twoj\w{0,3}|powiedziales|mowiles|radziles)\b|你|您"
)
_MADE_FOR_ENGLISH = "wordllama:"


@dataclass(frozen=True)
class Question:
    """`carried` are terms that an earlier turn lends to a follow-up, with the weight they have left.

    `given` are ids of messages that were handed out for the turns before. `asked_in` is the conversation it is asked
    in, `asked_at` the time; without them nothing is nearer to it than anything else.
    """

    text: str
    language: str | None = None
    carried: Mapping[str, float] = field(default_factory=dict[str, float])
    given: frozenset[str] = frozenset()
    asked_in: str | None = None
    asked_at: datetime | None = None

    @cached_property
    def weights(self) -> dict[str, float]:
        """What to look for. Its own terms count fully."""
        return {**self.carried, **query_weights(self.text, self.language)}

    @cached_property
    def folded(self) -> str:
        return fold(self.text)

    @cached_property
    def dates(self) -> list[Named]:
        return dates_in(self.text)

    @property
    def asks_when(self) -> bool:
        return asks_when(self.folded)

    @property
    def asks_how_many(self) -> bool:
        return asks_how_many(self.folded)

    @property
    def is_about_me(self) -> bool:
        return bool(_ABOUT_ME.search(self.folded)) and not self.is_about_you

    @property
    def is_about_you(self) -> bool:
        return bool(_ABOUT_YOU.search(self.folded))

    @cached_property
    def is_in_syllables(self) -> bool:
        """As Vietnamese is written."""
        return any("_" in term for term in self.weights)

    def trust_in(self, model: str) -> float:
        """How much the vectors of this model tell of the question, from 0 to 1. One of no name is the offline one."""
        return self.is_english if not model or model.startswith(_MADE_FOR_ENGLISH) else 1.0

    @cached_property
    def is_english(self) -> float:
        """How sure one can be that it is, from 0 to 1: the offline embedder was made for English."""
        if is_written_without_spaces(self.text):
            return 0.0
        words = words_of(self.text)
        little = {tag: sum(word in known for word in words) for tag, known in BY_LANGUAGE.items()}
        others = max(little["pl"], little["vi"])
        if little["en"] != others:
            return float(little["en"] > others)
        return 0.5 if self.text.isascii() else 0.0
