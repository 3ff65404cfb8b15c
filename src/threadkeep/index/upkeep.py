"""Which version of the normaliser made the stored terms, and making them anew from the archive, some at a time.

SQLite rebuilds rows of FTS5, some messages at a time; servers the words of one conversation at a time, under its lock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from threadkeep.db.database import Database
from threadkeep.db.dialects import Dialect, read_id
from threadkeep.db.sqlite_terms import TermsOf, owned
from threadkeep.db.statements import Change, ChangeEach, Query, Steps, Verb, one_row
from threadkeep.db.words import hashed, insert_words, packed
from threadkeep.scope import Scope

_SECONDS = 600.0  # a conversation may be long
_AT_ONCE = 500  # messages; other writers of the SQLite file wait


class _Rebuilt(NamedTuple):
    messages: int
    reached: int  # the row id that the next piece begins after; 0 at the end


class DatabaseUpkeep:
    """See `ports.index`. While terms are made anew, their version is stored with a minus."""

    def __init__(self, database: Database, terms_of: TermsOf) -> None:
        self._database = database
        self._terms_of = terms_of

    async def claim(self, version: int) -> None:
        if await self.version() is None:
            await self._database.write(lambda: _claim(version, self._database.dialect))

    async def version(self) -> int | None:
        found = await self._database.read(_state)
        return None if found is None else found[0]

    async def rebuild_some(self, version: int) -> int:
        return await self._database.write(
            lambda: _rebuild_some(version, self._terms_of, self._database.dialect), seconds=_SECONDS
        )


def _state() -> Verb[Any | None]:
    return (yield from one_row("SELECT version, reached FROM tk_indexes WHERE name = 'terms'"))


def _claim(version: int, dialect: Dialect) -> Steps:
    used = yield Query("SELECT 1 FROM tk_messages LIMIT 1")
    yield _inserted(0 if used else version, dialect)


def _inserted(version: int, dialect: Dialect) -> Change:
    insert = "INSERT INTO tk_indexes (name, version, reached) VALUES ('terms', :version, 0)"
    return Change(insert + dialect.if_absent("name"), {"version": version})


def _rebuild_some(version: int, terms_of: TermsOf, dialect: Dialect) -> Verb[int]:
    found = yield from _state()
    if found is not None and found[0] == version:
        return 0
    reached = found[1] if found is not None and found[0] == -version else 0
    rebuild: Callable[..., Verb[_Rebuilt]] = _rebuild_fts5 if dialect.is_sqlite else _rebuild_words
    count, reached = yield from rebuild(reached, terms_of, dialect)
    values = {"version": -version if reached else version, "reached": reached}
    yield _inserted(values["version"], dialect)
    yield Change("UPDATE tk_indexes SET version = :version, reached = :reached WHERE name = 'terms'", values)
    return count


def _rebuild_fts5(reached: int, terms_of: TermsOf, dialect: Dialect) -> Verb[_Rebuilt]:
    rows = yield Query(
        "SELECT m.mid, c.uid, c.cid, m.content, t.terms FROM tk_messages m JOIN tk_conversations c ON c.cid = m.cid"
        " JOIN tk_terms t ON t.rowid = m.mid WHERE m.mid > :reached ORDER BY m.mid LIMIT :most",
        {"reached": reached, "most": _AT_ONCE},
    )
    for mid, uid, cid, content, old in rows:
        terms = terms_of(dialect.read_text(content)).split()
        if (new := " ".join(owned(uid, terms))) != old:
            yield Change("UPDATE tk_terms SET terms = :terms WHERE rowid = :mid", {"terms": new, "mid": mid})
            more = len(terms) - len(old.split())
            yield Change(
                "UPDATE tk_conversations SET terms = terms + :more WHERE cid = :cid", {"more": more, "cid": cid}
            )
    if not rows:  # what they were before stays in older segments until these are merged
        yield Change("INSERT INTO tk_terms (tk_terms) VALUES ('optimize')")
        return _Rebuilt(0, 0)
    return _Rebuilt(len(rows), rows[-1][0])


def _rebuild_words(reached: int, terms_of: TermsOf, dialect: Dialect) -> Verb[_Rebuilt]:
    row = yield from one_row(
        "SELECT c.cid, c.uid, o.tenant, o.user_id FROM tk_conversations c JOIN tk_owners o ON o.uid = c.uid"  # noqa: S608
        f" WHERE c.cid > :reached ORDER BY c.cid LIMIT 1{dialect.locked_in('c')}",
        {"reached": reached},
    )
    if row is None:
        return _Rebuilt(0, 0)
    cid, uid, tenant, user = row
    scope = Scope(read_id(tenant), read_id(user))
    rows: Sequence[Any] = yield Query("SELECT mid, seq, content FROM tk_messages WHERE cid = :cid", {"cid": cid})
    made: list[dict[str, Any]] = [
        {"mid": mid, "uid": uid, "cid": cid, "seq": seq, "words": hashed(scope, terms_of(text).split())}
        for mid, seq, text in ((mid, seq, dialect.read_text(content)) for mid, seq, content in rows)
    ]
    stored = [{"mid": one["mid"], "words": packed(one["words"]) if dialect.is_mysql else one["words"]} for one in made]
    yield ChangeEach("UPDATE tk_messages SET words = :words WHERE mid = :mid", stored)
    if dialect.is_mysql:
        yield Change("DELETE FROM tk_words WHERE uid = :uid AND cid = :cid", {"uid": uid, "cid": cid})
        yield from insert_words(made)
    terms = sum(len(one["words"]) for one in made)
    yield Change("UPDATE tk_conversations SET terms = :terms WHERE cid = :cid", {"terms": terms, "cid": cid})
    return _Rebuilt(max(1, len(made)), cid)  # a conversation that was emptied is work done too
