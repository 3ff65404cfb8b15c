"""When two texts say the same, and the digests that stand for a text that was erased.

Texts are compared word by word, folded: compatibility forms and case (NFKC, `casefold`), letters of other scripts that
look Latin, invisible characters, apostrophes, mark-up, and whatever stands between words make no difference. Diacritics
do: in Vietnamese they make two words of one. A word ends at punctuation and symbols; a value such as 12.5, C++ or
@ann is one word.

An erased text is never kept. What stays is a digest for that user, keyed with `THREADKEEP_TOMBSTONE_KEY` where it is
set. Without a key a reader of the database can test a guess against a digest, though not read the text from it.
"""

from __future__ import annotations

import hashlib
import html
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
MARK = "erased texts"  # the user's digest of it is a tombstone once anything of the user was erased by its text

# Letters that look Latin and are not, in lower case, and dashes, apostrophes and a slash. A choice of those that a
# keyboard or a page can produce, not the whole of Unicode's list of confusable characters.
_ALIKE = str.maketrans(
    "аеѕіјорсухԁһԛԝӏкмтвнгьαβεζηικμνορτυχıɑɡð‐‑‒–−˗﹣‘’‛ʼ′＇⁄",
    "aesijopcyxdhqwlkmtbhrbabezhikmvoptyxiagđ-------''''''/",
)
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\U000e0000-\U000e0fff]+"
)
# NFKC would write the first as a space and an accent, and the others as letters of the word before.
_NO_LETTERS = str.maketrans({"´": "'", "™": " ", "℠": " "})
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,8});")
# Known elements only: List<String> is no mark-up. Of a Markdown link the target goes.
_MARK_UP = re.compile(
    r"(?i)</?(?:a|b|br|code|del|div|em|font|h[1-6]|i|ins|kbd|li|mark|ol|p|pre|q|s|small|span|strong|sub|sup|t[dhr]|u|ul)"
    r"(?:\s[^<>]{0,200})?/?>|(?<=\])\([^()\s]{0,300}\)"
)
_BROKEN_WORD = re.compile(r"(?<=[^\W\d_])[-\u2010]\r?\n[ \t>]{0,16}([^\W\d_])")
# Vietnamese writes the tone of oa, oe and uy on either vowel: Hòa and Hoà are one word.
_TONES = {
    first + marked: first_marked + plain
    for first, plain, forms in (
        ("o", "a", "òà óá ỏả õã ọạ"),
        ("o", "e", "òè óé ỏẻ õẽ ọẹ"),
        ("u", "y", "ùỳ úý ủỷ ũỹ ụỵ"),
    )
    for first_marked, marked in forms.split()
}
_TONE = re.compile("|".join(_TONES))

# Scripts written without spaces: each character is a word.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
_SIGNS = "\u2190-\u2bff\U0001f000-\U0001faff"  # emoji, arrows: words of their own, and overlooked between others
_CURRENCY = "$¢£¥\u20a0-\u20cf"
_MEASURES = f"%‰°{_CURRENCY}"  # of the number before them
_LETTER = rf"[^\0-/:-`{{-\x7f{_UNSPACED}{_SIGNS}{_MEASURES}]"  # or a digit; other punctuation is ASCII by now
_TOKEN = re.compile(
    rf"[{_UNSPACED}]|[{_SIGNS}]+"
    rf"|(?<!{_LETTER})(?:[a-z]#|(?:ab|[abo0])-)(?!{_LETTER})"  # C#, and blood groups
    rf"|(?:(?<!{_LETTER})@|(?:(?<![^\s(\[{{\"'|=:;,])[-+])?[{_CURRENCY}]?(?=\d))?"  # @ann, -5, $5
    rf"{_LETTER}+(?:(?:(?<=\d)[.,:/+#*\-](?=\d)|['@](?={_LETTER})){_LETTER}+)*"  # 12.5, 5/2, I'm
    rf"(?:(?<=\d)[{_MEASURES}]|\+{{1,2}}(?!{_LETTER}))?"  # 50%, C++
)
# Between a word and a number that makes another value of it: Kraków 2, GPT-4. Other punctuation separates them.
_JOINED = re.compile(r"[^\S\n]*[-_/#.:+*=^&]?")
_NUMBER = re.compile(rf"[-+]?[{_CURRENCY}]?\d")
_CHINESE_FIGURES = frozenset("〇零一二三四五六七八九十百千萬万億亿兩两廿卅")


class _Separators(dict[int, str]):
    """For `str.translate`: punctuation and symbols that are no part of a value become one mark that separates.

    Filled as characters come, and begun anew before a text of everything makes it large.
    """

    _KEPT = re.compile(rf"[\0-\x7f{_SIGNS}{_MEASURES}]")

    def __missing__(self, code: int) -> str:
        if len(self) >= 4_096:
            self.clear()
        char = chr(code)
        separates = not self._KEPT.match(char) and unicodedata.category(char) in _SEPARATE
        shown = self[code] = ("\n" if char in "\x85\u2028\u2029" else "|") if separates else char
        return shown


_SEPARATE = frozenset(("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc"))
_SEPARATORS = _Separators()


T = TypeVar("T")
# Yields digests to look for and takes those among them that are tombstones, so that every database can run it.
LookUp = Generator[set[bytes], set[bytes], T]


