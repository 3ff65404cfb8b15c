"""Who reached whose memory, by which verb, and how that ended: in the log line of each request, as ids, never as text.

A surface begins a trail for every request; what is found out on the way (who calls, which scope they reach) is noted on
it, and stands in the line that its end writes. Every other log line of the request gets its ids from here.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

from threadkeep.policy.logged_ids import logged_id
from threadkeep.scope import Scope

Outcome = Literal["ok", "denied", "failed"]


@dataclass(slots=True)
class Trail:
    """Of one request. `asked` once a caller was looked for: what needs no caller reaches nobody's memory."""

    request_id: str | None  # fit for a log
    asked: bool = False
    who: str | None = None  # the credential's name
    scope: Scope | None = None  # the one that was last asked for, granted or not

    def ids(self) -> dict[str, str | None]:
        """For every line of the request."""
        talk = self.scope.conversation if self.scope else None
        return {"request_id": self.request_id, "conversation_id": _shown(talk)}

    def access(self, outcome: Outcome) -> dict[str, Any]:
        """For the line that ends it."""
        if not self.asked:
            return {}
        tenant, user = (self.scope.tenant, self.scope.user) if self.scope else (None, None)
        return {"who": _shown(self.who), "tenant": _shown(tenant), "user": _shown(user), "outcome": outcome}


_current: ContextVar[Trail | None] = ContextVar("threadkeep_trail", default=None)


@contextmanager
def trail_of(request_id: str | None) -> Generator[Trail]:
    """Of a request, as long as it is worked on here; what it leaves to tasks of its own keeps it.

    The id is fit for a log already: whoever takes it from a caller sees to that.
    """
    trail = Trail(request_id)
    before = _current.set(trail)
    try:
        yield trail
    finally:
        _current.reset(before)


def ids_of_this_request() -> dict[str, str | None]:
    trail = _current.get()
    return {} if trail is None else trail.ids()


def called_by(name: str | None) -> None:
    """None while it is not known who: then they were asked for, and it ended there."""
    if (trail := _current.get()) is not None:
        trail.asked, trail.who = True, name


def reaching(scope: Scope) -> Scope:
    """The same scope, noted before it is decided whether they may."""
    if (trail := _current.get()) is not None:
        trail.scope = scope
    return scope


def _shown(value: str | None) -> str | None:
    return None if value is None else logged_id(value)
