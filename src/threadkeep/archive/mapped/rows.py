"""A turn as a row of your table, and back.

What a column cannot hold is reported before the server refuses it. Others write to these columns as well: ours is read,
and anything else counts as nothing. A turn's `cid` is a content id as IPFS counts it (CIDv1, dag-json, sha2-256,
base32), computed here; nothing is sent anywhere.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeGuard
from typing import cast as typed
from uuid import UUID

from sqlalchemy import ColumnElement, LargeBinary, cast

from threadkeep.archive.mapped.config import REQUIRED
from threadkeep.archive.mapped.io_contract import checked_cid, is_token
from threadkeep.archive.mapped.shape import RealColumn, Shape
from threadkeep.errors import InvalidInput
from threadkeep.ports.journal import TurnRecord, TurnReflection, TurnTokens

_NO_TEXT = ("user_message", "assistant_message")
_IDS = ("conversation_id", "user_id")
_OBJECTS = ("reflection", "text_cache")


@dataclass(frozen=True, slots=True)
class Layout:
    """One mapped table that was found to fit: our field names to its columns."""

    shape: Shape
    columns: Mapping[str, RealColumn]

    def name(self, field: str) -> str:
        return self.columns[field].name

    @property
    def step(self) -> timedelta:
        """The least by which two times differ in this table."""
        time = self.columns["created_at"]
        return timedelta(microseconds=10 ** (6 - time.digits)) if time.kind == "time" else timedelta(microseconds=1)

    @property
    def coarse(self) -> bool:
        return self.step > timedelta(microseconds=1)

    @property
    def keyed(self) -> bool:
        """The server itself keeps a turn from standing there twice."""
        return frozenset((self.name("conversation_id"), self.name("created_at"))) in self.shape.unique

    def moment(self, record: TurnRecord) -> datetime:
        """As exact as the column can hold it."""
        exact = datetime.fromisoformat(record["created_at"])
        return exact - (exact - datetime(1, 1, 1, tzinfo=UTC)) % self.step

    def row(self, record: TurnRecord, at: datetime) -> dict[str, Any]:
        """Column → value. Raises `InvalidInput` naming the field and the column that cannot hold it."""
        values = _values(record, coarse=self.coarse)
        row = {column.name: _stored(field, values[field], column) for field, column in self.columns.items()}
        return row | {self.name("created_at"): self.stored_moment(at)}

    def stored_moment(self, at: datetime) -> Any:
        time = self.columns["created_at"]
        if time.kind != "time":
            return at.isoformat(timespec="microseconds")
        return at if time.zoned else at.replace(tzinfo=None)

    def stored_id(self, field: str, value: str) -> str:
        """As the column gives it back: a UUID has several spellings. Raises `InvalidInput` for what it cannot hold."""
        return _stored(field, value, self.columns[field])

    def of_conversation(self, stored_id: str) -> list[ColumnElement[bool]]:
        """Only rows of this conversation: those of an id that compares alike must not displace its latest ones."""
        real = self.columns["conversation_id"]
        column = self.shape.table.c[real.name]
        same = [column == stored_id]
        if not (real.exact and (real.blanks_count or real.fixed)):
            same.append(cast(column, LargeBinary) == real.encoded(stored_id))
        return same

    def record(self, row: Mapping[str, Any], decode: Decode) -> TurnRecord | None:
        """With the text read from its tokens, if it has tokens of ours; None for a row without a time."""
        values = {field: row[column.name] for field, column in self.columns.items()}
        tokens, at = tokens_in(values["token_data"]), moment_in(values["created_at"])
        encoding = encoding_in(values["token_data"])
        if at is None:
            return None
        return TurnRecord(
            conversation_id=_shown(values["conversation_id"]),
            user_id=_shown(values["user_id"]),
            user_message=text_of(tokens["user"], encoding, decode),
            assistant_message=text_of(tokens["assistant"], encoding, decode),
            reflection=reflection_in(values.get("reflection")),
            token_data=tokens,
            cid=cid_in(values.get("cid")),
            created_at=exact_time_in(values["token_data"]) or at.isoformat(),
        )

    def exact_time(self, row: Mapping[str, Any]) -> datetime:
        column = row[self.name("created_at")]
        exact = moment_in(exact_time_in(row[self.name("token_data")]))
        return exact or moment_in(column) or datetime.min.replace(tzinfo=UTC)

    def kept(self, row: Mapping[str, Any], record: TurnRecord) -> TurnRecord:
        """What stands in the row of this very turn, its texts where they are cached."""
        values = {field: row[column.name] for field, column in self.columns.items()}
        texts = object_in(values.get("text_cache"))
        user, assistant = (text if isinstance(text, str) else None for text in map(texts.get, _NO_TEXT))
        return TurnRecord(
            conversation_id=record["conversation_id"],
            user_id=record["user_id"],
            user_message=user,
            assistant_message=assistant,
            reflection=reflection_in(values.get("reflection")),
            token_data=tokens_in(values["token_data"]),
            cid=cid_in(values.get("cid")),
            created_at=record["created_at"],
        )


def _shown(value: Any) -> str:
    return "" if value is None else str(value)


def _values(record: TurnRecord, *, coarse: bool) -> dict[str, Any]:
    """No text but where a cache for it is mapped."""
    tokens = record["token_data"]
    texts = {name: record[name] for name in _NO_TEXT}
    return {
        "conversation_id": record["conversation_id"],
        "user_id": record["user_id"],
        "user_message": None,
        "assistant_message": None,
        "reflection": record["reflection"],
        "token_data": {**tokens, "at": record["created_at"]} if coarse else tokens,
        "cid": record["cid"] or cid_of(record),
        "text_cache": texts if any(texts.values()) else None,
        "created_at": record["created_at"],
    }


def _stored(field: str, value: Any, column: RealColumn) -> Any:
    if value is None:
        if column.nullable:
            return None
        value = {} if field in _OBJECTS else ""  # where something must be given
    if column.kind == "json":
        return _legible(value)
    if column.kind == "uuid":
        return _uuid(field, value, column)
    value = value if field in REQUIRED else _legible(value)
    few = column.charset is not None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=few, separators=(",", ":"))
    if field in _IDS:
        _check_id(field, text, column)
    _check_length(field, text, column)
    return text


def _legible(value: Any) -> Any:
    """Servers refuse NUL and lone surrogates; the tokens keep them."""
    if isinstance(value, str):
        return value.replace("\x00", "\ufffd").encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    if isinstance(value, list):
        return [_legible(one) for one in typed("list[Any]", value)]
    if isinstance(value, dict):
        return {name: _legible(one) for name, one in typed("dict[str, Any]", value).items()}
    return value


def _uuid(field: str, value: str, column: RealColumn) -> str:
    try:
        return str(UUID(value))
    except ValueError:
        problem = f"is no UUID, and the column {column.name} holds only these"
        raise InvalidInput(field, problem, f"give a UUID, or map another column in columns_map.{field}") from None


def _check_id(field: str, text: str, column: RealColumn) -> None:
    """What would come back as another id."""
    fix = f"give another id, or map another column in columns_map.{field}"
    if column.fixed and text.endswith(" "):
        raise InvalidInput(field, f"ends with a space, which the column {column.name} does not keep", fix)
    if column.encoded(text) is None:
        raise InvalidInput(field, f"has characters that the column {column.name} ({column.charset}) cannot hold", fix)


def _check_length(field: str, text: str, column: RealColumn) -> None:
    most = column.most_chars if column.most_chars is not None else column.most_bytes
    size = len(text) if column.most_chars is not None else len(text.encode("utf-8", "replace"))
    if most is not None and size > most:
        problem = f"needs {size:,} characters, and the column {column.name} holds {most:,}"
        raise InvalidInput(field, problem, f"widen the column, or map another in columns_map.{field}")


Decode = Callable[[list[int], str | None], str]


def tokens_in(value: Any) -> TurnTokens:
    """All three lists, or none of them."""
    found = object_in(value)
    lists = [found.get(name) for name in ("user", "assistant", "reflection")]
    user, assistant, reflection = typed("list[list[int]]", lists) if all(map(_are_numbers, lists)) else ([], [], [])
    return TurnTokens(user=user, assistant=assistant, reflection=reflection)


def encoding_in(value: Any) -> str | None:
    """As rows of earlier versions name it; others identify it by their numbers."""
    encoding = object_in(value).get("encoding")
    return encoding if isinstance(encoding, str) else None


def exact_time_in(value: Any) -> str | None:
    """The exact time of a turn that its column rounds; None for a row of another application."""
    at = object_in(value).get("at")
    return at if isinstance(at, str) and moment_in(at) else None


def text_of(numbers: list[int], encoding: str | None, decode: Decode) -> str | None:
    """Raises `MissingExtra` where only its absence keeps us from reading it."""
    try:
        return decode(numbers, encoding) if numbers else None
    except InvalidInput:
        return None


def reflection_in(value: Any) -> TurnReflection | None:
    found = object_in(value)
    summary, causes = found.get("summary"), found.get("causes")
    if not isinstance(summary, str) or not isinstance(causes, list):
        return None
    return TurnReflection(summary=summary, causes=[str(cause) for cause in typed("list[Any]", causes)])


def moment_in(value: Any) -> datetime | None:
    """In UTC. A time without a zone is UTC already."""
    try:
        when = datetime.fromisoformat(value) if isinstance(value, str) else value
        return when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)
    except (AttributeError, TypeError, ValueError, OverflowError):
        return None


def cid_in(value: Any) -> str | None:
    try:
        return checked_cid(value)
    except InvalidInput:
        return None


def object_in(value: Any) -> Mapping[str, Any]:
    try:
        found = json.loads(value) if isinstance(value, str | bytes) else value
    except (ValueError, RecursionError):
        return {}
    return typed("Mapping[str, Any]", found) if isinstance(found, dict) else {}


def _are_numbers(value: Any) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(is_token(number) for number in typed("list[Any]", value))


_CID_V1_DAG_JSON_SHA256 = bytes((0x01, 0xA9, 0x02, 0x12, 0x20))


def canonical(record: TurnRecord) -> bytes:
    """What the id is of: the turn without its text, which the tokens stand for."""
    kept = {
        "conversation_id": record["conversation_id"],
        "user_id": record["user_id"],
        "reflection": record["reflection"],
        "token_data": {name: record["token_data"][name] for name in ("user", "assistant", "reflection")},
        "created_at": record["created_at"],
    }
    text = json.dumps(kept, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def cid_of(record: TurnRecord) -> str:
    digest = hashlib.sha256(canonical(record)).digest()
    return "b" + base64.b32encode(_CID_V1_DAG_JSON_SHA256 + digest).decode().lower().rstrip("=")
