"""Models besides chat: embedders, rerankers, language detection, and summaries of recordings and pictures."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Protocol, TypeGuard

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]  # one row for each text, of length one; of a text that says nothing, all zeros
    Vector = NDArray[np.float32]
else:  # numpy comes with an extra
    Vectors = Vector = Any


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """The stamp on every vector."""

    name: str
    dimensions: int


class Embedder(Protocol):
    """Text to vectors. Whatever the model, a vector carries its name and size: those of two models are never
    compared.
    """

    @property
    def name(self) -> str:
        """Of the model with its provider, `ollama:bge-m3`: the same name promises the same vectors."""
        ...

    @property
    def dimensions(self) -> int | None:
        """None until the first answer of a server whose model is not known here."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One row for each text, in order. Give it redacted text only: some embedders send it to a server.

        Raises `EmbedderUnavailable` when a retry can help, `EmbedderRefused` when it cannot, and `VectorMismatch` for
        vectors of another size than the model's.
        """
        ...

    async def close(self) -> None:
        """Closing twice is allowed."""
        ...


async def model_of(embedder: Embedder) -> EmbeddingModel:
    """The embedder's name and size. Embeds a text where the size is not known yet."""
    if embedder.dimensions is None:
        return EmbeddingModel(embedder.name, len((await embedder.embed(["size"]))[0]))
    return EmbeddingModel(embedder.name, embedder.dimensions)


# The question, and the texts found for it, best first; their positions (from 0) in a better order. Positions that are
# left out follow in the order they had, unknown ones are ignored. It may raise `ThreadkeepError`, or
# take too long: then the order stays as it was. Both are given redacted, since some send them to a server.
Rerank = Callable[[str, Sequence[str]], Awaitable[Sequence[int]]]


UNDETERMINED = "und"  # the BCP 47 tag of an undetermined language
LANGUAGE_TAG = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")


def is_language_tag(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and LANGUAGE_TAG.fullmatch(value) is not None


def names_a_language(value: Any) -> TypeGuard[str]:
    """Whether it is a tag other than `und`: a conversation marked with that has no language yet."""
    return is_language_tag(value) and value.lower() != UNDETERMINED


def as_tag(value: Any) -> str | None:
    """`pl_PL`, `PL` or `zh-hant-tw` as BCP 47 writes them; None for what names no language."""
    given = value.replace("_", "-") if isinstance(value, str) else value
    if not names_a_language(given):
        return None
    language, *more = given.split("-")
    written = {2: str.upper, 4: str.title}
    return "-".join([language.lower(), *(written.get(len(part), str.lower)(part) for part in more)])


@dataclass(frozen=True, slots=True)
class Detection:
    """`tag` is one of the allowed tags, as it was given there, or `und`; `confidence` goes from 0 to 1.

    The confidence is that of the text being in this language, not of it being the best of those allowed: a German
    text among English and Polish gets one of the two, with a confidence near 0.
    """

    tag: str
    confidence: float


class LanguageDetector(Protocol):
    """Async because one of its implementations calls a model over the network; the offline one never waits. Code that
    wants no port (scripts, benchmarks) calls the plain function `threadkeep.models.language.detect`.
    """

    async def detect(self, text: str, allowed: Sequence[str] | None = None) -> Detection:
        """`allowed=None` means any language that the implementation knows. Never raises on account of the text."""
        ...


# Below it a message is too short to decide. Of 200 first messages in eight languages (tests/data/language) none reaches
# it in a wrong one, and 93 % of those over three words reach it (84 % without pycld2).
CERTAIN = 0.8


@dataclass(frozen=True, slots=True)
class LanguageRules:
    """What is spoken: the only tags there are, in the form to answer with (none: any language), and the default."""

    allowed: tuple[str, ...] = ()
    default: str | None = None

    @property
    def choice(self) -> tuple[str, ...] | None:
        """As detectors take it."""
        return self.allowed or None


MediaModality = Literal["voice", "image"]
# What a picture is of, by the model; a picture of which only the text was read is "text".
ImageKind = Literal["photo", "screenshot", "document", "drawing", "chart", "map", "text", "other"]


@dataclass(frozen=True, slots=True)
class Medium:
    """A recording or picture during one call: no implementation keeps `file`; the caller that opened it closes it."""

    file: BinaryIO = field(repr=False)  # seekable, at its beginning
    mime: str  # what the bytes are, which is what the sender said they are
    modality: MediaModality
    language: str | None = None  # the conversation's, where it is known


@dataclass(frozen=True, slots=True)
class MediaSummary:
    """`summary` is for memory, one to three sentences. `words` are for the model that answers this turn, and for
    nothing that is kept: the transcript of the recording, or the text in the picture."""

    summary: str = field(repr=False)
    words: str = field(repr=False)
    language: str | None = None
    duration_ms: int | None = None
    image_kind: ImageKind | None = None


class MediaSummariser(Protocol):
    """Raises `InvalidEvent` for what cannot be read or says nothing (its field is `data`), `TooLarge` for what is too
    long, `CapabilityMissing` where a part is not installed, and `ModelError`. Never anything that quotes the medium."""

    async def summarise(self, medium: Medium) -> MediaSummary: ...

    async def close(self) -> None:
        """Closing twice is allowed."""
        ...
