"""State in its four scopes: of the app, of the user, of the session, and `temp:`, which is never stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from google.adk.sessions.state import State
from pydantic_core import to_jsonable_python

from threadkeep.errors import InvalidInput
from threadkeep.ports.agent_rows import Row, place_of
from threadkeep.scope import Scope

APP, USER, TEMP = "app:", "user:", "temp:"
SCRATCH = ("tool.temp.", "retrieval.cache.", "features.")
SCRATCH_SECONDS = 15 * 60
LONGEST_SCRATCH_SECONDS = 30 * 60
_LIFE = TEMP + "ttl:"  # before the name of a scratch value: for how many seconds it is wanted
_NOBODY = "-"


def _nothing() -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class Delta:
    """`scratch` has a TTL of minutes, which stands beside each value, and is never in the database."""

    app: dict[str, Any] = field(default_factory=_nothing)
    user: dict[str, Any] = field(default_factory=_nothing)
    session: dict[str, Any] = field(default_factory=_nothing)
    scratch: dict[str, tuple[Any, float]] = field(default_factory=_nothing)

    @property
    def kept(self) -> dict[str, Any]:
        """As an event carries it."""
        shared = {APP + key: value for key, value in self.app.items()}
        return shared | {USER + key: value for key, value in self.user.items()} | self.session


def delta_of(
    state: Mapping[str, Any] | None, redacted: Callable[[str], str], not_persisted: Sequence[str] = ()
) -> Delta:
    """Strings as policy keeps them, names too, at any depth; what JSON cannot carry as its text, bytes as base64.

    What stands under a prefix of `not_persisted`, or of `SCRATCH`, is scratch state in whichever scope it stands.
    """
    scratch = (*SCRATCH, *not_persisted)
    delta, state = Delta(), state or {}
    for key, value in state.items():
        if key.startswith(TEMP):
            continue
        if key.startswith(scratch) or (key.startswith((APP, USER)) and key.partition(":")[2].startswith(scratch)):
            delta.scratch[key] = (value, state.get(_LIFE + key, SCRATCH_SECONDS))
            continue
        plain = masked(_jsonable(value), redacted)
        if key.startswith(APP):
            delta.app[redacted(key.removeprefix(APP))] = plain
        elif key.startswith(USER):
            delta.user[redacted(key.removeprefix(USER))] = plain
        else:
            delta.session[redacted(key)] = plain
    return delta


def scratch_name(key: str) -> str:
    """Return the name under which the scratch store holds a key of state, whichever scope it stands in."""
    return key if key.startswith(SCRATCH) else f"tool.temp.:{key}"


def put_tool_cache(state: State, key: str, value: Any, ttl_seconds: float = SCRATCH_SECONDS) -> None:
    """Keep a tool's result for the next turns in `tool_context.state`: under `tool.temp.`, with a TTL, in no file.

    Raises `InvalidInput` for a TTL of more than half an hour.
    """
    if not 0 < ttl_seconds <= LONGEST_SCRATCH_SECONDS:
        limits = f"give more than 0 and at most {LONGEST_SCRATCH_SECONDS}"
        raise InvalidInput("ttl_seconds", "is out of range", limits)
    name = f"tool.temp.{key}"
    state.update({name: value, _LIFE + name: ttl_seconds})


def _jsonable(value: Any) -> Any:
    try:
        return to_jsonable_python(value, serialize_unknown=True)
    except UnicodeDecodeError:  # bytes that are no text
        return to_jsonable_python(value, serialize_unknown=True, bytes_mode="base64")


def masked(value: Any, redacted: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, list):
        return [masked(one, redacted) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {masked(key, redacted): masked(one, redacted) for key, one in cast("dict[Any, Any]", value).items()}
    return value


def app_space(tenant: str, app: str) -> bytes:
    return Scope(tenant, _NOBODY).digest("adk app state", app)


def user_space(tenant: str, user: str, app: str) -> bytes:
    return Scope(tenant, user).digest("adk user state", app)


def state_rows(scope: Scope, app: str, delta: Delta, packed: Callable[[Any], bytes], keep_seconds: float) -> list[Row]:
    """One row a key: two sessions that set two keys at once both keep theirs.

    A user's expire `keep_seconds` after they were last written; the app's are no personal data, and stay.
    """
    shared, own = app_space(scope.tenant, app), user_space(scope.tenant, scope.user, app)
    nobody = place_of(Scope(scope.tenant, _NOBODY))
    rows = [
        Row(
            Scope(scope.tenant, _NOBODY).digest("adk app key", app, key),
            shared,
            key.encode("utf-8", "surrogatepass"),
            scope.tenant,
            "",
            nobody,
            packed(value),
        )
        for key, value in delta.app.items()
    ]
    user = scope.whole_user
    rows += [
        Row(
            user.digest("adk user key", app, key),
            own,
            key.encode("utf-8", "surrogatepass"),
            scope.tenant,
            scope.user,
            place_of(user),
            packed(value),
            ttl_seconds=keep_seconds,
        )
        for key, value in delta.user.items()
    ]
    return rows
