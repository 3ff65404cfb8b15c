"""A message's row together with what the index holds of it, which is written and deleted with it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from threadkeep.db.dialects import Dialect
from threadkeep.db.messages import LockedConversation, moment
from threadkeep.db.sqlite_terms import delete_terms
from threadkeep.db.statements import Change, ChangeEach, Query, Steps, Verb
from threadkeep.db.words import insert_words, packed, unpacked
from threadkeep.model import Draft, Message

_COLUMNS = "cid, seq, id, role, modality, content, language, meta, ts, origin, stored_at"
_VALUES = ", ".join(f":{name}" for name in _COLUMNS.split(", "))
_INSERT = f"INSERT INTO tk_messages ({_COLUMNS}) VALUES ({_VALUES})"  # noqa: S608
_INSERT_WITH_WORDS = f"INSERT INTO tk_messages ({_COLUMNS}, words) VALUES ({_VALUES}, :words)"  # noqa: S608


def row_of(cid: int, uid: int, seq: int, draft: Draft | Message, words: Sequence[int]) -> dict[str, Any]:
    """For `insert_messages`. `words` are what a server finds it by; SQLite indexes messages later."""
    return {
        "uid": uid,
        "cid": cid,
        "seq": seq,
        "id": draft.id,
        "role": draft.role,
        "modality": draft.modality,
        "content": draft.content,
        "language": draft.language,
        "meta": json.dumps(dict(draft.meta)) if draft.meta else None,
        "ts": moment(draft.ts),
        "origin": draft.origin.as_text() if draft.origin else None,
        "stored_at": moment(draft.stored_at) if draft.stored_at else None,
        "words": words,
    }


def insert_messages(rows: Sequence[Mapping[str, Any]], dialect: Dialect) -> Steps:
    bound = [
        {**row, "id": dialect.id(row["id"]), "content": dialect.text(row["content"]), "words": _words(row, dialect)}
        for row in rows
    ]
    yield ChangeEach(_INSERT if dialect.is_sqlite else _INSERT_WITH_WORDS, bound)
    if dialect.is_mysql:
        yield from insert_words(rows)


def _words(row: Mapping[str, Any], dialect: Dialect) -> Any:
    return packed(row["words"]) if dialect.is_mysql else list(row["words"])


def delete_message(conversation: LockedConversation, mid: int, dialect: Dialect) -> Verb[str]:
    """Delete the message with what the index holds of it. Return what it said."""
    columns = "seq, content" if dialect.is_sqlite else "seq, content, words"
    rows = yield Query(f"SELECT {columns} FROM tk_messages WHERE mid = :mid", {"mid": mid})  # noqa: S608
    seq, content, *words = rows[0]
    if dialect.is_sqlite:
        fewer = yield from delete_terms(mid)
    else:
        said = _read_words(words[0], dialect)
        fewer = len(said)
        if dialect.is_mysql and said:  # named, they are found by the key
            these, values = dialect.in_list("word", "word", sorted(set(said)))
            where = f"uid = :uid AND cid = :cid AND seq = :seq AND {these}"
            place = {"uid": conversation.uid, "cid": conversation.cid, "seq": seq}
            yield Change(f"DELETE FROM tk_words WHERE {where}", values | place)  # noqa: S608
    yield Change("DELETE FROM tk_messages WHERE mid = :mid", {"mid": mid})
    yield Change(
        "UPDATE tk_conversations SET messages = messages - 1, terms = terms - :fewer WHERE cid = :cid",
        {"fewer": fewer, "cid": conversation.cid},
    )
    return dialect.read_text(content)


def _read_words(stored: Any, dialect: Dialect) -> Sequence[int]:
    if stored is None:
        return ()
    return unpacked(stored) if dialect.is_mysql else stored


def delete_messages(cid: int, uid: int, dialect: Dialect) -> Verb[int]:
    """Delete all of a conversation's messages. Return how many they were."""
    of_it = {"cid": cid}
    if dialect.is_sqlite:
        yield Change("DELETE FROM tk_terms WHERE rowid IN (SELECT mid FROM tk_messages WHERE cid = :cid)", of_it)
    elif dialect.is_mysql:
        yield Change("DELETE FROM tk_words WHERE uid = :uid AND cid = :cid", of_it | {"uid": uid})
    count: int = yield Change("DELETE FROM tk_messages WHERE cid = :cid", of_it)
    return count
