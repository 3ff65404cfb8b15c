"""Talk that nobody held: words of four languages, a few of them in every turn, most of them seldom."""

from __future__ import annotations

import random
from itertools import accumulate

from threadkeep import ModelResponse, UserMessage

_SYLLABLES = ["ka", "łó", "mi", "ti", "nę", "ro", "su", "vẽ", "ha", "đo", "pe", "żu", "gi", "ba", "xa", "co"]
_HAN = "花生過敏我對會記住的海房間今天明天請問多少錢謝謝旅館早餐"


class Talk:
    """The same for the same seed."""

    def __init__(self, seed: int, words: int = 600) -> None:
        self._random = random.Random(seed)
        self._words = ["".join(self._random.choices(_SYLLABLES, k=self._random.randint(2, 4))) for _ in range(words)]
        self._often = list(accumulate(1 / (number + 3) for number in range(words)))

    def text(self, least: int, most: int) -> str:
        words = self._random.choices(self._words, cum_weights=self._often, k=self._random.randint(least, most))
        if self._random.random() < 0.2:
            words.append("".join(self._random.choices(_HAN, k=self._random.randint(1, 5))))
        return " ".join(words) + self._random.choice([".", "?", "!", ""])

    def turns(self, name: str, count: int) -> list[UserMessage | ModelResponse]:
        kinds = (UserMessage, ModelResponse)
        return [kinds[number % 2](self.text(2, 30), id=f"{name}-{number}") for number in range(count)]

    def question(self) -> str:
        return self.text(1, 6)
