"""What a client may cost before it is known: sizes, counts, times and connections, on a running service."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.running import RunningService

GET = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@contextmanager
def limited(folder: Path, **settings: str) -> Iterator[RunningService]:
    """With short times, and whatever else is asked for."""
    short = {"THREADKEEP_HEADER_TIMEOUT_SECONDS": "1", "THREADKEEP_BODY_TIMEOUT_SECONDS": "1"}
    with RunningService(folder, f"sqlite:///{folder}/memory.db", **{**short, **settings}) as running:
        yield running


@pytest.fixture(scope="module")
def limits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with limited(tmp_path_factory.mktemp("limits")) as running:
        yield running


def opened(service: RunningService) -> socket.socket:
    host, _, port = service.url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), 30)


def told(connection: socket.socket) -> tuple[int, dict[str, Any]]:
    """The status and the JSON of one answer; 0 and nothing where the connection was closed without one."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        piece = connection.recv(65_536)
        if not piece:
            return 0, {}
        answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    lengths = [int(line.split(b":")[1]) for line in head.lower().splitlines() if line.startswith(b"content-length")]
    while len(body) < lengths[0]:
        body += connection.recv(65_536)
    return int(head.split()[1]), json.loads(body)


def closed(connection: socket.socket) -> bool:
    """Whether the other side ends the connection, and says nothing more; waits until it does."""
    try:
        return connection.recv(65_536) == b""
    except ConnectionError:
        return True


def is_problem(told: tuple[int, dict[str, Any]], status: int, code: str) -> bool:
    answered, body = told
    return (answered, body.get("status"), body.get("code")) == (status, status, code) and bool(body["request_id"])


