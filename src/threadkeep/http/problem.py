"""Problem documents (RFC 9457): what every failed request is answered with."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from threadkeep.http.encoding import encoded

MEDIA_TYPE = "application/problem+json"


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

    def response(self, request_id: str) -> Response:
        content = encoded(self.as_dict(request_id))
        return Response(content, self.status, headers=dict(self.headers), media_type=MEDIA_TYPE)


def _title(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"
