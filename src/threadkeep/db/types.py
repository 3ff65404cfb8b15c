"""Column types that mean the same on every server."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Dialect, LargeBinary, String, Text, TypeDecorator
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.types import TypeEngine

from threadkeep.db.texts import given_text, storable
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
