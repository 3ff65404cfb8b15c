"""A search as fixed pieces of SQL with bound values."""

from __future__ import annotations

from typing import Any

from threadkeep.ports.checkpoints import Search
from threadkeep.threads import Thread, escaped, ns_key


def conditions_of(wanted: Search, *, postgres: bool) -> tuple[tuple[str, ...], dict[str, Any]]:
    conditions: list[str] = []
    values: dict[str, Any] = {}

    def also(condition: str, **its_values: Any) -> None:
        conditions.append(condition)
        values.update({name: exact(value, postgres=postgres) for name, value in its_values.items()})

    if wanted.thread is not None:
        also("c.thread_key = :key", key=Thread(wanted.owner, wanted.thread).key)
    else:
        also(
            "c.thread_key IN (SELECT thread_key FROM conversation_metadata WHERE tenant = :tenant AND user_id = :user)",
            tenant=wanted.owner.tenant,
            user=wanted.owner.user,
        )
    if wanted.ns is not None:
        also("c.ns_key = :ns", ns=ns_key(wanted.ns))
    if wanted.id is not None:
        also("c.checkpoint_id BETWEEN :id AND :id", id=escaped(wanted.id))  # not "=": see `statements._one`
    if wanted.before is not None:
        also("c.checkpoint_id < :before", before=escaped(wanted.before))
    for number, fact in enumerate(wanted.facts):
        also(holds(f"fact{number}", postgres=postgres), **{f"fact{number}": fact})
    if wanted.after is not None:
        last = wanted.after
        also(
            "(c.checkpoint_id, c.thread_key, c.ns_key) < (:last_id, :last_key, :last_ns)",
            last_id=escaped(last.id),
            last_key=Thread(wanted.owner, last.thread).key,
            last_ns=ns_key(last.ns),
        )
    return tuple(conditions), values


def holds(fact: str, *, postgres: bool) -> str:
    """Whether a checkpoint has the fact bound under this name, or tells none."""
    found = f"position(CAST(:{fact} AS BYTEA) IN c.facts)" if postgres else f"INSTR(c.facts, :{fact})"
    return f"(c.facts IS NULL OR {found} > 0)"


def exact(value: Any, *, postgres: bool) -> Any:
    """Ids are text with collation "C" on PostgreSQL, bytes on MySQL and MariaDB."""
    return value.encode() if isinstance(value, str) and not postgres else value
