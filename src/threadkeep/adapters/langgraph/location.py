"""Whose thread a config is about, the checkpoint within it, and whether it was named on purpose.

Two runs that both read the latest checkpoint and both continue from it fork the thread; neither knows of the other. Who
names a checkpoint when reading (time travel, `update_state` on a snapshot) forks on purpose. A put does not say which
it is, but the reading before it does: LangGraph reads first, and its puts inherit the context of that reading.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from langchain_core.runnables import RunnableConfig

from threadkeep.errors import InvalidInput, InvalidScope
from threadkeep.ports.threads import Thread, short_id, thread_of
from threadkeep.scope import DEFAULT_TENANT, Scope

_USER_KEYS = ("user_id", "user")
_TENANT_KEYS = ("tenant_id", "tenant")


_owner = lru_cache(maxsize=1_024)(Scope)  # every call names one


@dataclass(frozen=True, slots=True)
class Location:
    thread: Thread
    ns: str
    checkpoint: str | None

    def require_checkpoint(self) -> str:
        if self.checkpoint is None:
            raise InvalidInput("configurable.checkpoint_id", "is missing", "writes belong to a checkpoint: name it")
        return self.checkpoint


@dataclass(frozen=True, slots=True)
class Identity:
    """From the constructor, which wins, or from `configurable`."""

    tenant: str | None
    user: str | None

    def owner(self, config: RunnableConfig | None) -> Scope:
        """Raise `InvalidScope` when neither names the user."""
        given = configurable(config)
        user = self.user or _first(given, _USER_KEYS)
        if user is None:
            raise InvalidScope(
                "user",
                "is missing",
                "open the saver with user=…, or give configurable.user_id, or use saver.for_user(…)",
            )
        return _owner(self.tenant or _first(given, _TENANT_KEYS) or DEFAULT_TENANT, user)

    def locate(self, config: RunnableConfig) -> Location:
        given = configurable(config)
        if given.get("thread_id") is None:
            raise InvalidScope("thread_id", "is required in config.configurable", "name the thread")
        ns = given.get("checkpoint_ns") or ""
        if not isinstance(ns, str):
            raise InvalidInput("configurable.checkpoint_ns", f"is a {type(ns).__name__}", "give a string")
        id_ = given.get("checkpoint_id")
        checked = None if id_ is None or id_ == "" else short_id("configurable.checkpoint_id", id_)
        return Location(thread_of(self.owner(config), given["thread_id"]), ns, checked)

    def config(self, owner: Scope, thread: str, ns: str, checkpoint: str) -> RunnableConfig:
        """One that leads back to the checkpoint; it names the user where the constructor does not."""
        given: dict[str, Any] = {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": checkpoint}
        if self.user is None:
            given["user_id"] = owner.user
        if self.tenant is None and owner.tenant != DEFAULT_TENANT:
            given["tenant_id"] = owner.tenant
        return {"configurable": given}


def configurable(config: RunnableConfig | None) -> dict[str, Any]:
    given: Any = (config or {}).get("configurable") or {}
    if not isinstance(given, dict):
        raise InvalidInput("configurable", f"is a {type(given).__name__}", "give a mapping")
    return cast("dict[str, Any]", given)


def _first(given: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    value = next((given[key] for key in keys if given.get(key) not in (None, "")), None)
    return None if value is None else str(value)


_Key = tuple[bytes, str, str | None]
_named: ContextVar[frozenset[_Key]] = ContextVar("threadkeep_named_checkpoints", default=frozenset())


def note_reading(location: Location, found: str | None) -> None:
    """What was read in this context: the checkpoint that was named, or `found` as the latest.

    LangGraph may ask for the latest right after it named one, to know whether it is going back. So a name is forgotten
    only when another replaces it, or when it turns out to be the latest: then this is no fork.
    """
    given = location.checkpoint is not None
    here = {key for key in _named.get() if key[:2] == (location.thread.key, location.ns)}
    removed = here if given else {key for key in here if key[2] == found}
    added = {_key(location)} if given else set[_Key]()
    if removed or added:
        _named.set((_named.get() - removed) | added)


def goes_back_on_purpose(location: Location) -> bool:
    return _key(location) in _named.get()


def _key(location: Location) -> _Key:
    return location.thread.key, location.ns, location.checkpoint
