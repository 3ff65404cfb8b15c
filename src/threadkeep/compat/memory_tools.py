"""The memory tools of an ADK-style agent: they work on plain dict events, on ADK's, and on any session-like object."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from threadkeep.compat.memory_service import MemoryService
from threadkeep.errors import InvalidInput
from threadkeep.policy.redact import RedactionRules, Redactor
from threadkeep.policy.session_events import is_persistable, kept_events, kept_messages, session_record
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.scope import DEFAULT_USER
from threadkeep.sessions.scratch import DEFAULT_TTL_SECONDS, NAMESPACES, ExpiringValues, check_ttl

_redactor = Redactor(RedactionRules(placeholder="plain"))
# Callers know this form of an address from their own code; it allows hosts that no mail could reach, such as `x_y.com`.
# It starts only where a run of such characters does: a long run without an `@` is walked once, not once per character.
_ADDRESS_LIKE = re.compile(r"(?<![\w.%+-])[\w.%+-]++@[\w.-]+\.[A-Za-z]{2,}")


def redact(text: str) -> str:
    """The text with personal data and secrets replaced by `[REDACTED]`."""
    return _ADDRESS_LIKE.sub("[REDACTED]", _redactor(text).text) if text else text


def is_persistable_event(e: Any) -> bool:
    """User text, a voice or image message that has its summary, and model text; nothing else. ADK's `Event` will do."""
    return any(map(is_persistable, _session_events(e)))


def before_persist(events: Iterable[Any]) -> list[dict[str, Any]]:
    """What may be written of these events: redacted, with only the fields that are allowed to stay.

    An ADK `Event` may give two: what the user typed beside a picture, and the picture's summary.
    """
    return kept_events(_shaped(events), redact)


def persist_memory_from_session(session: Any) -> None:
    """Build the session's memory record from what may be kept and hand it to `session.memory.upsert`, if there is one;
    without one, store it where `DATABASE_URL` and `REDIS_URL` say. ADK's `Session` will do.

    `session` needs `id` and `events`; `state`, `startedAt`, `endedAt`, `memory` and `user_id` are used when present.
    The archive keeps the events' order and `ts`, and of a session that is given again only what is new.
    Inside a running loop it returns at once and what fails is logged; anywhere else it returns when all is stored.
    """
    memory = getattr(session, "memory", None)
    if memory is None and _is_adks(session, "sessions.session", "Session"):
        from threadkeep.adapters.adk import persist_memory_from_session as begin

        begin(session)
        return
    if memory is None:
        memory = MemoryService.of_environment(getattr(session, "user_id", None) or DEFAULT_USER)
    events = _shaped(session.events)
    if isinstance(memory, MemoryService):  # the record's three lists have neither order nor times
        memory.upsert(_record(session, ()) | {"events": kept_messages(events, redact)})
    else:
        memory.upsert(_record(session, events))


def _record(session: Any, events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return session_record(
        session.id,
        events,
        redact,
        getattr(session, "state", None),
        getattr(session, "startedAt", None),
        getattr(session, "endedAt", None),
    )


def _shaped(events: Iterable[Any]) -> list[Mapping[str, Any]]:
    return [shaped for event in events for shaped in _session_events(event)]


def _session_events(event: Any) -> Sequence[Mapping[str, Any]]:
    if isinstance(event, Mapping):
        return [cast("Mapping[str, Any]", event)]
    if _is_adks(event, "events.event", "Event"):
        from threadkeep.adapters.adk.events import session_events

        return session_events(event)
    return []


def _is_adks(value: Any, module: str, name: str) -> bool:
    """Whether it is that class of ADK, without importing ADK: an object of it means that ADK is loaded."""
    adk = sys.modules.get(f"google.adk.{module}")
    return adk is not None and isinstance(value, getattr(adk, name))


def put_tool_cache(state: Any, key: str, value: Any, ttl_seconds: int = 900) -> None:
    """Keep a tool's result for the next turns: under `tool.temp.`, with a TTL, never persisted. ADK's `State` will do.

    Raises `InvalidInput` for a state without `set`, and for a TTL of more than half an hour.
    """
    if _is_adks(state, "sessions.state", "State"):
        from threadkeep.adapters.adk import put_tool_cache as put

        put(state, key, value, ttl_seconds)
        return
    if not hasattr(state, "set"):
        raise InvalidInput(
            "state", "has no set(…)", "give threadkeep.compat.State, or what ADK gives a tool: tool_context.state"
        )
    state.set(f"tool.temp.{key}", value, ttl=ttl_seconds, persist=False, ephemeral=True)


class State:
    """Lives in this process only. `tool.temp.*`, `retrieval.cache.*` and `features.*` expire and cannot persist."""

    def __init__(self, clock: Clock = system_clock, never_persist: Iterable[str] = ()) -> None:
        """`never_persist` flags further namespaces, written `name.*`, beside the three that always are."""
        self._scratch = ExpiringValues(clock)
        self._facts: dict[str, Any] = {}
        self._namespaces = (*NAMESPACES, *map(_prefix, never_persist))

    def set(
        self,
        name: str,
        value: Any,
        ttl: float | None = None,
        persist: bool = False,
        ephemeral: bool = True,
        *,
        ttlMs: float | None = None,
    ) -> None:
        """`ttl` in seconds or `ttlMs`; a scratch value with neither gets fifteen minutes. Raises `InvalidInput`."""
        if not name.startswith(self._namespaces):
            self._facts[name] = value
            return
        if persist or not ephemeral:
            raise InvalidInput("persist", f"{name} is scratch state", "leave persist=False and ephemeral=True")
        if ttl is None:
            ttl = DEFAULT_TTL_SECONDS if ttlMs is None else ttlMs / 1000
        check_ttl(ttl)
        self._scratch.put(name, value, ttl)

    def get(self, name: str, default: Any = None) -> Any:
        found = self._scratch.get(name) if name.startswith(self._namespaces) else self._facts.get(name)
        return default if found is None else found


def _prefix(namespace: str) -> str:
    if len(namespace) < 3 or not namespace.endswith(".*"):
        raise InvalidInput("never_persist", "names no namespace", "write it as name.*")
    return namespace.removesuffix("*")
