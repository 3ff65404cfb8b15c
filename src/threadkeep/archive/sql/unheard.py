"""Whether the archive has never heard of a conversation, as of every one that begins: one statement, no transaction."""

from __future__ import annotations

from collections.abc import Sequence

from threadkeep.db.driver import DriverConnection, Values
from threadkeep.scope import Scope

# In one statement, so on one snapshot: an erasure comes before all of it or after. Columns have names, or MySQL would
# call them by their text, digests and all, which its driver cannot read.
_ASKED = """
SELECT (SELECT coalesce(sum(generation), 0) FROM tk_generations WHERE place IN (:place, :whole_user)) AS generation,
EXISTS (SELECT 1 FROM tk_conversations c JOIN tk_owners o ON o.uid = c.uid
  WHERE o.tenant = :tenant AND o.user_id = :user AND c.conversation = :conversation) AS stands,
EXISTS (SELECT 1 FROM tk_tombstones WHERE digest IN ({digests})) AS erased,
EXISTS (SELECT 1 FROM tk_appends WHERE digest = :key) AS answered
"""
_NO_KEY = b""
_MOST_IDS = 16  # a longer append is worth a transaction


async def generation_of_unheard(
    line: DriverConnection, scope: Scope, ids: Sequence[str], key: str | None, *, postgres: bool
) -> int | None:
    """None where there is such a conversation, or one of the messages was erased, or the key has been used."""
    if len(ids) > _MOST_IDS:
        return None
    digest = _NO_KEY if key is None else scope.digest("key", key)
    digests = {f"digest{number}": scope.digest("message", id_) for number, id_ in enumerate(ids)}
    values: Values = {
        "place": scope.digest(),
        "whole_user": scope.whole_user.digest(),
        "key": digest,
        **{name: text if postgres else text.encode() for name, text in _named(scope).items()},
        **digests,
    }
    statement = _ASKED.format(digests=", ".join(f":{name}" for name in ("key", *digests)))
    generation, *heard = (await line.rows(statement, values))[0]
    return None if any(heard) else int(generation)


def _named(scope: Scope) -> dict[str, str]:
    return {"tenant": scope.tenant, "user": scope.user, "conversation": scope.require_conversation()}
