"""The OpenAPI document: FastAPI's, with problem documents described as what they are."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI

from threadkeep.http.problem import MEDIA_TYPE, ProblemDocument

_SCHEMA = "#/components/schemas/ProblemDocument"

_READING = (400, 421, 422, 500, 503)
_SENDING = (*_READING, 413, 415)
_WRITING = (*_SENDING, 409, 410, 507)


def _problems(statuses: tuple[int, ...]) -> dict[int | str, dict[str, Any]]:
    content = {MEDIA_TYPE: {"schema": {"$ref": _SCHEMA}}}
    return {status: {"description": HTTPStatus(status).phrase, "content": content} for status in sorted(statuses)}


PROBE = _problems((421, 500, 503))
READS = _problems(_READING)  # by query string
ASKS = _problems(_SENDING)  # by body
WRITES = _problems(_WRITING)


def describe_problems(app: FastAPI) -> None:
    plain = app.openapi

    def with_problems() -> dict[str, Any]:
        document = plain()
        schema = ProblemDocument.model_json_schema(ref_template="#/components/schemas/{model}")
        document.setdefault("components", {}).setdefault("schemas", {})["ProblemDocument"] = schema
        return document

    app.openapi = with_problems
