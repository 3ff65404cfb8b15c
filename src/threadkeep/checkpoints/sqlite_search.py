"""A search as fixed pieces of SQL with bound values, on SQLite."""

from __future__ import annotations

from threadkeep.ports.checkpoints import Search
from threadkeep.threads import Thread, escaped, ns_key


def conditions_of(wanted: Search) -> tuple[list[str], list[object]]:
    """Fixed pieces of SQL; every value is bound."""
    conditions: list[str] = []
    values: list[object] = []

    def also(condition: str, *its_values: object) -> None:
        conditions.append(condition)
        values.extend(its_values)

    if wanted.thread is not None:
        also("c.thread_key = ?", Thread(wanted.owner, wanted.thread).key)
    else:
        owner = (wanted.owner.tenant, wanted.owner.user)
        also("c.thread_key IN (SELECT thread_key FROM conversation_metadata WHERE tenant = ? AND user_id = ?)", *owner)
    if wanted.ns is not None:
        also("c.ns_key = ?", ns_key(wanted.ns))
    if wanted.id is not None:
        also("c.checkpoint_id = ?", escaped(wanted.id))
    if wanted.before is not None:
        also("c.checkpoint_id < ?", escaped(wanted.before))
    for fact in wanted.facts:
        also("(c.facts IS NULL OR instr(c.facts, ?) > 0)", fact)
    if wanted.after is not None:
        last = wanted.after
        key = Thread(wanted.owner, last.thread).key
        also("(c.checkpoint_id, c.thread_key, c.ns_key) < (?, ?, ?)", escaped(last.id), key, ns_key(last.ns))
    return conditions, values
