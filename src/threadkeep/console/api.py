"""The service's HTTP API, as any other client has it, with the credential of the page's user."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx


class ApiRefused(Exception):
    """What the API answered instead: a status, and a problem document in its own words."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class Api:
    def __init__(self, client: httpx.AsyncClient, credential: str | None) -> None:
        self._client = client
        self._headers = credential_headers(credential)

    async def get(self, path: str, **query: Any) -> dict[str, Any]:
        given = {name: value for name, value in query.items() if value is not None}
        return await self._request("GET", path, params=given)

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return await self._request("POST", path, json=body)

    async def delete(self, path: str) -> dict[str, Any]:
        return await self._request("DELETE", path)

    @asynccontextmanager
    async def lines(self, path: str, after: str | None) -> AsyncGenerator[AsyncIterator[str]]:
        """Of an event stream, from behind the event that was seen last."""
        headers = self._headers | ({} if after is None else {"Last-Event-ID": after})
        try:
            async with self._client.stream("GET", path, headers=headers, timeout=None) as answer:
                if not answer.is_success:
                    await answer.aread()
                    raise refusal(answer)
                yield answer.aiter_lines()
        except httpx.TransportError as error:
            raise _unanswered(error) from None

    async def _request(self, method: str, path: str, **given: Any) -> dict[str, Any]:
        try:
            answer = await self._client.request(method, path, headers=self._headers, **given)
        except httpx.TransportError as error:
            raise _unanswered(error) from None
        if not answer.is_success:
            raise refusal(answer)
        return answer.json() if answer.content else {}


def credential_headers(credential: str | None) -> dict[str, str]:
    """A token has two dots, an API key none. Raises `ApiRefused` for what no header can carry."""
    if not credential:
        return {}
    if not (credential.isascii() and credential.isprintable()):
        raise ApiRefused(401, "this is neither an API key nor a token")
    if credential.count(".") == 2:
        return {"Authorization": f"Bearer {credential}"}
    return {"X-API-Key": credential}


def _unanswered(error: httpx.TransportError) -> ApiRefused:
    return ApiRefused(503, f"the service does not answer ({type(error).__name__})")


def refusal(answer: httpx.Response) -> ApiRefused:
    try:
        problem: dict[str, Any] = answer.json()
    except ValueError:
        problem = {}
    told = str(problem.get("detail") or problem.get("message") or f"the service answered {answer.status_code}")
    fix = problem.get("fix")
    return ApiRefused(answer.status_code, f"{told}: {fix}" if fix else told)
