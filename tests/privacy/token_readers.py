"""How the scans read token numbers: by every encoding that there is, whatever the numbers are."""

from collections.abc import Callable
from functools import partial

from threadkeep.errors import InvalidInput
from threadkeep.models.tokens import ENCODINGS, Tokenizer


def every_encoding() -> list[Callable[[list[int]], str]]:
    return [partial(_read, Tokenizer(name)) for name in ENCODINGS if name != "o200k_harmony"]  # reads as o200k_base


def _read(tokenizer: Tokenizer, numbers: list[int]) -> str:
    try:
        return tokenizer.decode(numbers)
    except InvalidInput:  # a number among them is no token: the others may be
        return "".join(_read_one(tokenizer, number) for number in numbers)


def _read_one(tokenizer: Tokenizer, number: int) -> str:
    try:
        return tokenizer.decode([number])
    except InvalidInput:
        return ""
