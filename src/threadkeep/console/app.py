"""The console's routes. Every page is made of what the HTTP API answers to the one who looks at it."""

from __future__ import annotations

import json
import re
import ssl
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
from jinja2 import Environment, PackageLoader
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from threadkeep.console.api import Api, ApiRefused
from threadkeep.console.guard import FormTooLarge, SafePages, credential_of, form_of, sign_in, sign_out

_HERE = Path(__file__).parent
_SECONDS = 120.0  # a waited-for answer may take as long as its model
_PAGE = 50
MOUNTED_AT = "/console"
# Calls go over plain HTTP and need no certificate. By default every client would first read all certificate
# authorities, which takes longer than the call and holds up every other request.
_NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

Page = Callable[[Request], Awaitable[Response]]


class Console:
    def __init__(self, count_tokens: CountTokens) -> None:
        self._count_tokens = count_tokens
        loader = PackageLoader("threadkeep.console")
        self._templates = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)

    def app(self) -> Starlette:
        """To be mounted at `MOUNTED_AT`, in an application that may itself be mounted anywhere."""
        routes = [
            Route("/", self._with_errors_shown(self.conversations)),
            Route("/conversations", self._with_errors_shown(self.begin), methods=["POST"]),
            Route("/conversations/{id:path}/messages", self._with_errors_shown(self.say), methods=["POST"]),
            Route("/conversations/{id:path}/erase", self._with_errors_shown(self.erase), methods=["POST"]),
            Route("/conversations/{id:path}/events", self._with_errors_shown(self.events)),
            Route("/conversations/{id:path}", self._with_errors_shown(self.conversation)),
            Route("/sign-in", self._with_errors_shown(self.sign_in), methods=["GET", "POST"]),
            Route("/sign-out", self._with_errors_shown(self.sign_out), methods=["POST"]),
            Mount("/static", StaticFiles(directory=_HERE / "static")),
        ]
        return Starlette(routes=routes, middleware=[Middleware(SafePages)])

    async def conversations(self, request: Request) -> Response:
        async with _api(request) as api:
            page = await api.get("/conversations", after=request.query_params.get("after"))
        return self._page(request, "conversations.html", items=page["items"], after=page["after"])

    async def begin(self, request: Request) -> Response:
        async with _api(request) as api:
            begun = await api.post("/conversations", {})
        return RedirectResponse(_home(request) + _path_to(begun["conversation_id"]), 303)

    async def conversation(self, request: Request) -> Response:
        """The newest messages, and older ones on request; new ones come as events."""
        id_ = request.path_params["id"]
        async with _api(request) as api:
            before = request.query_params.get("before")
            found = await api.get(f"{_path_to(id_)}/history", limit=_PAGE, before=before)
        messages = [shown(one, self._count_tokens, found["unanswered"]) for one in found["messages"]]
        return self._page(
            request,
            "talk.html",
            id=id_,
            path=_home(request) + _path_to(id_),
            messages=messages,
            language=found.get("language"),
            before=found.get("before"),
            after=0 if not messages else messages[-1].seq,
            live=before is None,
        )

    async def say(self, request: Request) -> Response:
        """Answers with what became of the message; the message itself comes as an event, like everybody else's.

        A browser without scripts gets no events, and is redirected to the conversation.
        """
        form, path = await form_of(request), _path_to(request.path_params["id"])
        async with _api(request) as api:
            taken = await api.post(f"{path}/messages", {"content": form.get("content", "")})
        if not _is_from_script(request):
            return RedirectResponse(_home(request) + path, 303)
        return self._page(request, "receipt.html", receipt=taken.get("receipt") or taken)

    async def erase(self, request: Request) -> Response:
        form, path = await form_of(request), _path_to(request.path_params["id"])
        message = form.get("message", "")
        async with _api(request) as api:
            proof = await api.delete(f"{path}/messages/{quote(message, safe='')}" if message else path)
        return self._page(request, "erased.html", proof=proof, message=message, path=_home(request) + path)

    async def events(self, request: Request) -> Response:
        seen = request.headers.get("last-event-id") or request.query_params.get("after")
        path = f"{_path_to(request.path_params['id'])}/stream"

        async def pieces() -> AsyncIterator[bytes]:
            async with _api(request) as api, api.lines(path, seen) as lines:
                yield b""
                with suppress(httpx.TransportError):  # the service stops; the browser comes back to the next one
                    async for event in _events_in(lines):
                        if piece := self._piece(event.name, json.loads("\n".join(event.data))):
                            yield _framed(event.name, piece, event.id)

        told = pieces()
        await anext(told)  # what is refused is refused here: an answer that has begun can only be cut off
        return StreamingResponse(told, media_type="text/event-stream")

    def _piece(self, name: str, data: dict[str, Any]) -> str:
        match name:
            case "message":
                return self._render("message.html", message=shown(data, self._count_tokens), arrives=True)
            case "delta":
                return self._render("delta.html", text=data["text"])
            case "failed":
                return self._render("failed.html", code=data["code"])
            case "erased":
                return self._render("gone.html")
            case _:
                return ""

    async def sign_in(self, request: Request) -> Response:
        if request.method == "GET":
            return self._page(request, "sign_in.html", problem=None)
        credential = (await form_of(request)).get("credential", "").strip()
        try:
            async with _api(request, credential) as api:
                await api.get("/conversations", limit=1)
        except ApiRefused as refused:
            return self._page(request, "sign_in.html", status=refused.status, problem=refused.detail)
        answer = RedirectResponse(f"{_home(request)}/", 303)
        sign_in(answer, credential, _home(request), secure=request.url.scheme == "https")
        return answer

    async def sign_out(self, request: Request) -> Response:
        answer = RedirectResponse(f"{_home(request)}/sign-in", 303)
        sign_out(answer, _home(request))
        return answer

    def _with_errors_shown(self, page: Page) -> Page:
        """What the API refuses is shown on a page; who must sign in first is taken there."""

        async def shown(request: Request) -> Response:
            try:
                return await page(request)
            except FormTooLarge:
                return self._page(request, "problem.html", status=413, problem="that is more than a form can hold")
            except ApiRefused as refused:
                if _is_from_script(request):  # htmx shows only what succeeded; the note itself shows that this did not
                    unknown = refused.status == 401  # a redirect would lose what was typed
                    return self._page(request, "problem_note.html", problem=refused.detail, sign_in=unknown)
                if refused.status == 401:
                    return RedirectResponse(f"{_home(request)}/sign-in", 303)
                return self._page(request, "problem.html", status=refused.status, problem=refused.detail)

        return shown

    def _page(self, request: Request, name: str, status: int = 200, **values: Any) -> HTMLResponse:
        return HTMLResponse(self._render(name, home=_home(request), **values), status)

    def _render(self, name: str, **values: Any) -> str:
        """Return the page; half an emoji, which UTF-8 cannot carry, is shown as a question mark."""
        page = self._templates.get_template(name).render(**values)
        return page.encode("utf-8", "replace").decode()


