"""The gateway in front of something that is not quite the service it should be: errors of ours, never a crash."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from threadkeep.errors import RateLimited, StoreUnavailable, ThreadkeepError
from threadkeep.identity.principal import Principal
from threadkeep.mcp.calls import Call
from threadkeep.mcp.gateway import open_gateway
from threadkeep.mcp.schemas import RetrieveArguments
from threadkeep.scope import Scope

ASKED: list[tuple[str, dict[str, Any]]] = []


@contextmanager
def answering(status: int, body: bytes, **headers: str) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            ASKED.append((self.path, json.loads(self.rfile.read(int(self.headers["content-length"])))))
            self.send_response(status)
            for name, value in {"content-length": str(len(body)), **headers}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    ASKED.clear()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def retrieved(address: str, conversation: str | None = None, request_id: str | None = None) -> dict[str, Any]:
    async with open_gateway(address, "a token") as gateway:
        call = Call(Principal("default", "ann"), Scope("default", "ann"), conversation, request_id)
        return await gateway.retrieve(call, RetrieveArguments(query="what?"))


@pytest.mark.parametrize(
    ("status", "body", "headers", "told"),
    [
        (200, b"<html>", {}, StoreUnavailable),
        (200, b"[]", {}, StoreUnavailable),
        (502, b'["no"]', {}, StoreUnavailable),
        (429, b"", {"retry_after": "Wed, 21 Oct 2026 07:28:00 GMT"}, RateLimited),
        (429, b"{}", {"retry_after": "7"}, RateLimited),
    ],
    ids=["a page", "a list", "a list of problems", "a date", "seconds"],
)
async def test_an_answer_that_is_none_is_told_as_an_error_of_ours(
    status: int, body: bytes, headers: dict[str, str], told: type[ThreadkeepError]
) -> None:
    with answering(status, body, **headers) as address, pytest.raises(told):
        await retrieved(address)


@pytest.mark.parametrize("conversation", ["rozmowa o łódce", "對話", " c1"])
async def test_a_conversation_that_no_header_can_name_is_named_in_the_body(conversation: str) -> None:
    answer = json.dumps({"result": {"structuredContent": {"success": True}}}).encode()
    with answering(200, answer) as address:
        assert await retrieved(address, conversation) == {"success": True}

    path, sent = ASKED[0]
    assert (path, sent["params"]["_meta"]["vscode.conversationId"]) == ("/mcp", conversation)


async def test_a_request_id_that_no_header_can_carry_is_left_out() -> None:
    with answering(200, b"{}") as address:
        assert await retrieved(address, "c1", "żądanie") == {}
    assert ASKED[0][0] == "/retrieval/query"
