"""One call: who makes it, in which conversation, and how they want to hear of its progress."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from threadkeep.errors import InvalidInput, InvalidScope
from threadkeep.identity.audit import reaching
from threadkeep.identity.principal import Principal
from threadkeep.ports.knowledge import Access
from threadkeep.scope import DEFAULT_USER, Scope

CONVERSATION = "vscode.conversationId"
REQUEST = "vscode.requestId"
NOTES = "notes"  # where is remembered what belongs to no conversation
_LONGEST_REQUEST_ID = 255

Progress = Callable[[int, int, str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Call:
    """`principal` comes from a credential or the server's own configuration, never from what the client says; `owner`
    is the user it acts for, itself or one that it may reach."""

    principal: Principal
    owner: Scope
    conversation: str | None = None
    request_id: str | None = None
    progress: Progress | None = None

    def scope(self, conversation: str | None = None) -> Scope:
        return self.owner if conversation is None else reaching(self.owner.with_conversation(conversation))

    def in_conversation(self, named: str | None) -> Scope:
        """The one that is named, the one the client is in, or the user's notes."""
        return self.scope(named or self.conversation or NOTES)

    @property
    def access(self) -> Access:
        return self.principal.access(self.owner)


def conversation_in(meta: Mapping[str, Any] | None) -> str | None:
    """Raises `InvalidScope`. None where the client does not say, or says "": the call then works without memory."""
    given: Any = (meta or {}).get(CONVERSATION)
    if given is None or given == "":
        return None
    try:
        return Scope(user=DEFAULT_USER, conversation=given).require_conversation()
    except InvalidInput as error:
        raise InvalidScope(f"_meta.{CONVERSATION}", error.problem, error.fix) from None


def request_in(meta: Mapping[str, Any] | None, rpc_id: Any) -> str | None:
    given: Any = (meta or {}).get(REQUEST)
    if isinstance(given, str) and 0 < len(given) <= _LONGEST_REQUEST_ID and given.isprintable():
        return given
    return None if rpc_id is None else str(rpc_id)
