"""The short way to routes whose path is fixed: the same checks, the same models and the same function as FastAPI would
use, without its search for the route and its walk through the dependencies, which cost more than memory's own work.

FastAPI still describes these routes, and still answers what is not valid: such a request is handed on to it whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from inspect import iscoroutinefunction
from typing import Any, NamedTuple, get_type_hints
from urllib.parse import parse_qsl

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, APIRouter
from starlette._utils import get_route_path
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from threadkeep.errors import ThreadkeepError
from threadkeep.http.errors import problem_of, problem_of_http
from threadkeep.http.identity import Identified
from threadkeep.http.strict_request import StrictRequest, StrictRoute, check_headers, check_query
from threadkeep.http.uploads import UploadRoute, is_form

Arguments = dict[str, Any]


class _NotValid(Exception):
    """FastAPI is to say why."""


class _Headers(NamedTuple):
    """What a function takes from the headers: an argument, the header, the field that checks it and its default."""

    fields: tuple[tuple[str, bytes, Any, Any], ...]

    def read(self, given: Mapping[bytes, bytes]) -> Arguments:
        return {
            name: _valid(field, given[header].decode("latin-1")) if header in given else default
            for name, header, field, default in self.fields
        }


class _Needed(NamedTuple):
    """A dependency that needs nothing but the request and headers."""

    name: str
    call: Any
    request: str | None
    headers: _Headers

    async def get(self, request: StrictRequest, given: Mapping[bytes, bytes]) -> Any:
        if isinstance(self.call, Identified):
            return await self.call.identify(request)
        own = {self.request: request} if self.request else {}
        return await self.call(**own, **self.headers.read(given))


class _Plan(NamedTuple):
    route: APIRoute
    needed: tuple[_Needed, ...]
    headers: _Headers
    request: str | None
    body: Any
    query: Any

    async def arguments(self, request: StrictRequest) -> Arguments:
        """Raises what the dependencies raise, `RequestRefused`, and `_NotValid`. Who calls is known first."""
        given = dict(request.scope["headers"])
        if len(given) < len(request.scope["headers"]):
            check_headers(request)
        query: bytes = request.scope["query_string"]
        if query:
            check_query(query)
        found: Arguments = {self.request: request} if self.request else {}
        for one in self.needed:
            found[one.name] = await one.get(request, given)
        found |= self.headers.read(given)
        if self.query is not None:
            found[self.query.name] = _valid(
                self.query, dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
            )
        if self.body is not None:
            if not await request.body():
                raise _NotValid
            found[self.body.name] = _valid(self.body, await request.json())
        return found


class DirectRoutes:
    def __init__(self, app: ASGIApp, routers: Iterable[APIRouter]) -> None:
        self._app = app
        routes = [route for router in routers for route in router.routes if isinstance(route, StrictRoute)]
        plans = [plan for route in routes if (plan := _planned(route)) is not None]
        self.plans = {(method, plan.route.path): plan for plan in plans for method in plan.route.methods or ()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        plan = self.plans.get((scope["method"], get_route_path(scope))) if scope["type"] == "http" else None
        if plan is None or (isinstance(plan.route, UploadRoute) and is_form(scope)):
            await self._app(scope, receive, send)
            return
        scope["route"] = plan.route  # for the log
        request = StrictRequest(scope, receive)
        try:
            response: Response = await plan.route.endpoint(**await plan.arguments(request))
        except _NotValid:
            await self._app(scope, _again(request, receive), send)
            return
        except ThreadkeepError as error:
            response = problem_of(error).answer(scope)
        except HTTPException as error:
            response = problem_of_http(error).answer(scope)
        await response(scope, receive, send)


def _valid(field: Any, value: Any) -> Any:
    checked, wrong = field.validate(value)
    if wrong:
        raise _NotValid
    return checked


def _again(request: StrictRequest, receive: Receive) -> Receive:
    """The body that was read, once more, and then whatever follows it."""
    body: bytes | None = getattr(request, "_body", None)
    if body is None:
        return receive
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return waiting.pop() if waiting else await receive()

    return replayed


def _planned(route: APIRoute) -> _Plan | None:
    """None for a route that needs more than is known here, which FastAPI then runs."""
    wants = route.dependant
    needed = [_needed(one) for one in wants.dependencies]
    answers = get_type_hints(route.endpoint).get("return")
    is_response = isinstance(answers, type) and issubclass(answers, Response)
    if not is_response or "{" in route.path or not _is_plain(wants) or len(wants.query_params) > 1:
        return None
    body, query = (next(iter(fields), None) for fields in (wants.body_params, wants.query_params))
    if any(one is None for one in needed) or len(wants.body_params) > 1 or route.body_field is not body:
        return None
    if query is not None and not hasattr(query.field_info.annotation, "model_fields"):
        return None
    known = tuple(one for one in needed if one is not None)
    return _Plan(route, known, _headers(wants), wants.request_param_name, body, query)


def _needed(one: Dependant) -> _Needed | None:
    if isinstance(one.call, Identified):
        return _Needed(str(one.name), one.call, None, _Headers(()))
    if (
        one.dependencies
        or one.query_params
        or one.body_params
        or not _is_plain(one)
        or not iscoroutinefunction(one.call)
    ):
        return None
    return _Needed(str(one.name), one.call, one.request_param_name, _headers(one))


def _is_plain(one: Dependant) -> bool:
    others = (one.websocket_param_name, one.http_connection_param_name, one.response_param_name)
    return not (one.path_params or one.cookie_params or one.background_tasks_param_name or any(others))


def _headers(one: Dependant) -> _Headers:
    return _Headers(
        tuple((field.name, field.alias.lower().encode(), field, field.get_default()) for field in one.header_params)
    )
