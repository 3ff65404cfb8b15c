"""Settings to what reads text: the embedder that they name, and how tokens are counted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec

from threadkeep.errors import EmbedderUnavailable, MissingExtra, ThreadkeepError
from threadkeep.models.embedders import EmbedderChoice, embedder_for
from threadkeep.models.tokens import BYTES, Tokenizer, estimated_count
from threadkeep.ports.embedder import Embedder, Vectors
from threadkeep.recall.render import CountTokens
from threadkeep.settings import Settings


class Lent:
    """An application's own embedder: used here, held to the port's word, and left open when we are done."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def dimensions(self) -> int | None:
        return self._embedder.dimensions

    async def embed(self, texts: Sequence[str]) -> Vectors:
        from threadkeep.models.embedders.shape import checked  # numpy comes with an extra

        try:
            vectors = await self._embedder.embed(texts)
        except ThreadkeepError:
            raise
        except Exception as error:  # it raises what it likes, and what that says may quote the text
            raise EmbedderUnavailable(f"{self.name}: failed ({type(error).__name__})") from None
        return checked(vectors, len(texts), self.dimensions, self.name)

    async def close(self) -> None:
        """Whoever opened it, closes it."""


def embedder_choice(settings: Settings) -> EmbedderChoice:
    return EmbedderChoice(
        settings.embedder,
        settings.embedder_key,
        settings.embedder_timeout_seconds,
        settings.ollama_host,
        settings.ollama_port,
    )


def chosen_embedder(settings: Settings, own: Embedder | None = None) -> Embedder | None:
    """An application's `own`, or the one that the settings name. Raises `InvalidSetting` and `MissingExtra`."""
    if own is None:
        return embedder_for(embedder_choice(settings))
    if find_spec("numpy") is None:
        raise MissingExtra("embeddings", "embedder=")
    return Lent(own)


def count_tokens(settings: Settings) -> CountTokens:
    """For budgets: as `TOKENIZER_NAME` counts. Where its dictionary is not here these are bytes, never too few."""
    return Tokenizer(settings.tokenizer_name).count


def about_tokens(settings: Settings) -> CountTokens:
    """For sizes that nobody holds us to: where the dictionary is not here, an estimate."""
    return partial(_about, Tokenizer(settings.tokenizer_name))


def _about(tokenizer: Tokenizer, text: str) -> int:
    return estimated_count(text) if tokenizer.encoding == BYTES else tokenizer.count(text)