class Words(NamedTuple):
    """The words of a text. `runs_on` says of each whether it is joined to the word before it, so that a number makes
    another value of that; `owners` is each without the ending of a possessive: Ann of Ann's."""

    words: tuple[str, ...]
    runs_on: tuple[bool, ...]
    owners: tuple[str, ...]

    def readings(self) -> Iterator[Words]:
        """The text, and the text without its emoji where it has words besides."""
        yield self
        spoken = [index for index, word in enumerate(self.words) if any(map(str.isalnum, word))]
        if 0 < len(spoken) < len(self.words):
            yield Words(
                tuple(self.words[index] for index in spoken),
                tuple(self.runs_on[index] for index in spoken),
                tuple(self.owners[index] for index in spoken),
            )

    def stretches(self, length: int) -> Iterator[tuple[str, ...]]:
        """Every run of so many words, of each reading, that no number next to it makes another value."""
        for reading in self.readings():
            yield from reading._stretches(length)

    def _stretches(self, length: int) -> Iterator[tuple[str, ...]]:
        words = self.words
        for start in range(len(words) - length + 1):
            end = start + length
            if self._one_value(start) or self._one_value(end):
                continue  # 12 34 is not in 99 12 34, nor 十 in 十二
            if end < len(words) and self.runs_on[end] and _NUMBER.match(words[end]):
                continue  # Kraków 2 is not Kraków
            yield words[start:end]
            if length and self.owners[end - 1] != words[end - 1]:
                yield (*words[start : end - 1], self.owners[end - 1])

    def _one_value(self, index: int) -> bool:
        """Whether figures on both sides of this word's beginning are one number."""
        return (
            0 < index < len(self.words)
            and self.runs_on[index]
            and _is_figure(self.words[index][0])
            and _is_figure(self.words[index - 1][-1])
        )

    def say(self, phrase: Words) -> bool:
        """Whether the phrase stands in this text, from one word's beginning to another's end."""
        return any(found == phrase.words for found in self.stretches(len(phrase.words)))


def words_of(text: str) -> Words:
    folded = _folded(_unmarked(text))
    shown = folded.translate(_SEPARATORS) if not folded.isascii() else folded
    words: list[str] = []
    runs_on: list[bool] = []
    owners: list[str] = []
    end, sign = 0, True
    for token in _TOKEN.finditer(shown):
        word = token.group()
        joined = not sign and _JOINED.fullmatch(shown, end, token.start()) is not None
        end, sign = token.end(), not any(map(str.isalnum, word))
        words.append(word.replace("'", ""))
        runs_on.append(joined and not sign)
        owners.append(word.removesuffix("'s").replace("'", ""))
    if not words and (whole := "".join(folded.split())):  # nothing but punctuation is a text of its own
        return Words((whole,), (False,), (whole,))
    return Words(tuple(words), tuple(runs_on), tuple(owners))


def is_the_users(message: Draft | Message) -> bool:
    """Whether the user wrote it: no erased text is refused from the user. Of old messages only the role is known."""
    return message.role == "user" if message.origin is None else message.origin.author == "user"


@lru_cache(maxsize=4_096)
def _mark(tenant: str, user: str) -> bytes:
    return Scope(tenant, user).digest("erased texts")


@dataclass(frozen=True, slots=True)
class ErasedTexts:
    """Digests of texts that were erased. Every process that shares a store needs the same `key`."""

    key: bytes = field(default=b"", repr=False)

    @classmethod
    def with_key(cls, setting: str | None) -> ErasedTexts:
        return cls((setting or "").encode())

    def buried(self, scope: Scope, texts: Iterable[str], phrases: Iterable[str] = ()) -> list[bytes]:
        """All that is to be kept of these texts, and of phrases that are to be recognised inside of others too."""
        digest, looked_for = self._digests(scope), [words_of(phrase).words for phrase in phrases]
        found = {digest(words) for words in (*looked_for, *(words_of(text).words for text in texts)) if words}
        found |= {
            _of_length(scope, len(words)) for words in looked_for if SHORTEST_PHRASE <= len(words) <= LONGEST_PHRASE
        }
        return sorted({scope.whole_user.digest(MARK), *found}) if found else []

    def refused(self, scope: Scope, messages: Sequence[Draft | Message]) -> LookUp[list[str]]:
        """Of a user whose `MARK` stands: the ids of the messages that say what was erased, the user's own excepted."""
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
        wholes = {reading.words for reading in text.readings()}
        parts = wholes.union(*(text.stretches(length) for length in lengths)) - {()}
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


def _unmarked(text: str) -> str:
    """Without mark-up, and with the words whole that the end of a line cuts in two."""
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    if "<" in text or "](" in text:
        text = _MARK_UP.sub("|", text)
    if "\n" in text:
        text = _BROKEN_WORD.sub(lambda cut: cut[1] if cut[1].islower() else cut[0], text)
    return text


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    seen = unicodedata.normalize("NFKC", _UNSEEN.sub("", text).translate(_NO_LETTERS))
    latin = unicodedata.normalize("NFKC", seen.casefold()).translate(_ALIKE)
    composed = unicodedata.normalize("NFC", latin)  # a look-alike has none: о with an acute becomes ó here
    return _TONE.sub(lambda vowels: _TONES[vowels[0]], composed)


def _is_figure(char: str) -> bool:
    return char.isdigit() or char in _CHINESE_FIGURES
