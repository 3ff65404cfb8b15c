"""Every error Threadkeep raises on purpose.

ThreadkeepError
├── InvalidInput              the caller sent something that can never succeed; says which field, and the fix
│   ├── InvalidScope
│   ├── InvalidEvent
│   ├── InvalidSetting
│   └── TooLarge
├── NotFound                  no such conversation or message in this scope
├── Conflict                  the same idempotency key or message id came with another payload
│   └── StaleWriter           another run has continued from the same checkpoint; read the thread and try again
├── ScopeErased               the scope was erased after this work began; nothing was stored
├── CapabilityMissing         this backend, or this build, cannot do that
│   └── MissingExtra          an optional dependency is not installed; says which extra brings it
├── MemoryClosed              used after close
├── UnreadableDocument        a knowledge document that cannot be read; says why
├── EmbedderError             an embedder could not do its part; what was stored can be found by its words
│   ├── EmbedderUnavailable   not reachable, or busy; a retry can help
│   ├── EmbedderRefused       it answers, but not this: an unknown model, a wrong key, no vectors
│   └── VectorMismatch        a vector of another model or size than the index holds
├── ModelError                a chat model gave no answer; what the user said is kept, unanswered
│   ├── ModelUnavailable      not reachable, or busy; a retry can help
│   └── ModelTimeout          it took longer than it may; a retry can help
├── Unauthenticated           no credential, or one that does not hold; says what to send
├── KeySetUnavailable         whether a token holds is unknown now; a retry can help
├── Forbidden                 the credential holds, but not for this
├── RateLimited               too many calls; says when the next may come
├── RetentionStopped          a run would delete far more than a run usually does; nothing was deleted
├── InvalidAssistant          an assistant's folder cannot be used; names the file, the line and the fix
└── StoreError                a store could not do its part
    ├── StoreUnavailable      not reachable, or busy past its deadline; a retry can help
    │   ├── StoreBusy         all connections were in use for as long as a call may wait; a retry can help
    │   ├── LoginRefused      it is up, but not for this user and password; what can continues without it
    │   └── OutcomeUnknown    the connection broke during a commit: stored or not, a retry with the same key shows
    ├── StoreRefused          wrong user, password or database, or a right is missing
    │   └── HotStoreMismatch  this process's Redis or durability is not the archive's; names the setting
    ├── RowRefused            a table of the application's refused one row; says which table, column and code
    ├── StoreReadOnly
    ├── StoreFull             no space left; a retry can help once there is
    ├── StoreCorrupt
    │   └── CheckpointCorrupt one checkpoint cannot be read; says which thread and channel, the others still can
    ├── StoreTooOld           a server older than this Threadkeep supports
    ├── SchemaOutdated        its tables are older than this Threadkeep; `threadkeep migrate` brings them up to date
    └── SchemaTooNew          the store was written by a newer Threadkeep

`retryable` says whether the same call, unchanged, may succeed later. `code` is stable: HTTP and MCP send it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel


class ThreadkeepError(Exception):
    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False


class InvalidInput(ThreadkeepError):
    """`field` is the path of the offending value (`events[0].text`), `fix` says what would be accepted."""

    code = "invalid_input"

    def __init__(self, field: str, problem: str, fix: str) -> None:
        super().__init__(f"{field}: {problem}; {fix}")
        self.field = field
        self.problem = problem
        self.fix = fix

    def inside(self, prefix: str) -> InvalidInput:
        """The same error seen from an enclosing value."""
        return type(self)(f"{prefix}.{self.field}", self.problem, self.fix)


class InvalidScope(InvalidInput):
    code = "invalid_scope"


class InvalidEvent(InvalidInput):
    code = "invalid_event"


class InvalidSetting(InvalidInput):
    code = "invalid_setting"


class TooLarge(InvalidInput):
    code = "too_large"


class NotFound(ThreadkeepError):
    code = "not_found"


class Conflict(ThreadkeepError):
    code = "conflict"


class StaleWriter(Conflict):
    code = "stale_writer"


class ScopeErased(ThreadkeepError):
    code = "scope_erased"


class CapabilityMissing(ThreadkeepError):
    code = "capability_missing"


class MissingExtra(CapabilityMissing):
    code = "missing_extra"

    def __init__(self, extra: str, wanted_for: str) -> None:
        super().__init__(f"{wanted_for} needs an optional part; install it with: pip install 'threadkeep[{extra}]'")
        self.extra = extra


class MemoryClosed(ThreadkeepError):
    code = "memory_closed"


class UnreadableDocument(ThreadkeepError):
    code = "unreadable_document"


class EmbedderError(ThreadkeepError):
    code = "embedder_error"


class EmbedderUnavailable(EmbedderError):
    code = "embedder_unavailable"
    retryable = True


class EmbedderRefused(EmbedderError):
    code = "embedder_refused"


class VectorMismatch(EmbedderError):
    code = "vector_mismatch"


class ModelError(ThreadkeepError):
    code = "model_error"


class ModelUnavailable(ModelError):
    code = "model_unavailable"
    retryable = True


class ModelTimeout(ModelError):
    code = "model_timeout"
    retryable = True


class Unauthenticated(ThreadkeepError):
    code = "unauthenticated"


class KeySetUnavailable(ThreadkeepError):
    code = "key_set_unavailable"
    retryable = True


class Forbidden(ThreadkeepError):
    code = "forbidden"


class RateLimited(ThreadkeepError):
    code = "rate_limited"
    retryable = True

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # seconds


class RetentionStopped(ThreadkeepError):
    code = "retention_stopped"


class InvalidAssistant(ThreadkeepError):
    code = "invalid_assistant"


class StoreError(ThreadkeepError):
    """`problem` and `fix` say it without an address, a path or a value, so they may be sent to callers."""

    code = "store_error"

    def __init__(self, message: str = "", *, problem: str | None = None, fix: str | None = None) -> None:
        super().__init__(message)
        self.problem = problem
        self.fix = fix


class StoreUnavailable(StoreError):
    code = "store_unavailable"
    retryable = True


class StoreBusy(StoreUnavailable):
    code = "store_busy"


class LoginRefused(StoreUnavailable):
    code = "login_refused"
    retryable = False


class OutcomeUnknown(StoreUnavailable):
    code = "outcome_unknown"


class StoreRefused(StoreError):
    code = "store_refused"


class RowRefused(StoreError):
    """A rule of the table refused the row: a right, a policy, a constraint or a trigger. Other rows may pass.

    `column` is None where the server does not name one. The server's own message may quote values and is not repeated.
    """

    code = "row_refused"

    def __init__(self, table: str, column: str | None, server_code: str | int | None, why: str) -> None:
        super().__init__(f"{table}{'.' if column else ''}{column or ''}: refused a row ({server_code}): {why}")
        self.table = table
        self.column = column
        self.server_code = server_code  # SQLSTATE, or the error number of MySQL and MariaDB
        self.why = why


class HotStoreMismatch(StoreRefused):
    """The archive has another hot store, or another mode, than this process. Nothing was changed; reading works.

    `setting` is what to change, `fix` says how; `problem` names no address, so it may be sent to callers.
    """

    code = "hot_store_mismatch"

    def __init__(self, setting: str, problem: str, fix: str) -> None:
        super().__init__(f"{setting}: {problem}; {fix}")
        self.setting = setting
        self.problem = problem
        self.fix = fix


class StoreReadOnly(StoreError):
    code = "store_read_only"


class StoreFull(StoreError):
    code = "store_full"
    retryable = True


class StoreCorrupt(StoreError):
    code = "store_corrupt"


class CheckpointCorrupt(StoreCorrupt):
    code = "checkpoint_corrupt"


class StoreTooOld(StoreError):
    code = "store_too_old"


class SchemaOutdated(StoreError):
    code = "schema_outdated"


class SchemaTooNew(StoreError):
    code = "schema_too_new"


_ALIKE = 0.65  # "API_KEY" and "API_KEY_SECRET" are at 0.67, unrelated names of ours mostly below 0.6


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is spelled most like this one, or None where none is. Case and dashes do not count."""
    folded = {_folded(one): one for one in known}
    found = difflib.get_close_matches(_folded(name), folded, 1, _ALIKE)
    return folded[found[0]] if found else None


def fix_for(name: str, known: Sequence[str]) -> str:
    """Return what to do about a name that is not known: the name that was probably meant, or those there are."""
    found = closest(name, known)
    return f"did you mean {found}?" if found else f"remove it, or use one of {', '.join(sorted(known))}"


def keys_beside(model: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    """Return the keys that the table holding the value at `location` may have, by the model's JSON schema."""
    schema = model.model_json_schema()
    table: dict[str, Any] = schema
    for part in location[:-1]:
        table = _inside(table, part)
        while "$ref" in table:
            table = schema["$defs"][table["$ref"].rpartition("/")[2]]
    return list(table.get("properties", ()))


def _inside(table: dict[str, Any], part: str | int) -> dict[str, Any]:
    if isinstance(part, int):
        return table["items"]
    if part in table.get("properties", {}):
        return table["properties"][part]
    of_any_key: list[dict[str, Any]] = [*table.get("patternProperties", {}).values()]
    return of_any_key[0] if of_any_key else table["additionalProperties"]


def _folded(name: str) -> str:
    return name.replace("-", "_").casefold()
