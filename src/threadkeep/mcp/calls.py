"""One call: who makes it, in which conversation, and how they want to hear of its progress."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from threadkeep.audit import reaching
from threadkeep.errors import InvalidInput, InvalidScope
from threadkeep.identity.principal import Principal
from threadkeep.ports.knowledge import Access
from threadkeep.scope import Scope

CONVERSATION = "vscode.conversationId"
REQUEST = "vscode.requestId"
ANONYMOUS = "anonymous"
NOTES = "notes"  # where is remembered what belongs to no conversation
_LONGEST_REQUEST_ID = 255

Progress = Callable[[int, int, str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Call:
    """`principal` comes from a credential or the server's own configuration, never from what the client says."""

    principal: Principal
    conversation: str | None = None
    request_id: str | None = None
    progress: Progress | None = None

    def scope(self, conversation: str | None = None) -> Scope:
        scope = self.principal.acting(None, None, conversation)
        return scope if conversation is None else reaching(scope)

    def in_conversation(self, named: str | None) -> Scope:
        """The one that is named, the one the client is in, or the user's notes."""
        return self.scope(named or self.conversation or NOTES)

    @property
    def access(self) -> Access:
        return access_of(self.scope(), self.principal)


def access_of(scope: Scope, who: Principal) -> Access:
    """What a caller may read there. Whoever is not known reads what is public, and so does an ADMIN in the place of
    somebody else: only a service speaks for its users."""
    speaks = who.user is None or (who.tenant, who.user) == (scope.tenant, scope.user)
    known = speaks and scope.user != ANONYMOUS
    return Access(scope.tenant, scope.user if known else None, frozenset({who.role}))


def conversation_in(meta: Mapping[str, Any] | None) -> str | None:
    """Raises `InvalidScope`. None where the client does not say: the call then works without memory."""
    given: Any = (meta or {}).get(CONVERSATION)
    if given is None:
        return None
    try:
        return Scope(user=ANONYMOUS, conversation=given).require_conversation()
    except InvalidInput as error:
        raise InvalidScope(f"_meta.{CONVERSATION}", error.problem, error.fix) from None


def request_in(meta: Mapping[str, Any] | None, rpc_id: Any) -> str | None:
    given: Any = (meta or {}).get(REQUEST)
    if isinstance(given, str) and 0 < len(given) <= _LONGEST_REQUEST_ID and given.isprintable():
        return given
    return None if rpc_id is None else str(rpc_id)
