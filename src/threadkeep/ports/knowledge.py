"""Knowledge documents: published, private or shared texts, cut into chunks. Who may read is part of every search."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol

from threadkeep.model import Erased
from threadkeep.ports.models import EmbeddingModel, Vector
from threadkeep.scope import Scope, length_prefixed

Role = Literal["SUPER_ADMIN", "ADMIN", "USER"]
AccessLevel = Literal["public", "private", "shared"]
NO_DIGEST = bytes(16)  # of a document that is to be put anew when it is next seen
BETWEEN_HEADINGS = " › "  # in the heading of a part, from the highest down
_NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Access:
    """The identity behind a question: what it may read.

    A SUPER_ADMIN reads all of the tenant. Everybody else, an ADMIN too, reads what is public, what is theirs, and what
    is shared with them; an ADMIN may besides manage the tenant's documents. `user=None` is an unknown user, who reads
    what is public. `acting` is a user of the tenant who asks for `user`: then a document is read only where both may
    read it.
    """

    tenant: str
    user: str | None = None
    roles: frozenset[Role] = frozenset[Role](("USER",))
    acting: str | None = None

    def __post_init__(self) -> None:
        for name in (self.user, self.acting):
            Scope(self.tenant, _NOBODY if name is None else name)  # raises for what no id may be made of

    @property
    def reads_all(self) -> bool:
        return "SUPER_ADMIN" in self.roles

    @property
    def key(self) -> bytes:
        """Equal for two who may read the same: what is cached for one must not answer another."""
        acting = () if self.acting is None else (self.acting,)
        return length_prefixed((self.tenant, "*" if self.reads_all else "=", self.user or "", *acting))


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a document, large enough to be read by itself: what a chunk is shown in."""

    heading: str
    content: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """200–512 tokens, small enough to be found by. `part` is the number of the part it lies in."""

    part: int
    content: str


@dataclass(frozen=True, slots=True)
class Document:
    """`digest` is of all that would change the index; `readers` are the users a shared document is shared with."""

    document_id: str
    datasource: str
    title: str
    digest: bytes
    parts: tuple[Part, ...]
    chunks: tuple[Chunk, ...]
    access: AccessLevel = "public"
    owner: str | None = None
    readers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Readership:
    """Who may read a document: everybody, its owner, or the owner and these readers."""

    access: AccessLevel = "public"
    owner: str | None = None
    readers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    document_id: str
    datasource: str
    title: str
    access: AccessLevel
    owner: str | None
    digest: bytes = field(repr=False)
    version: int  # rises with every put, also after it was removed
    chunks: int
    indexed_at: datetime


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk that was found, with the part it lies in. `matched` counts the terms it holds; `similarity` is the cosine
    of its vector, None where there is none. Scoring them is ranking's."""

    document_id: str
    version: int
    datasource: str
    title: str
    chunk: int
    content: str
    part: int
    heading: str
    parent: str
    matched: int
    similarity: float | None = None

    @property
    def key(self) -> ChunkKey:
        return ChunkKey(self.document_id, self.version, self.chunk)

    @property
    def chunk_id(self) -> str:
        return f"{self.document_id}#chunk_{self.chunk}"

    @property
    def parent_chunk_id(self) -> str:
        return f"{self.document_id}#part_{self.part}"


class ChunkKey(NamedTuple):
    """A chunk of one version of a document."""

    document_id: str
    version: int
    chunk: int


@dataclass(frozen=True, slots=True)
class Readable:
    """What an access may read, in numbers: it changes whenever a document is put, removed, or closed to them."""

    documents: int = 0
    newest: int = 0  # the highest version
    chunks: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """Each chunk once, rarest terms first. Counted is what the access may read, and nothing else."""

    passages: tuple[Passage, ...] = ()
    readable: Readable = Readable()
    holding: Mapping[str, int] = field(default_factory=dict[str, int])  # how many chunks hold each term


@dataclass(frozen=True, slots=True)
class Question:
    """What to look for: normalised terms, a vector, or both; `k` of each; in these datasources, or in all."""

    terms: Sequence[str] = ()
    model: EmbeddingModel | None = None
    vector: Vector | None = None
    k: int = 10
    datasources: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Unembedded:
    tenant: str
    document_id: str
    version: int
    chunks: tuple[str, ...]


class KnowledgeErasure(Protocol):
    async def erase(self, scope: Scope) -> Erased:
        """A whole user's private and shared documents, and their name from others'. A conversation has none."""
        ...


class KnowledgeVectors(Protocol):
    """Vectors of several models may stand side by side, so that a change of models leaves no gap."""

    async def embed(self, found: Unembedded, model: EmbeddingModel, vectors: Any) -> bool:
        """Vectors of a document's chunks; False when it was changed or removed since. Raises `VectorMismatch`."""
        ...

    async def unembedded(
        self, model: EmbeddingModel, tenant: str | None = None, limit: int = 32, after: tuple[str, str] = ("", "")
    ) -> Sequence[Unembedded]:
        """Documents that lack vectors of this model, in the order of tenant and id, from behind `after` on."""
        ...

    async def waiting(self, model: EmbeddingModel, tenant: str | None = None) -> int:
        """How many documents lack vectors of this model."""
        ...

    async def models(self, tenant: str | None = None) -> Mapping[EmbeddingModel, int]:
        """How many documents have vectors, by model."""
        ...

    async def forget_model(self, model: EmbeddingModel) -> int:
        """All vectors of a model that was replaced; how many there were."""
        ...


class KnowledgeStore(KnowledgeErasure, KnowledgeVectors, Protocol):
    async def put(self, tenant: str, document: Document) -> DocumentInfo:
        """Replace the whole document, all or nothing, without vectors."""
        ...

    async def grant(self, tenant: str, document_id: str, readership: Readership) -> bool:
        """From now on these may read it, and no others, whatever it says; False where they did before.

        Its digest is forgotten, so that the next put is a change.
        """
        ...

    async def remove(self, tenant: str, document_id: str) -> bool:
        """Whether it was there."""
        ...

    async def documents(self, tenant: str | None = None, datasource: str | None = None) -> Sequence[DocumentInfo]:
        """For the operator of the index: no access filter. By datasource and id."""
        ...

    async def search(self, access: Access, question: Question) -> Found:
        """Chunks this access may read that hold the rarest of the terms, and those nearest to the vector.

        A document that is removed in between is left out. Raises `VectorMismatch`.
        """
        ...

    async def read(
        self, access: Access, chunks: Collection[ChunkKey], datasources: Sequence[str] | None = None
    ) -> Found:
        """These chunks, as far as they still stand and this access may read them."""
        ...
