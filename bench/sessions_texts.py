"""The same talk for everyone: a fixed generator of turns with varied words, some numbers, nothing personal."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

Message = tuple[str, str]  # role, text
Turn = tuple[Message, Message]

_USER_CHARACTERS = 200
_ASSISTANT_CHARACTERS = 600
_VOCABULARY = 5_000
_SYLLABLES = (
    "ba",
    "cor",
    "den",
    "fil",
    "gra",
    "hum",
    "ki",
    "lor",
    "men",
    "nas",
    "o",
    "per",
    "qui",
    "ri",
    "sta",
    "ti",
    "ul",
    "ven",
    "wo",
    "za",
)


def turns(seed: int = 7) -> Iterator[Turn]:
    """Without end. Common words come often and rare ones seldom, as in real talk: an index feels the difference."""
    rng = random.Random(seed)
    words = _vocabulary(rng)
    weights = list(itertools.accumulate(1 / (rank + 1) for rank in range(len(words))))
    while True:
        yield (
            ("user", _text(rng, words, weights, _USER_CHARACTERS)),
            ("assistant", _text(rng, words, weights, _ASSISTANT_CHARACTERS)),
        )


def _vocabulary(rng: random.Random) -> list[str]:
    words: dict[str, None] = {}
    while len(words) < _VOCABULARY:
        words["".join(rng.choices(_SYLLABLES, k=rng.randint(1, 4)))] = None
    return list(words)


def _text(rng: random.Random, words: list[str], weights: list[float], length: int) -> str:
    chosen = rng.choices(words, cum_weights=weights, k=length // 3)
    for _ in range(length // 100):
        chosen[rng.randrange(len(chosen) // 2)] = str(rng.randint(2, 250))
    return " ".join(chosen)[:length].strip() + "."
