"""Who reached whose memory, by which verb, and how that ended: in the log line of each request, as ids, never as text.

A surface begins a trail for every request; what is found out on the way (who calls, which scope they reach) is noted on
it, and stands in the entry that its end writes. Every other log line of the request gets its ids from here.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

from threadkeep.identity.principal import Principal
from threadkeep.policy.admit import Through
from threadkeep.policy.logs import logged_id
from threadkeep.scope import Scope

Outcome = Literal["ok", "denied", "failed"]


@dataclass(slots=True)
class Trail:
    """Of one request. `asked` is set once a caller was looked for: what needs no caller reaches no memory."""

    request_id: str | None  # fit for a log
    surface: str
    asked: bool = False
    who: Principal | None = None  # the real caller, not the user it acts for
    scope: Scope | None = None  # the last one requested, granted or not

    def ids(self) -> dict[str, str | None]:
        """For every line of the request."""
        conversation = self.scope.conversation if self.scope else None
        return {"request_id": self.request_id, "conversation_id": _shown(conversation)}

    def through(self) -> Through:
        """Return the surface and the credential, to be recorded with what the request writes.

        What an administrator writes for another user is an operator's.
        """
        if self.who is None:
            return Through(self.surface)
        by_operator = self.scope is not None and self.who.writes_for(self.scope)
        return Through(self.surface, _shown(self.who.name), by_operator)

    def access(self, outcome: Outcome) -> dict[str, Any]:
        """For the log entry that ends it."""
        if not self.asked:
            return {}
        tenant, user = (self.scope.tenant, self.scope.user) if self.scope else (None, None)
        who = self.who
        return {
            "who": _shown(who.name) if who else None,
            "caller_tenant": _shown(who.tenant) if who else None,
            "caller_user": _shown(who.user) if who else None,
            "tenant": _shown(tenant),
            "user": _shown(user),
            "outcome": outcome,
        }


current_trail: ContextVar[Trail | None] = ContextVar("threadkeep_trail", default=None)


@contextmanager
def trail_of(request_id: str | None, surface: str) -> Generator[Trail]:
    """Of a request, as long as it is worked on here; what it leaves to tasks of its own keeps it.

    The id is fit for a log already: the surface that takes it from a caller sees to that.
    """
    trail = Trail(request_id, surface)
    before = current_trail.set(trail)
    try:
        yield trail
    finally:
        current_trail.reset(before)


def ids_of_this_request() -> dict[str, str | None]:
    trail = current_trail.get()
    return {} if trail is None else trail.ids()


def called_by(who: Principal | None) -> None:
    """Note the caller; None while it is not known: a request that ends there was denied to a stranger."""
    if (trail := current_trail.get()) is not None:
        trail.asked, trail.who = True, who


def reaching(scope: Scope) -> Scope:
    """The same scope, noted before it is decided whether they may."""
    if (trail := current_trail.get()) is not None:
        trail.scope = scope
    return scope


def _shown(value: str | None) -> str | None:
    return None if value is None else logged_id(value)
