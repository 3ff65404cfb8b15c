"""Where the rows of agent frameworks' sessions stand. Listing or exporting them needs no framework for it."""

from __future__ import annotations

from threadkeep.ports.agent_rows import Row, place_of
from threadkeep.ports.items import encoded_namespace
from threadkeep.scope import Scope

NUMBER_BYTES = 8
FRAME, FLIGHT = b"f", b"t"  # of an ADK session's event: what is kept of it, and what rests sealed until its turn ends


def adk_head(scope: Scope) -> bytes:
    """The key of an ADK session's head."""
    return scope.digest("adk session")


def adk_events(scope: Scope) -> bytes:
    """The space of its events."""
    return scope.digest("adk events")


def openai_mark(scope: Scope) -> bytes:
    """The key of the row that says that a conversation is a session of the Agents SDK."""
    return scope.digest("openai session")


def session_row(
    key: bytes, space: bytes, scope: Scope, value: bytes, version: int = 0, ttl_seconds: float | None = None
) -> Row:
    """A session's own row. Of all rows of agents' sessions only these have a namespace, the user: lists know them by
    it."""
    return Row(
        key,
        space,
        scope.require_conversation().encode("utf-8", "surrogatepass"),
        scope.tenant,
        scope.user,
        place_of(scope),
        value,
        namespace=encoded_namespace([scope.user]),
        version=version,
        ttl_seconds=ttl_seconds,
    )
