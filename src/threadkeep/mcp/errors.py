"""Our errors, as a client of MCP gets them: a tool's error that names the field, or a protocol error.

What is said is made of our own words: messages of stores name files of this machine, those of pydantic repeat input.
"""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from threadkeep import errors

_OWN_WORDS: dict[type[errors.ThreadkeepError], str] = {
    errors.StoreUnavailable: "the store could not be reached or stayed locked; try again",
    errors.StoreError: "the store refused the work; `threadkeep doctor` says why",
    errors.EmbedderError: "the embedder could not do its part",
    errors.ModelError: "the model could not answer",
    errors.InvalidSetting: "the server is misconfigured; `threadkeep doctor` says where",
}


def told(error: errors.ThreadkeepError) -> dict[str, Any]:
    words = next((_OWN_WORDS[kind] for kind in type(error).__mro__ if kind in _OWN_WORDS), None)
    if isinstance(error, errors.HotStoreMismatch):
        words = f"{error.setting}: {error.problem}; nothing was changed"
    problem: dict[str, Any] = {"code": error.code, "message": words or str(error), "retryable": error.retryable}
    if words is None and isinstance(error, errors.InvalidInput):
        problem |= {"field": error.field, "fix": error.fix}
    return problem


def tool_error(error: errors.ThreadkeepError) -> types.CallToolResult:
    """For the model to read and correct: the call failed, the server lives on. `error` is a sentence, which clients
    show; `code` is for programs."""
    problem = told(error)
    text = json.dumps({"success": False, "error": problem.pop("message"), **problem}, ensure_ascii=False)
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)


def protocol_error(error: errors.ThreadkeepError) -> MCPError:
    known = isinstance(error, errors.InvalidInput | errors.NotFound | errors.Forbidden)
    code = types.INVALID_PARAMS if known else types.INTERNAL_ERROR
    problem = told(error)
    return MCPError(code=code, message=problem["message"], data=problem)


def unknown_tool(known: list[str]) -> types.CallToolResult:
    """A tool's error, which a model can read; as a protocol error many clients end the turn."""
    return tool_error(errors.InvalidInput("name", "is no tool of this server", f"call one of {', '.join(known)}"))
