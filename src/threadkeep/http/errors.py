"""Our errors, and the framework's, as problem documents. `STATUS` is the one table from error to status code.

What a problem says is made of our own words and of field names we know. Messages of pydantic and of the stores are
not passed on: the first repeat what was sent, the second name files of this machine.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from threadkeep import errors
from threadkeep.http.problem import Problem
from threadkeep.http.validation import problem_of_validation

STATUS: dict[type[errors.ThreadkeepError], int] = {
    errors.InvalidInput: 422,
    errors.TooLarge: 413,
    errors.InvalidSetting: 500,  # ours to correct, not the caller's
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.ScopeErased: 410,
    errors.CapabilityMissing: 501,
    errors.MemoryClosed: 503,
    errors.UnreadableDocument: 422,
    errors.EmbedderError: 503,
    errors.ModelError: 502,
    errors.ModelTimeout: 504,
    errors.Unauthenticated: 401,
    errors.KeySetUnavailable: 503,
    errors.Forbidden: 403,
    errors.RateLimited: 429,
    errors.StoreError: 503,
    errors.StoreCorrupt: 500,
    errors.StoreFull: 507,
    errors.ThreadkeepError: 500,
}

_STORE_DETAILS: dict[type[errors.ThreadkeepError], str] = {
    errors.StoreUnavailable: "the store could not be reached or stayed locked; nothing was changed",
    errors.StoreBusy: "all connections to the store were busy for as long as a request waits; nothing was changed",
    errors.OutcomeUnknown: "the store did not say whether it stored this; repeat the request with the same key",
    errors.StoreRefused: "the store refused the service's user, password, database or rights; nothing was changed",
    errors.StoreReadOnly: "the store can only be read: its server or its file takes no writes; nothing was changed",
    errors.StoreFull: "no space is left where the store lies; nothing was changed",
    errors.StoreCorrupt: "the store's file is not a sound database; restore it from a backup",
    errors.StoreTooOld: "the store's server is older than this service supports",
    errors.SchemaOutdated: "a table of the store is missing, out of date or closed to its user; nothing was changed",
    errors.SchemaTooNew: "the store was written by a newer Threadkeep; upgrade the service",
    errors.StoreError: "the store refused the work; nothing was changed",
    errors.EmbedderUnavailable: "the embedder could not be reached",
    errors.EmbedderError: "the embedder refused the work; `threadkeep doctor` shows which one is set",
    errors.ModelTimeout: "the model took too long to answer; what was said is kept, unanswered",
    errors.ModelError: "the model could not answer; what was said is kept, unanswered",
    errors.InvalidSetting: "the service is misconfigured; `threadkeep doctor` says where",
}

_CHALLENGE = {errors.Unauthenticated.code: {"WWW-Authenticate": 'Bearer realm="threadkeep"'}}
_HTTP_CODES = {400: "bad_request", 404: "no_such_route", 405: "method_not_allowed"}
_HTTP_DETAILS = {
    400: "the request could not be read",
    404: "there is no such route; /openapi.json lists them",
    405: "this route does not take this method",
}


class RequestRefused(HTTPException):
    """A request that fails before it reaches a route, with the problem to answer."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.status, problem.detail)
        self.problem = problem


def problem_of(error: errors.ThreadkeepError) -> Problem:
    status = _nearest(STATUS, error)
    assert status is not None
    headers = {"Retry-After": str(_wait(error))} if error.retryable else _CHALLENGE.get(error.code, {})
    detail = _nearest(_STORE_DETAILS, error)
    if isinstance(error, errors.HotStoreMismatch):
        detail = f"{error.setting}: {error.problem}; nothing was changed"
    if detail is None and isinstance(error, errors.InvalidInput):
        return Problem(status, error.code, f"{error.field} {error.problem}", error.field, error.fix)
    return Problem(status, error.code, detail or str(error), retryable=error.retryable, headers=headers)


def _wait(error: errors.ThreadkeepError) -> int:
    """Whole seconds until the same request may succeed."""
    return math.ceil(error.retry_after) if isinstance(error, errors.RateLimited) else 1


def _nearest(table: dict[type[errors.ThreadkeepError], Any], error: errors.ThreadkeepError) -> Any:
    """The entry of the error's own class, or of the closest ancestor that has one."""
    return next((table[kind] for kind in type(error).__mro__ if kind in table), None)


def problem_of_http(error: HTTPException) -> Problem:
    if isinstance(error, RequestRefused):
        return error.problem
    status = error.status_code
    detail = _HTTP_DETAILS.get(status, "the request failed")
    return Problem(status, _HTTP_CODES.get(status, "http_error"), detail, headers=dict(error.headers or {}))


def answer_errors_with_problems(app: FastAPI) -> None:
    app.add_exception_handler(errors.ThreadkeepError, _handler(problem_of))
    app.add_exception_handler(HTTPException, _handler(problem_of_http))
    app.add_exception_handler(RequestValidationError, _handler(problem_of_validation))


def _handler(problem_from: Callable[[Any], Problem]) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def answer(request: Request, error: Exception) -> Response:
        return problem_from(error).answer(request.scope)

    return answer
