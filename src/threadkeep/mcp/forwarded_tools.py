"""A tool's call as one request to another server's `/mcp`, and its answer back; the protocol without a session."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from threadkeep import __version__
from threadkeep.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    ScopeErased,
    StoreUnavailable,
    ThreadkeepError,
    Unauthenticated,
)
from threadkeep.mcp.arguments import Arguments
from threadkeep.mcp.calls import CONVERSATION, REQUEST, Call

PROTOCOL = "2026-07-28"  # the first one in which a single request is enough
_OURS = "io.modelcontextprotocol"
_KNOWN: dict[str, type[ThreadkeepError]] = {
    kind.code: kind for kind in (Conflict, Forbidden, NotFound, ScopeErased, Unauthenticated)
}


def headers_of(tool: str) -> dict[str, str]:
    accept = "application/json, text/event-stream"
    return {"accept": accept, "mcp-protocol-version": PROTOCOL, "mcp-method": "tools/call", "mcp-name": tool}


def request_of(tool: str, call: Call, given: Arguments) -> dict[str, Any]:
    meta: dict[str, Any] = {
        CONVERSATION: call.conversation,
        REQUEST: call.request_id,
        f"{_OURS}/protocolVersion": PROTOCOL,
        f"{_OURS}/clientInfo": {"name": "threadkeep-gateway", "version": __version__},
        f"{_OURS}/clientCapabilities": {},
    }
    said = {name: value for name, value in meta.items() if value is not None}
    parameters = {"name": tool, "arguments": given.model_dump(exclude_none=True), "_meta": said}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": parameters}


def answer_in(body: Any) -> dict[str, Any]:
    """What the tool answered. Raises the error that it told, as far as it is one of ours."""
    try:
        result = body["result"]
        if not result.get("isError"):
            return dict(result["structuredContent"])
        told = json.loads(result["content"][0]["text"])
        message = str(told["error"])
    except (KeyError, IndexError, TypeError, ValueError):
        raise StoreUnavailable("the gateway's answer is none of a tool") from None
    raise _error(told, message)


def _error(told: Mapping[str, Any], message: str) -> ThreadkeepError:
    if told.get("field"):
        field = str(told["field"])
        problem = message.removeprefix(f"{field}: ").partition(";")[0]
        return InvalidInput(field, problem, str(told.get("fix") or "correct it"))
    kind = _KNOWN.get(str(told.get("code")))
    return StoreUnavailable(message) if kind is None else kind(message)
