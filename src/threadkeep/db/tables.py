"""The tables on PostgreSQL, MySQL and MariaDB, and column types that mean the same on all of them.

Migrations create the tables; everything else only reads their shape. Times are whole microseconds since 1970 UTC. Order
is `seq`; `activity`, a counter of each owner's own, orders conversations without a clock. Row ids are never given
twice, so a reader who holds one cannot meet another's row.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.types import TypeEngine

from threadkeep.db.statements import given_text, storable
from threadkeep.scope import MAX_PART_LENGTH

Digest = LargeBinary(16).with_variant(mysql.BINARY(16), "mysql", "mariadb")
Word = Text().with_variant(mysql.VARCHAR(32), "mysql", "mariadb")  # of our own vocabulary: a role, a status, a tag
Short = Text().with_variant(mysql.VARCHAR(255), "mysql", "mariadb")  # a few words of our own making, never searched

WordsOfARow = postgresql.ARRAY(BigInteger).with_variant(mysql.LONGBLOB(), "mysql", "mariadb")


class Exact(TypeDecorator[str]):
    """An id, compared byte for byte: every `_ci` or space-padding collation would merge two users into one."""

    impl = String
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(Text(collation="C"))
        return dialect.type_descriptor(mysql.VARBINARY(MAX_PART_LENGTH * 4))

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:
        return value.encode() if value is not None and dialect.name != "postgresql" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        return value.decode() if isinstance(value, bytes) else value


class AnyText(TypeDecorator[str]):
    """Text of any length that comes back exactly, also with NUL or lone surrogates, which servers refuse."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(Text())
        return dialect.type_descriptor(mysql.LONGTEXT())

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else storable(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else given_text(value)


metadata = MetaData()

owners = Table(
    "tk_owners",
    metadata,
    Column("uid", BigInteger, primary_key=True, autoincrement=True),
    Column("tenant", Exact, nullable=False),
    Column("user_id", Exact, nullable=False),
    UniqueConstraint("tenant", "user_id", name="tk_owners_by_name"),
)

conversations = Table(
    "tk_conversations",
    metadata,
    Column("cid", BigInteger, primary_key=True, autoincrement=True),
    Column("uid", BigInteger, nullable=False),
    Column("conversation", Exact, nullable=False),
    Column("title", AnyText),
    Column("language", Word),
    Column("intent", AnyText),
    Column("status", Word, nullable=False, server_default="active"),
    Column("last_seq", BigInteger, nullable=False, server_default="0"),
    Column("messages", BigInteger, nullable=False, server_default="0"),
    Column("terms", BigInteger, nullable=False, server_default="0"),  # of all its messages together
    Column("activity", BigInteger, nullable=False, server_default="0"),
    Column("started_at", BigInteger, nullable=False),
    Column("last_activity_at", BigInteger, nullable=False),
    Column("session_started_at", BigInteger, nullable=False),
    Column("session_expires_at", BigInteger, nullable=False),
    UniqueConstraint("uid", "conversation", name="tk_conversations_by_name"),
    Index("tk_conversations_by_activity", "uid", "activity"),
)

messages = Table(
    "tk_messages",
    metadata,
    Column("mid", BigInteger, primary_key=True, autoincrement=True),
    Column("cid", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("id", Exact, nullable=False),
    Column("role", Word, nullable=False),
    Column("modality", Word, nullable=False),
    Column("content", AnyText, nullable=False),
    Column("language", Word),
    Column("meta", AnyText),
    Column("ts", BigInteger, nullable=False),
    Column("origin", Short),  # who wrote it, see `origin_as_text`; null before it was recorded
    Column("stored_at", BigInteger),  # when it arrived; null before it was recorded: then `ts` stands for it
    # The search words, repeats included. On PostgreSQL under a GIN index; elsewhere the table `words` finds them.
    Column("words", WordsOfARow),
    UniqueConstraint("cid", "seq", name="tk_messages_by_seq"),
    UniqueConstraint("cid", "id", name="tk_messages_by_id"),
)

# On MySQL and MariaDB only. A full-text index there drops short words and keeps deleted ones in its own tables.
words = Table(
    "tk_words",
    metadata,
    Column("uid", BigInteger, primary_key=True, autoincrement=False),
    Column("word", BigInteger, primary_key=True, autoincrement=False),
    Column("cid", BigInteger, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("times", Integer, nullable=False, server_default="1"),
    Column("length", Integer, nullable=False, server_default="0"),  # of the message, in words; nought: unknown
)

# By which version of the normaliser terms were made, and while they are made anew, how far that has come.
indexes = Table(
    "tk_indexes",
    metadata,
    Column("name", Word, primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("reached", BigInteger, nullable=False, server_default="0"),
)

appends = Table(
    "tk_appends",
    metadata,
    Column("digest", Digest, primary_key=True),
    Column("cid", BigInteger, nullable=False),
    Column("payload", Digest, nullable=False),
    Column("receipt", AnyText, nullable=False),
    Index("tk_appends_by_conversation", "cid"),
)

generations = Table(
    "tk_generations",
    metadata,
    Column("place", Digest, primary_key=True),
    Column("generation", BigInteger, nullable=False),
)

# At most one row: the hot store in front of this archive, and its mode.
fronts = Table(
    "tk_front",
    metadata,
    Column("slot", Integer, primary_key=True, autoincrement=False),
    Column("id", Word, nullable=False),
    Column("durability", Word, nullable=False),
    Column("address", AnyText, nullable=False),
    Column("missed", BigInteger, nullable=False, server_default="0"),
)

tombstones = Table("tk_tombstones", metadata, Column("digest", Digest, primary_key=True))


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
