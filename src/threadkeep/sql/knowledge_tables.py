"""Vectors and knowledge documents on PostgreSQL, MySQL and MariaDB. Migrations create the tables, as in `tables`."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, LargeBinary, Table, UniqueConstraint

from threadkeep.sql.tables import messages, metadata
from threadkeep.sql.types import AnyText, Digest, Exact, Word


def _numbered(name: str) -> Column[int]:
    return Column(name, BigInteger, primary_key=True, autoincrement=False)


def _of_a_document() -> Column[int]:
    return Column(
        "did", BigInteger, ForeignKey("tk_documents.did", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )


models = Table(
    "tk_models",
    metadata,
    Column("model", BigInteger, primary_key=True, autoincrement=True),
    Column("name", Exact, nullable=False),
    Column("dimensions", BigInteger, nullable=False),
    Column("encoding", Word, nullable=False),
    UniqueConstraint("name", "dimensions", "encoding", name="tk_models_by_name"),
)

vectors = Table(
    "tk_vectors",
    metadata,
    _numbered("uid"),
    _numbered("model"),
    Column("mid", BigInteger, ForeignKey(messages.c.mid, ondelete="CASCADE"), primary_key=True, autoincrement=False),
    _numbered("chunk"),
    Column("vector", LargeBinary, nullable=False),
    Index("tk_vectors_by_message", "mid"),
)

embed_failed = Table(
    "tk_embed_failed",
    metadata,
    Column("mid", BigInteger, ForeignKey(messages.c.mid, ondelete="CASCADE"), primary_key=True, autoincrement=False),
    _numbered("model"),
    Column("reason", AnyText, nullable=False),
    Column("failed_at", BigInteger, nullable=False),
)

documents = Table(
    "tk_documents",
    metadata,
    Column("did", BigInteger, primary_key=True, autoincrement=True),
    Column("tenant", Exact, nullable=False),
    Column("document_id", Exact, nullable=False),
    Column("datasource", Exact, nullable=False),
    Column("access", Word, nullable=False),
    Column("owner", Exact),
    Column("title", AnyText, nullable=False),
    Column("digest", Digest, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("chunks", BigInteger, nullable=False),
    Column("indexed_at", BigInteger, nullable=False),
    UniqueConstraint("tenant", "document_id", name="tk_documents_by_id"),
    Index("tk_documents_by_owner", "tenant", "owner"),
)

readers = Table("tk_document_readers", metadata, _of_a_document(), Column("user_id", Exact, primary_key=True))

parts = Table(
    "tk_document_parts",
    metadata,
    _of_a_document(),
    _numbered("part"),
    Column("heading", AnyText, nullable=False),
    Column("content", AnyText, nullable=False),
)

chunks = Table(
    "tk_chunks",
    metadata,
    _of_a_document(),
    _numbered("chunk"),
    Column("part", BigInteger, nullable=False),
    Column("content", AnyText, nullable=False),
)

chunk_words = Table(
    "tk_chunk_words",
    metadata,
    _numbered("word"),
    _of_a_document(),
    _numbered("chunk"),
    Index("tk_chunk_words_by_document", "did"),
)

chunk_vectors = Table(
    "tk_chunk_vectors",
    metadata,
    _of_a_document(),
    _numbered("model"),
    _numbered("chunk"),
    Column("vector", LargeBinary, nullable=False),
)
