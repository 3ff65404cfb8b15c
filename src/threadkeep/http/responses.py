"""What requests are answered with: JSON, and where they fail, for each error its problem document (RFC 9457).

What a problem says is made of our own words and of field names we know. Messages of pydantic and of the stores are
not passed on: the first repeat what was sent, the second name files of this machine. `STATUS` is the one table from
error to status code.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from threadkeep import errors
from threadkeep.http import chat_schemas, schemas
from threadkeep.http.encoding import encoded
from threadkeep.http.schemas import HEADERS
from threadkeep.model import ErasureProof


class JsonAnswer(JSONResponse):
    """Stands in for Starlette's and FastAPI's own, which answer 500 to a lone surrogate."""

    def render(self, content: Any) -> bytes:
        return encoded(content)


MEDIA_TYPE = "application/problem+json"
REPLAYED = {"Idempotent-Replayed": "true"}


class ProblemDocument(BaseModel):
    """Why a request failed. It never repeats what was sent: neither text nor ids."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:threadkeep:problem:invalid_scope",
                    "title": "Unprocessable Entity",
                    "status": 422,
                    "detail": "scope.user is missing",
                    "code": "invalid_scope",
                    "field": "scope.user",
                    "fix": "give this field",
                    "retryable": False,
                    "request_id": "0198c0de-0000-7000-8000-000000000000",
                }
            ]
        }
    )

    type: str = Field(description="`urn:threadkeep:problem:` and the code")
    title: str
    status: int
    detail: str
    code: str = Field(description="Stable; for programs")
    field: str | None = Field(description="Path of the offending value, such as `events[0].text`")
    fix: str | None = Field(description="What would be accepted")
    retryable: bool = Field(description="Whether the same request, unchanged, may succeed later")
    request_id: str


class ErrorEnvelope(BaseModel):
    """Why a request to `/agent/…` failed."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "code": "invalid_input",
                    "message": "sessionId is not a UUID of version 4",
                    "status": 400,
                    "traceId": "0198c0de-0000-7000-8000-000000000000",
                    "details": {"field": "sessionId", "fix": "make one with a UUID library", "retryable": False},
                }
            ]
        }
    )

    code: str
    message: str
    status: int
    traceId: str = Field(description="The request's id, as in `X-Request-ID`")
    details: dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    status: int
    code: str
    detail: str
    field: str | None = None
    fix: str | None = None
    retryable: bool = False
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])
    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict[str, Any])  # members of this problem alone

    def as_dict(self, request_id: str) -> dict[str, Any]:
        return {
            "type": f"urn:threadkeep:problem:{self.code}",
            "title": _title(self.status),
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            "field": self.field,
            "fix": self.fix,
            "retryable": self.retryable,
            "request_id": request_id,
            **self.extra,
        }

    def answer(self, scope: Mapping[str, Any]) -> Response:
        """As the route's callers expect it: an envelope from `/agent/…`, a problem document elsewhere."""
        request_id: str = scope["state"]["request_id"]
        path, status, media_type = path_below(scope), self.status, MEDIA_TYPE
        if path.startswith("/agent/"):
            status = 400 if status == 422 else status  # these callers know one status for input that cannot succeed
            media_type = "application/json"
            content: dict[str, Any] = {
                "code": self.code,
                "message": self.detail,
                "status": status,
                "traceId": request_id,
                "details": {"field": self.field, "fix": self.fix, "retryable": self.retryable, **self.extra},
            }
        else:
            content = self.as_dict(request_id)
            if path in ("/retrieval/query", "/query"):  # their callers read `success`, then `error` or `message`
                content |= {"success": False, "error": self.detail, "message": self.detail}
        return Response(encoded(content), status, headers=dict(self.headers), media_type=media_type)