def _is_from_script(request: Request) -> bool:
    return "hx-request" in request.headers


def _home(request: Request) -> str:
    """Where these pages stand for a browser: below what the service is mounted at, and what a proxy puts before it."""
    return request.scope["root_path"]


def _path_to(conversation: str) -> str:
    """The same below the API and below these pages."""
    return f"/conversations/{quote(conversation, safe='')}"


@asynccontextmanager
async def _api(request: Request, credential: str | None = None) -> AsyncGenerator[Api]:
    """Over a connection to the port that this request came in by: the pages could as well be on another machine."""
    host, port = request.scope["server"]
    place = _home(request).removeprefix(request.scope["app_root_path"]).removesuffix(MOUNTED_AT)
    address = (f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}") + place
    async with httpx.AsyncClient(base_url=address, timeout=_SECONDS, trust_env=False, verify=_NO_AUTHORITIES) as client:
        yield Api(client, credential or credential_of(request))


@dataclass(slots=True)
class _Event:
    name: str = "message"
    data: list[str] = field(default_factory=list[str])
    id: str | None = None


async def _events_in(lines: AsyncIterator[str]) -> AsyncIterator[_Event]:
    """The events of a stream, comments left out."""
    event = _Event()
    async for line in lines:
        if not line:
            if event.data:
                yield event
            event = _Event()
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            event.name = value
        elif name == "data":
            event.data.append(value)
        elif name == "id":
            event.id = value


def _framed(name: str, piece: str, id_: str | None) -> bytes:
    seen = "" if id_ is None else f"id: {id_}\n"
    data = "".join(f"data: {line}\n" for line in piece.splitlines())
    return f"{seen}event: {name}\n{data}\n".encode()


CountTokens = Callable[[str], int]
_MASKED = re.compile(r"\[REDACTED(?::([A-Z][A-Z0-9_]*)(?:#[0-9]+)?)?\]")


@dataclass(frozen=True, slots=True)
class Part:
    text: str
    masked: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    id: str
    seq: int
    role: str
    parts: tuple[Part, ...]
    moment: str
    language: str
    modality: str
    tokens: int
    redacted: Mapping[str, int]
    unanswered: bool = False


def shown(message: Mapping[str, Any], count_tokens: CountTokens, unanswered: Collection[str] = ()) -> Shown:
    """From a message of the API. Types and counts stand beside the text; what was masked is nowhere."""
    text = str(message["content"])
    return Shown(
        id=str(message["id"]),
        seq=int(message["seq"]),
        role=str(message["role"]),
        parts=tuple(_parts(text)),
        moment=str(message["ts"])[:16].replace("T", " "),
        language=str(message.get("language") or ""),
        modality=str(message.get("modality") or "text"),
        tokens=count_tokens(text),
        redacted=dict(sorted(Counter(found[1] or "VALUE" for found in _MASKED.finditer(text)).items())),
        unanswered=message["id"] in unanswered,
    )


def _parts(text: str) -> list[Part]:
    parts: list[Part] = []
    position = 0
    for found in _MASKED.finditer(text):
        parts += (Part(text[position : found.start()]), Part(found[0], masked=True))
        position = found.end()
    return [part for part in (*parts, Part(text[position:])) if part.text]
