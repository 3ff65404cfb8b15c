"""Intents found by the keywords that an assistant's folder lists, in every language at once.

The current message counts most; the user's two messages before it count where it names nothing, or only a thing
("and the SSD?"), or several intents. A message written without diacritics is compared without them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from threadkeep.agent.config import UNKNOWN, IntentConfig, Words
from threadkeep.agent.small_talk import is_wish, says_nothing, small_talk
from threadkeep.agent.spelling import spelt
from threadkeep.recall.normalise import BY_LANGUAGE, fold, words_of

RECENT_MESSAGES = 3  # of the user, the current one included
_WEIGHTS = (1.0, 0.8, 0.5)  # newest first
_FADES_BEHIND_THE_CURRENT = 0.25  # once that names something itself
_DOUBT = 0.3  # what is left of it after one keyword
_WEAK = 0.4  # a word that names a thing, beside one that says what to do with it


@dataclass(frozen=True, slots=True)
class IntentInput:
    """`recent_user_messages` are the two or three latest of the user, oldest first, the current one not among them."""

    latest_user_message: str
    recent_user_messages: Sequence[str] = ()
    conversation_id: str = ""
    user_id: str = ""


@dataclass(frozen=True, slots=True)
class IntentDecision:
    """`rationale` is for the debug log and goes nowhere else."""

    intent: str = UNKNOWN
    confidence: float = 0.0
    need_retrieval: bool = False
    rationale: str = ""

    def is_clear(self, threshold: float) -> bool:
        return self.intent != UNKNOWN and self.confidence >= threshold


class Keywords:
    """The words of every language together, each once; whole words, an English plural included."""

    def __init__(self, *lists: Words) -> None:
        every = (spelt(word) for words in lists for some in words.values() for word in some)
        self._words = tuple(dict.fromkeys(every))
        self._exact = _pattern(self._words)
        self._plain = _pattern(fold(word) for word in self._words)

    def found(self, text: str) -> list[str]:
        """The keywords that occur in the text; the longest where several begin at the same character."""
        lowered = spelt(text)
        matches = (self._plain if lowered.isascii() else self._exact).finditer(lowered)
        return list(dict.fromkeys(match.group(1) for match in matches))


def _pattern(words: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted({word for word in words if word}, key=lambda word: (-len(word), word))
    some = "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in longest_first) or r"(?!)"
    # Chinese is written without spaces: a word of it stands anywhere.
    return re.compile(rf"(?:(?<!\w)|(?<=[\u3400-\u9fff]))({some})(?:e?s)?(?:(?!\w)|(?=[\u3400-\u9fff]))")


class KeywordIntents:
    def __init__(self, intents: Sequence[IntentConfig]) -> None:
        self._intents = intents
        self._keywords = {one.name: Keywords(one.keywords, one.more_keywords) for one in intents}
        self._weak = {one.name: Keywords(one.weak_keywords) for one in intents}
        self._retrieval = {one.name: Keywords(one.retrieval_words) for one in intents}

    def decide(self, given: IntentInput) -> IntentDecision:
        texts = [given.latest_user_message, *reversed(given.recent_user_messages)][:RECENT_MESSAGES]
        found = {name: [words.found(text) for text in texts] for name, words in self._keywords.items()}
        worth = {name: [self._worth(name, words) for words in its] for name, its in found.items()}
        named_now = any(its[0] >= 1 for its in worth.values())
        weights = [1.0, *(_FADES_BEHIND_THE_CURRENT * one for one in _WEIGHTS[1:])] if named_now else _WEIGHTS
        scores = {  # what was wanted before casts no doubt on what is named now
            name: sum(weight * one for weight, one in zip(weights, its, strict=False)) if its[0] or not named_now else 0
            for name, its in worth.items()
        }
        best = max(scores, key=lambda name: scores[name], default=UNKNOWN)
        if not scores or scores[best] == 0:
            return IntentDecision(rationale="no keyword")
        confidence = scores[best] / sum(scores.values()) * (1 - _DOUBT ** scores[best])
        words = ", ".join(word for its in found[best] for word in its)
        return IntentDecision(best, round(confidence, 3), self.needs_retrieval(best, texts), f"keywords: {words}")

    def are_all_of(self, text: str) -> bool:
        """Whether a message is made of keywords, little words and politeness."""
        plain = fold(" ".join(text.split()))
        for words in self._keywords.values():
            for word in words.found(text):
                plain = plain.replace(fold(word), " ")
        little = {word for words in BY_LANGUAGE.values() for word in words}
        return all(
            word in little or small_talk(word) or says_nothing(word) or is_wish(word) for word in words_of(plain)
        )

    def _worth(self, intent: str, words: Sequence[str]) -> float:
        return sum(_WEAK if self._weak[intent].found(word) == [word] else 1.0 for word in words)

    def needs_retrieval(self, intent: str, texts: Sequence[str]) -> bool:
        how = next((one.retrieval for one in self._intents if one.name == intent), "always")
        if how != "when":
            return how == "always"
        return any(self._retrieval[intent].found(text) for text in texts)
