"""What requests are answered with: JSON, and problem documents (RFC 9457) where they fail."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response

from threadkeep.http.encoding import encoded
from threadkeep.model import ErasureProof


class JsonAnswer(JSONResponse):
    """Stands in for Starlette's and FastAPI's own, which answer 500 to a lone surrogate."""

    def render(self, content: Any) -> bytes:
        return encoded(content)


MEDIA_TYPE = "application/problem+json"
ENVELOPED = "/agent/"
ASKING = frozenset({"/retrieval/query", "/query"})
"""Their callers read `success` first, and then `error` or `message`: a sentence."""


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
        path = path_below(scope)
        if path in ASKING:
            sentence = {"success": False, "error": self.detail, "message": self.detail}
            content, media_type = encoded(self.as_dict(request_id) | sentence), MEDIA_TYPE
            status = self.status
        elif not path.startswith(ENVELOPED):
            content, media_type, status = encoded(self.as_dict(request_id)), MEDIA_TYPE, self.status
        else:
            # These callers know one status for input that cannot succeed.
            status = 400 if self.status == 422 else self.status
            content, media_type = encoded(self.as_envelope(status, request_id)), "application/json"
        return Response(content, status, headers=dict(self.headers), media_type=media_type)

    def as_envelope(self, status: int, request_id: str) -> dict[str, Any]:
        details = {"field": self.field, "fix": self.fix, "retryable": self.retryable}
        return {
            "code": self.code,
            "message": self.detail,
            "status": status,
            "traceId": request_id,
            "details": details | dict(self.extra),
        }


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
