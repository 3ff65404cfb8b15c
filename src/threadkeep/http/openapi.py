"""The OpenAPI document: FastAPI's, with problem documents and error envelopes described as what they are."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI

from threadkeep.http.fields import API_KEY_HEADER
from threadkeep.http.responses import MEDIA_TYPE, ErrorEnvelope, ProblemDocument

_SHAPES = (ProblemDocument, ErrorEnvelope)
_CREDENTIALS = {
    "ApiKey": {
        "type": "apiKey",
        "in": "header",
        "name": API_KEY_HEADER,
        "description": "From `threadkeep keys create`",
    },
    "Token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": "`sub`, `tenant`, `role`"},
}

_EVERYWHERE = (403, 408, 414, 421, 431, 500, 503)
_KNOWN_CALLER = (*_EVERYWHERE, 400, 401, 404, 422, 429)
_SENDING = (*_KNOWN_CALLER, 413, 415)
_WRITING = (*_SENDING, 409, 410, 507)
_ANSWERING = (*_WRITING, 501, 502, 504)


def _described(statuses: tuple[int, ...], media_type: str, shape: str) -> dict[int | str, dict[str, Any]]:
    content = {media_type: {"schema": {"$ref": f"#/components/schemas/{shape}"}}}
    return {status: {"description": HTTPStatus(status).phrase, "content": content} for status in sorted(statuses)}


def _problems(statuses: tuple[int, ...]) -> dict[int | str, dict[str, Any]]:
    return _described(statuses, MEDIA_TYPE, "ProblemDocument")


PROBE = _problems(_EVERYWHERE)
SCRAPES = _problems((*_KNOWN_CALLER, 501))
READS = _problems(_KNOWN_CALLER)  # by query string
ASKS = _problems(_SENDING)  # by body
WRITES = _problems(_WRITING)
ANSWERS = _problems(_ANSWERING)  # which a model makes
ERASES = _problems((*_KNOWN_CALLER, 410, 507))
AGENT_PROBE = _described(_EVERYWHERE, "application/json", "ErrorEnvelope")
AGENT_ANSWERS = _described(tuple(status for status in _ANSWERING if status != 422), "application/json", "ErrorEnvelope")


def describe_problems(app: FastAPI) -> None:
    plain = app.openapi

    def with_problems() -> dict[str, Any]:
        document = plain()
        components = document.setdefault("components", {})
        components["securitySchemes"] = _CREDENTIALS
        shapes = components.setdefault("schemas", {})
        for shape in _SHAPES:
            shapes[shape.__name__] = shape.model_json_schema(ref_template="#/components/schemas/{model}")
        for path, methods in document["paths"].items():
            for operation in methods.values():
                _without_frameworks_422(path, operation)
                if "401" in operation["responses"]:  # either of them
                    operation["security"] = [{name: []} for name in _CREDENTIALS]
        return document

    app.openapi = with_problems


def _without_frameworks_422(path: str, operation: dict[str, Any]) -> None:
    """FastAPI adds its own description of bad input where there is none of ours; nothing is answered like that."""
    described = operation["responses"].get("422", {}).get("content", {})
    if path.startswith("/agent/") or "application/json" in described:
        operation["responses"].pop("422", None)
