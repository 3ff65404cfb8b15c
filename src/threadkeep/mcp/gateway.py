"""A thin front to a service, with this process's credential: `retrieve` goes to its own route, the rest to `/mcp`."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx

from threadkeep import __version__
from threadkeep.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    RateLimited,
    ScopeErased,
    StoreUnavailable,
    ThreadkeepError,
    Unauthenticated,
)
from threadkeep.identity.api_keys import prefix_of
from threadkeep.mcp.calls import CONVERSATION, REQUEST, Call
from threadkeep.mcp.schemas import (
    Arguments,
    ForgetArguments,
    HistoryArguments,
    RecallArguments,
    RememberArguments,
    RetrieveArguments,
)

_TIMEOUT_SECONDS = 30.0
_PATH, _TOOLS_PATH = "/retrieval/query", "/mcp"
_STATUS: dict[int, type[ThreadkeepError]] = {401: Unauthenticated, 403: Forbidden, 404: NotFound}


@asynccontextmanager
async def open_gateway(url: str, credential: str | None) -> AsyncGenerator[GatewayBackend]:
    """`credential` is an API key of the service, recognised by its form, or a token."""
    headers: dict[str, str] = {}
    if credential:
        is_key = prefix_of(credential) is not None
        headers = {"x-api-key": credential} if is_key else {"authorization": f"Bearer {credential}"}
    async with httpx.AsyncClient(
        base_url=url.rstrip("/"), headers=headers, timeout=_TIMEOUT_SECONDS, follow_redirects=False
    ) as client:
        yield GatewayBackend(client)


class GatewayBackend:
    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def retrieve(self, call: Call, given: RetrieveArguments) -> dict[str, Any]:
        """The service knows the caller by the token; the process's own user is not sent."""
        if call.conversation is not None and not _fits_a_header(call.conversation):
            return await self._forwarded("retrieve", call, given)
        body = {"query": given.query, "mode": "retrieval_only", "topK": given.topK, "useCache": True}
        sent = {"x-conversation-id": call.conversation, "x-request-id": call.request_id}
        headers = {name: value for name, value in sent.items() if value is not None and _fits_a_header(value)}
        told = _json_of(await self._answered(_PATH, body, headers))
        if not isinstance(told, dict):
            raise StoreUnavailable("the gateway's answer is none of a search")
        return cast("dict[str, Any]", told)

    async def remember(self, call: Call, given: RememberArguments) -> dict[str, Any]:
        return await self._forwarded("remember", call, given)

    async def recall(self, call: Call, given: RecallArguments) -> dict[str, Any]:
        return await self._forwarded("recall", call, given)

    async def history(self, call: Call, given: HistoryArguments) -> dict[str, Any]:
        return await self._forwarded("history", call, given)

    async def forget(self, call: Call, given: ForgetArguments) -> dict[str, Any]:
        return await self._forwarded("forget", call, given)

    async def _forwarded(self, tool: str, call: Call, given: Arguments) -> dict[str, Any]:
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": PROTOCOL,
            "mcp-method": "tools/call",
            "mcp-name": tool,
        }
        return answer_in(_json_of(await self._answered(_TOOLS_PATH, request_of(tool, call, given), headers)))

    async def _answered(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> httpx.Response:
        try:
            answer = await self._client.post(path, json=body, headers=headers)
        except httpx.HTTPError:
            raise StoreUnavailable("the gateway could not be reached") from None
        if answer.status_code != 200:
            raise _problem(answer)
        return answer


def _fits_a_header(value: str) -> bool:
    return value.isascii() and value.isprintable() and value == value.strip()


def _json_of(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        raise StoreUnavailable("the gateway's answer is no JSON") from None


def _problem(answer: httpx.Response) -> ThreadkeepError:
    try:
        found: Any = answer.json()
    except ValueError:
        found = None
    told = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    detail = str(told.get("detail") or f"the gateway answered {answer.status_code}")
    if answer.status_code == 429:
        # A date, which the header may also hold, is by the server's clock and ignored.
        seconds = str(answer.headers.get("retry-after", ""))
        return RateLimited(detail, float(seconds) if seconds.isascii() and seconds.isdigit() else 1.0)
    if answer.status_code in _STATUS:
        return _STATUS[answer.status_code](detail)
    if told.get("field"):
        return InvalidInput(str(told["field"]), detail, str(told.get("fix") or "correct it"))
    return StoreUnavailable(detail)


PROTOCOL = "2026-07-28"  # the first one in which a single request is enough
_OURS = "io.modelcontextprotocol"
_KNOWN: dict[str, type[ThreadkeepError]] = {
    kind.code: kind for kind in (Conflict, Forbidden, NotFound, ScopeErased, Unauthenticated)
}


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
    """Return what the tool answered. Raises the error that it reported, where it is one of ours."""
    try:
        result = body["result"]
        if not result.get("isError"):
            return dict(result["structuredContent"])
        told = json.loads(result["content"][0]["text"])
        message = str(told["error"])
    except (KeyError, IndexError, TypeError, ValueError):
        raise StoreUnavailable("the gateway's answer is none of a tool") from None
    if told.get("field"):
        field = str(told["field"])
        problem = message.removeprefix(f"{field}: ").partition(";")[0]
        raise InvalidInput(field, problem, str(told.get("fix") or "correct it"))
    raise _KNOWN.get(str(told.get("code")), StoreUnavailable)(message)