@pytest.mark.parametrize(
    ("request_", "status", "code"),
    [
        (GET + b"X-Large: " + b"x" * 40_000 + b"\r\n\r\n", 431, "headers_too_large"),
        (GET + b"X-Large: " + b"x" * 40_000, 431, "headers_too_large"),
        (GET + b"X-Some: x\r\n" * 101 + b"\r\n", 431, "too_many_headers"),
        (b"GET /healthz?" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 414, "url_too_long"),
        (b"GET /healthz?" + b"x" * 40_000, 414, "url_too_long"),
        (b"GET /healthz SMTP\r\n\r\n", 400, "bad_request"),
        (b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", 400, "bad_request"),
        (b"GET http://127.0.0.1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 400, "bad_request"),
        (b"GET /\xc3\xa9 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 400, "bad_request"),
    ],
    ids=[
        "large header",
        "unfinished header",
        "many headers",
        "long URL",
        "unfinished URL",
        "not HTTP",
        "a proxy's method",
        "a URL without a path",
        "a path that is not ASCII",
    ],
)
def test_what_is_too_large_gets_a_problem_and_the_connection_ends(
    limits: RunningService, request_: bytes, status: int, code: str
) -> None:
    with opened(limits) as connection:
        connection.sendall(request_)

        assert is_problem(told(connection), status, code)
        assert closed(connection)


def test_what_is_within_the_limits_is_answered_however_it_is_cut(limits: RunningService) -> None:
    request = GET + b"X-Large: " + b"x" * 30_000 + b"\r\n" + b"X-Some: x\r\n" * 90 + b"\r\n"
    with opened(limits) as connection:
        connection.sendall(request)
        assert told(connection)[0] == 200
        for start in range(0, len(request), 4_096):
            connection.sendall(request[start : start + 4_096])
        assert told(connection)[0] == 200


def test_requests_sent_without_waiting_for_answers_are_all_answered(limits: RunningService) -> None:
    body = json.dumps({"scope": {"user": "u", "conversation": "c"}, "events": [], "key": "k" * 200}).encode()
    head = b"Host: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    with opened(limits) as connection:
        connection.sendall((b"POST /v1/memory/append HTTP/1.1\r\n" + head + body + GET + b"\r\n") * 20)
        answers = _all_of(connection, 40)

    assert answers == [200, 200] * 20


def _all_of(connection: socket.socket, count: int) -> list[int]:
    received = b""
    while received.count(b"HTTP/1.1 ") < count:
        piece = connection.recv(65_536)
        assert piece, received
        received += piece
    return [int(part[:3]) for part in received.split(b"HTTP/1.1 ")[1:]]


@pytest.mark.parametrize(
    "start", [GET, GET + b"X-Slow: ", b"G", b"\r\n"], ids=["headers", "a header", "verb", "nothing"]
)
def test_headers_that_do_not_arrive_in_time_are_answered_408(limits: RunningService, start: bytes) -> None:
    with opened(limits) as connection:
        connection.sendall(start)

        assert is_problem(told(connection), 408, "request_timeout")
        assert closed(connection)


def test_a_connection_on_which_nothing_is_sent_is_closed(limits: RunningService) -> None:
    with opened(limits) as connection:
        assert closed(connection)


@pytest.mark.parametrize("path", [b"/v1/memory/append", b"/agent/chat", b"/mcp"])
def test_a_body_that_does_not_arrive_in_time_is_answered_408(limits: RunningService, path: bytes) -> None:
    head = b"Host: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    with opened(limits) as connection:
        connection.sendall(b"POST " + path + b" HTTP/1.1\r\n" + head + b'Content-Length: 100\r\n\r\n{"scope"')
        status, problem = told(connection)

        assert (status, problem["code"]) == (408, "request_timeout")
        assert closed(connection)


def test_a_body_that_was_answered_before_it_was_sent_is_not_waited_for(limits: RunningService) -> None:
    with opened(limits) as connection:
        connection.sendall(b"POST /no/such/route HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000000\r\n\r\n")
        assert told(connection)[0] == 404
        with pytest.raises(ConnectionError):
            connection.sendall(b"x" * 100_000_000)


def test_a_stream_outlives_every_limit_on_the_request(limits: RunningService) -> None:
    with limits.client() as client:
        talk = client.post("/conversations").json()["conversation_id"]
        with client.stream("GET", f"/conversations/{talk}/stream", headers={"Last-Event-ID": "0"}) as stream:
            events = (line for line in stream.iter_lines() if line.startswith("data:"))
            with opened(limits) as connection:  # open for as long as a request may take, and longer
                assert closed(connection)
            client.post(f"/conversations/{talk}/messages", json={"content": "still there?"})
            assert any("still there?" in event for event in events)


def test_a_new_client_takes_the_place_of_one_that_sends_no_request(tmp_path: Path) -> None:
    with limited(tmp_path, THREADKEEP_MAX_CONNECTIONS="10") as service, ExitStack() as stack:
        assert httpx.get(f"{service.url}/healthz", trust_env=False).status_code == 200
        slow = [stack.enter_context(opened(service)) for _ in range(15)]
        for one in slow[10:]:
            one.sendall(b"GET")
        answers = [httpx.get(f"{service.url}/healthz", trust_env=False).status_code for _ in range(15)]

    assert answers == [200] * 15


@pytest.mark.parametrize("path", ["/console/sign-in", "/v1/memory/append"])
def test_a_new_client_takes_the_place_of_one_whose_body_does_not_arrive(tmp_path: Path, path: str) -> None:
    patient = {"THREADKEEP_MAX_CONNECTIONS": "5", "THREADKEEP_BODY_TIMEOUT_SECONDS": "60"}
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n"
    head += "Content-Type: application/x-www-form-urlencoded\r\n\r\nkey="
    with limited(tmp_path, **patient) as service, ExitStack() as stack:
        assert httpx.get(f"{service.url}/healthz", trust_env=False).status_code == 200
        slow = [stack.enter_context(opened(service)) for _ in range(5)]
        for one in slow:
            one.sendall(head.encode())
        answers = [httpx.get(f"{service.url}/healthz", trust_env=False).status_code for _ in range(10)]

    assert answers == [200] * 10


def test_where_every_connection_is_at_work_a_new_one_is_told_to_come_back(tmp_path: Path) -> None:
    with limited(tmp_path, THREADKEEP_MAX_CONNECTIONS="3") as service, service.client() as client, ExitStack() as stack:
        talk = client.post("/conversations").json()["conversation_id"]
        listening = [stack.enter_context(opened(service)) for _ in range(3)]
        for one in listening:
            one.sendall(f"GET /conversations/{talk}/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            assert b"ready" in _until(one, b"ready")
        with opened(service) as late:
            assert is_problem(told(late), 503, "too_many_connections")
            assert closed(late)
        listening[0].close()

        assert _answered_at_last(service)


def _until(connection: socket.socket, wanted: bytes) -> bytes:
    received = b""
    while wanted not in received:
        piece = connection.recv(4_096)
        assert piece, received
        received += piece
    return received


def _answered_at_last(service: RunningService) -> bool:
    """Once the service has noticed that a listener left."""
    give_up = time.monotonic() + 20
    while time.monotonic() < give_up:
        if httpx.get(f"{service.url}/healthz", trust_env=False).status_code == 200:
            return True
    return False


def test_a_refusal_is_logged_without_what_was_sent(limits: RunningService) -> None:
    with opened(limits) as connection:
        connection.sendall(GET + b"X-Large: " + b"canary0001quill" * 4_000)
        _, problem = told(connection)
        assert closed(connection)

    (line,) = [line for line in limits.logged() if line.get("request_id") == problem["request_id"]]
    assert (line["event"], line["status"], line["code"]) == ("refused", 431, "headers_too_large")
    assert "canary0001quill" not in limits.log.read_text()
