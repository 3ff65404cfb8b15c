"""Which app a conversation belongs to: a session says so itself, others by a row of their own."""

from __future__ import annotations

from threadkeep.adapters.adk.ledger import Ledger
from threadkeep.ports.agent_rows import AgentRows, Row, place_of
from threadkeep.scope import Scope


async def of_app(rows: AgentRows, scope: Scope, app: str) -> None:
    """Say so, unless another app was first."""
    row = Row(_key(scope), _key(scope), b"", scope.tenant, scope.user, place_of(scope), app.encode())
    await rows.create(row)


async def is_of_app(rows: AgentRows, scope: Scope, app: str) -> bool:
    """True also for a conversation that no app has claimed."""
    head = await Ledger(rows).head(scope)
    if head is not None:
        return head.body["app"] == app
    found = await rows.get([_key(scope)])
    return not found or found[0].value == app.encode()


def _key(scope: Scope) -> bytes:
    return scope.digest("adk app of")
