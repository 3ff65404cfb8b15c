"""When two texts say the same, and the digests that stand for a text that was erased.

Texts are compared word by word, folded: compatibility forms and case (NFKC, `casefold`), letters of other scripts that
look Latin, invisible characters, spaces and sentence punctuation make no difference. Diacritics do: in Vietnamese they
tell one word from another.

An erased text is never kept. What stays is a digest for that user, keyed with `THREADKEEP_TOMBSTONE_KEY` where it is
set. Without a key a reader of the database can test a guess against a digest, though not read the text from it.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, TypeVar

from threadkeep.model import Draft, Message
from threadkeep.scope import Scope, length_prefixed

# A phrase of so many words is also recognised inside of a longer text. A shorter one ("yes") would refuse half of what
# an assistant says, and a longer one stands on its own.
SHORTEST_PHRASE, LONGEST_PHRASE = 3, 32

# Letters that look Latin and are not, in lower case, and dashes and apostrophes. A choice of those that a keyboard
# or a page can produce, not the whole of Unicode's list of confusable characters.
_ALIKE = str.maketrans(
    "аеѕіјорсухԁһԛԝӏкмтвнгьαβεζηικμνορτυχıɑɡð‐‑‒–—―−˗﹣‘’ʼ＇",
    "aesijopcyxdhqwlkmtbhrbabezhikmvoptyxiagđ---------''''",
)
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\U000e0000-\U000e0fff]+"
)
# Scripts written without spaces: each character is a word.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_PIECES = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")
_PART_OF_A_WORD = frozenset("#@%&/\\-")  # C#, @ann, 50%, -5


T = TypeVar("T")
# Yields digests to look for and takes those among them that are tombstones, so that every database can run it.
LookUp = Generator[set[bytes], set[bytes], T]


class Words(NamedTuple):
    """The words of a text; `runs_on` says of each whether only spaces stand between it and the word before it."""

    words: tuple[str, ...]
    runs_on: tuple[bool, ...]

    def stretches(self, length: int) -> Iterator[tuple[str, ...]]:
        """Every run of so many words that ends where a number next to it does not make it another value."""
        for start in range(len(self.words) - length + 1):
            end = start + length
            if end < len(self.words) and self.runs_on[end] and self.words[end][0].isdigit():
                continue  # Kraków 2 is not Kraków
            if start and self.runs_on[start] and self.words[start][0].isdigit() and self.words[start - 1][-1].isdigit():
                continue  # 12 34 is not in 99 12 34
            yield self.words[start:end]

    def say(self, phrase: Words) -> bool:
        """Whether the phrase stands in this text, from one word's beginning to another's end."""
        return any(found == phrase.words for found in self.stretches(len(phrase.words)))


def words_of(text: str) -> Words:
    shown = _folded(text)
    words: list[str] = []
    runs_on: list[bool] = []
    end, stopped = 0, True
    for piece in _PIECES.finditer(shown):
        bare = _bare(piece.group())
        stopped = stopped or "\n" in shown[end : piece.start()] or not piece.group().startswith(bare)
        end = piece.end()
        if not bare:
            stopped = True
            continue
        words.append(bare)
        runs_on.append(not stopped)
        stopped = not piece.group().endswith(bare)
    if not words and (whole := "".join(shown.split())):  # nothing but punctuation is a text of its own
        return Words((whole,), (False,))
    return Words(tuple(words), tuple(runs_on))


def is_the_users(message: Draft | Message) -> bool:
    """Whether the user wrote it: no erased text is refused from the user. Of old messages only the role is known."""
    return message.role == "user" if message.origin is None else message.origin.author == "user"


@dataclass(frozen=True, slots=True)
class ErasedTexts:
    """Digests of texts that were erased. Every process that shares a store needs the same `key`."""

    key: bytes = field(default=b"", repr=False)

    @classmethod
    def with_key(cls, setting: str | None) -> ErasedTexts:
        return cls((setting or "").encode())

    def mark(self, scope: Scope) -> bytes:
        """Stands among the tombstones once anything that this user said was erased by its text."""
        return scope.whole_user.digest("erased texts")

    def buried(self, scope: Scope, texts: Iterable[str], phrases: Iterable[str] = ()) -> list[bytes]:
        """All that is to be kept of these texts, and of phrases that are to be recognised inside of others too."""
        digest, looked_for = self._digests(scope), [words_of(phrase).words for phrase in phrases]
        found = {digest(words) for words in (*looked_for, *(words_of(text).words for text in texts)) if words}
        found |= {
            _of_length(scope, len(words)) for words in looked_for if SHORTEST_PHRASE <= len(words) <= LONGEST_PHRASE
        }
        return sorted({self.mark(scope), *found}) if found else []

    def refused(self, scope: Scope, messages: Sequence[Draft | Message]) -> LookUp[list[str]]:
        """Of a user whose `mark` stands: the ids of the messages that say what was erased, the user's own excepted."""
        others = [message for message in messages if not is_the_users(message)]
        erased = yield from self.erased(scope, [message.content for message in others])
        return [message.id for message, gone in zip(others, erased, strict=True) if gone]

    def erased(self, scope: Scope, texts: Sequence[str]) -> LookUp[list[bool]]:
        """Of each text, whether it says what was erased: as a whole, or a phrase that was to be forgotten within it."""
        if not texts:
            return []
        of_length = {_of_length(scope, length): length for length in range(SHORTEST_PHRASE, LONGEST_PHRASE + 1)}
        lengths = [of_length[digest] for digest in (yield set(of_length))]
        said = [self._in(scope, words_of(text), lengths) for text in texts]
        tombstones = yield set[bytes]().union(*said)
        return [not digests.isdisjoint(tombstones) for digests in said]

    def _in(self, scope: Scope, text: Words, lengths: Iterable[int]) -> set[bytes]:
        """With the digests that were made before there was a key."""
        parts = {text.words, *(part for length in lengths for part in text.stretches(length))} - {()}
        made = [self._digests(scope), *([NO_KEY._digests(scope)] if self.key else [])]
        return {digest(part) for digest in made for part in parts}

    def _digests(self, scope: Scope) -> Callable[[tuple[str, ...]], bytes]:
        key = hashlib.sha256(self.key).digest() if self.key else b""
        begun = hashlib.blake2b(scope.whole_user.digest("erased text"), digest_size=16, key=key)

        def digest(words: tuple[str, ...]) -> bytes:
            whole = begun.copy()
            whole.update(length_prefixed(words))
            return whole.digest()

        return digest


NO_KEY = ErasedTexts()


def _of_length(scope: Scope, length: int) -> bytes:
    return scope.whole_user.digest("erased phrase", str(length))


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    seen = unicodedata.normalize("NFKC", _UNSEEN.sub("", text))
    latin = unicodedata.normalize("NFKC", seen.casefold()).translate(_ALIKE)
    return unicodedata.normalize("NFC", latin)  # a look-alike has no composed form: о with an acute becomes ó here


def _bare(piece: str) -> str:
    """Without the punctuation around it; nothing where it is all punctuation."""
    first, last = 0, len(piece)
    while first < last and _is_around(piece[first]):
        first += 1
    while first < last and _is_around(piece[last - 1]):
        last -= 1
    bare = piece[first:last]
    return "" if all(unicodedata.category(char)[0] == "P" for char in bare) else bare


@lru_cache(maxsize=4_096)
def _is_around(char: str) -> bool:
    return char == "`" or (char not in _PART_OF_A_WORD and unicodedata.category(char)[0] == "P")
