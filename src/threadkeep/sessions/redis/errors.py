"""redis-py's errors as Threadkeep's own. They quote the code of the answer, never a password, a key or a value."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager

from redis import exceptions as theirs

from threadkeep.errors import LoginRefused, StoreError, StoreFull, StoreReadOnly, StoreUnavailable

DRIVER_ERRORS = (theirs.RedisError, OSError, TimeoutError)
_CODE = re.compile(r"-?([A-Z]{2,20})\b")
_DENIED_IN_A_SCRIPT = ("The user executing the script can't", "ACL failure in script")  # Redis, Valkey
_WITHOUT_LOGIN = "Protocol error: unauthenticated"  # instead of NOAUTH, where a command is long
_REFUSED_CREDENTIALS = "refused the credentials; correct the user and password in REDIS_URL"
_UNSURE = "; a write may or may not have happened"
_DOWN = "cannot be reached (is it up, and REDIS_URL right?)"
_BY_CODE: dict[str, tuple[type[StoreError], str]] = {
    "OOM": (StoreFull, "is out of memory; raise maxmemory or free some"),
    "MISCONF": (StoreFull, "cannot write its snapshot and refuses writes; free its disk"),
    "READONLY": (StoreReadOnly, "is a replica; point REDIS_URL at the primary"),
    "NOREPLICAS": (StoreUnavailable, "has too few replicas to accept writes"),
    "CLUSTERDOWN": (StoreUnavailable, "is a cluster that is down"),
    "LOADING": (StoreUnavailable, "is loading its data"),
    "MASTERDOWN": (StoreUnavailable, "has lost its primary"),
    "BUSY": (StoreUnavailable, "is busy with a script"),
    "TRYAGAIN": (StoreUnavailable, "is moving slots"),
    "NOAUTH": (LoginRefused, _REFUSED_CREDENTIALS),
    "WRONGPASS": (LoginRefused, _REFUSED_CREDENTIALS),
    "DB": (StoreError, "has no database of that number; correct the end of REDIS_URL"),
    "NOPERM": (StoreError, "denied a command to this user; grant it in the server's ACL"),
}
_BY_KIND: list[tuple[type[Exception], type[StoreError], str]] = [
    (theirs.AuthenticationError, LoginRefused, _REFUSED_CREDENTIALS),
    (theirs.AuthorizationError, LoginRefused, _REFUSED_CREDENTIALS),
    (theirs.BusyLoadingError, StoreUnavailable, "is loading its data"),
    (theirs.MasterDownError, *_BY_CODE["MASTERDOWN"]),
    (theirs.TryAgainError, *_BY_CODE["TRYAGAIN"]),
    (theirs.ReadOnlyError, *_BY_CODE["READONLY"]),
    (theirs.OutOfMemoryError, *_BY_CODE["OOM"]),
    (theirs.ClusterDownError, *_BY_CODE["CLUSTERDOWN"]),
    (theirs.NoPermissionError, *_BY_CODE["NOPERM"]),
    (theirs.MaxConnectionsError, StoreUnavailable, "has no free connection for us; raise the pool's size"),
    (theirs.TimeoutError, StoreUnavailable, f"did not answer in time{_UNSURE}"),
    (theirs.ConnectionError, StoreUnavailable, f"{_DOWN}{_UNSURE}"),
    (theirs.RedisClusterException, StoreUnavailable, "is a cluster that cannot be reached"),
    (TimeoutError, StoreUnavailable, f"did not answer in time{_UNSURE}"),
    (OSError, StoreUnavailable, _DOWN),
]


def translated(error: Exception, server: str) -> StoreError:
    match = _CODE.match(str(error))
    code = match[1] if match else ""
    if any(words in str(error) for words in _DENIED_IN_A_SCRIPT):
        code = "NOPERM"
    if _WITHOUT_LOGIN in str(error):
        code = "NOAUTH"
    if isinstance(error, theirs.ResponseError) and code in _BY_CODE:
        kind, what = _BY_CODE[code]
        return _error(kind, server, what)
    for theirs_kind, kind, what in _BY_KIND:
        if isinstance(error, theirs_kind):
            return _error(kind, server, what)
    return _error(StoreError, server, f"refused the work ({code or type(error).__name__})")


def _error(kind: type[StoreError], server: str, what: str) -> StoreError:
    problem, _, fix = what.removesuffix(_UNSURE).partition("; ")
    return kind(f"{server} {what}", problem=f"Redis {problem}", fix=fix or "look at the server, its log and REDIS_URL")


@contextmanager
def our_errors(server: str) -> Generator[None]:
    try:
        yield
    except DRIVER_ERRORS as error:
        # Not chained: the server's own words may quote what it was sent.
        raise translated(error, server) from None