def path_below(scope: Mapping[str, Any]) -> str:
    """Return the request's path below where the application is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if path == root or path.startswith(f"{root}/") else path


def _title(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"


def proven(request: Request, proof: ErasureProof) -> Response:
    """Answer 200 when everything was deleted, 503 otherwise."""
    if proof.complete:
        return JsonAnswer(proof.as_dict())
    detail = "not everything could be removed yet; what was removed stays removed"
    extra = {"proof": proof.as_dict()}
    problem = Problem(503, "erase_incomplete", detail, fix="send the same request again", retryable=True, extra=extra)
    return problem.answer(request.scope)


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
    errors.ModelTimeout: "the model took too long to answer; the message is kept, unanswered",
    errors.ModelError: "the model could not answer; the message is kept, unanswered",
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
    status: int = _nearest(STATUS, error)
    seconds = math.ceil(error.retry_after) if isinstance(error, errors.RateLimited) else 1
    headers = {"Retry-After": str(seconds)} if error.retryable else _CHALLENGE.get(error.code, {})
    detail = _nearest(_STORE_DETAILS, error)
    if isinstance(error, errors.HotStoreMismatch):
        detail = f"{error.setting}: {error.problem}; nothing was changed"
    if detail is None and isinstance(error, errors.InvalidInput):
        return Problem(status, error.code, f"{error.field} {error.problem}", error.field, error.fix)
    return Problem(status, error.code, detail or str(error), retryable=error.retryable, headers=headers)


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


# error type → (what is wrong, what would do); `{…}` comes from the error's context, which only the schema fills
_COMPLAINTS: dict[str, tuple[str, str]] = {
    "missing": ("is missing", "give this field"),
    "extra_forbidden": ("holds a field that is not known", "leave it out; /openapi.json lists the fields"),
    "string_type": ("is not a string", "give a string"),
    "string_unicode": ("is not text that UTF-8 can carry", "leave lone surrogates out"),
    "string_too_short": ("is empty", "give {min_length} character or more, or leave it out"),
    "string_too_long": ("is too long", "give at most {max_length} characters"),
    "string_pattern_mismatch": ("holds characters that it may not", "see /openapi.json for those it may"),
    "int_type": ("is not a whole number", "give a whole number"),
    "int_parsing": ("is not a whole number", "give a whole number"),
    "int_from_float": ("is not a whole number", "give a whole number"),
    "int_parsing_size": ("is too large a number", "give a smaller one"),
    "greater_than_equal": ("is too small", "give {ge} or more"),
    "less_than_equal": ("is too large", "give {le} or less"),
    "list_type": ("is not a list", "give a list"),
    "dict_type": ("is not an object", "give an object"),
    "model_type": ("is not an object", "give an object"),
    "model_attributes_type": ("is not an object", "give an object"),
    "literal_error": ("is not one of the known values", "use {expected}"),
    "union_tag_invalid": ("is not a known event kind", "use one of {expected_tags}"),
    "union_tag_not_found": ("is missing", "name the kind of event: UserMessage, ModelResponse, …"),
    "timezone_aware": ("has no time zone", "end it with Z or an offset such as +07:00"),
    "not_a_name": ("is empty, too long or holds control characters", "use 1 to 255 printable characters"),
    "not_a_language": ("is not a language tag", "use BCP 47, such as vi or zh-Hant"),
    "not_text": ("holds bytes that are not text", "leave control characters and lone surrogates out"),
    "blank": ("is empty", "say something"),
    "not_uuid4": ("is not a UUID of version 4", "make one with a UUID library"),
    "date_time": ("is not a date and time", "use RFC 3339, such as 2026-11-15T09:30:00Z"),
}
_OTHERWISE = ("is not valid", "see /openapi.json for what is accepted")
_SOURCES = {"body", "query", "header", "path"}
# Names that a problem document may repeat; any other name in a request came from the caller.
_MODELS = (*schemas.MODELS, *chat_schemas.MODELS)
_FIELD_NAMES = {name for model in _MODELS for name in model.model_fields} | {"wait", "message_id", "job_id"} | HEADERS


def problem_of_validation(error: RequestValidationError) -> Problem:
    """The first complaint; the others are often only its echo."""
    first: dict[str, Any] = error.errors()[0]
    kind = str(first["type"])
    field = _field(first["loc"], kind)
    problem, fix = _COMPLAINTS.get(kind, _COMPLAINTS["date_time"] if kind.startswith("datetime") else _OTHERWISE)
    context: dict[str, Any] = first.get("ctx") or {}
    code = "invalid_input"
    if field.startswith(("scope", "tenant", "user", "conversation")) and field != "user_message":
        code = "invalid_scope"
    elif field.startswith(("events", "message_id")):
        code = "invalid_event"
    return Problem(422, code, f"{field} {problem}", field, fix.format_map(context))


def _field(loc: Sequence[str | int], kind: str) -> str:
    """`events[0].text`. Names that came with the request (unknown fields, keys of a mapping) are left out."""
    path = ""
    for part in loc[1:] if loc and loc[0] in _SOURCES else loc:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part in _FIELD_NAMES:
            path += f".{part}" if path else part
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        path += ".kind"
    return path or str(loc[0] if loc and loc[0] in _SOURCES else "body")
