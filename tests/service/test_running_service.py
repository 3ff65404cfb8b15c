"""`threadkeep serve` as it really runs: a process, a port, signals, a log."""

import json
import signal
import socket
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from tests.service.running import COMMAND, RunningService, clean_environment
from threadkeep import Scope, SyncMemory

CANARY = "xyzzy-canary"
TALK = {"tenant": f"tenant-{CANARY}", "user": f"user-{CANARY}", "conversation": f"talk-{CANARY}"}


def test_health_append_and_history_over_a_real_socket(service: RunningService) -> None:
    with service.client() as client:
        body = {"scope": TALK, "events": [{"kind": "UserMessage", "text": "I am allergic to peanuts"}]}

        assert client.get("/healthz").json() == {"status": "ok"}
        ready = client.get("/readyz").json()
        assert (ready["status"], ready["stores"], ready["lag"], ready["findings"]) == (
            "ok",
            {"archive": "ok"},
            None,
            [],
        )
        assert client.post("/v1/memory/append", json=body).json()["status"] == "stored"
        kept = client.get("/v1/memory/history", params=TALK).json()["messages"]
        assert [message["content"] for message in kept] == ["I am allergic to peanuts"]


def test_an_answer_does_not_wait_for_a_delayed_acknowledgement(service: RunningService) -> None:
    """Nagle's algorithm would hold the second packet of every answer back for 40 ms, even of the quickest one."""
    with service.client() as client:
        quickest = min(client.get("/healthz").elapsed for _ in range(30))

    assert quickest < timedelta(milliseconds=30)


@pytest.mark.parametrize("polite_signal", [signal.SIGTERM, signal.SIGINT])
def test_a_polite_signal_ends_it_cleanly_with_everything_on_disk(tmp_path: Path, polite_signal: signal.Signals) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    with RunningService(tmp_path, url) as service, service.client() as client:
        client.post("/v1/memory/append", json={"scope": TALK, "events": [{"kind": "UserMessage", "text": "kept"}]})
        code = service.stop(polite_signal)

    assert code == 0
    assert "Traceback" not in service.log.read_text()
    assert not (tmp_path / "memory.db-wal").exists()
    with SyncMemory(url) as memory:
        assert memory.stats(Scope(**TALK)).messages == 1


def test_of_a_request_only_whose_memory_it_reached_is_in_the_log(service: RunningService) -> None:
    place = {"tenant": "shop", "user": "ann", "conversation": "talk-1"}
    event = {"kind": "UserMessage", "text": f"text {CANARY}", "id": f"id-{CANARY}"}
    with service.client() as client:
        for _ in range(2):
            client.post(
                "/v1/memory/append", json={"scope": place, "events": [event], "key": f"key-{CANARY}"},
            )  # fmt: skip
        client.post("/v1/memory/append", json={"scope": place, "events": [event | {"text": "other"}]})
        client.post("/v1/memory/append", json={"scope": place, "events": [{"kind": CANARY}], CANARY: CANARY})
        client.post("/v1/memory/append", content=CANARY, headers={"Content-Type": "application/json"})
        client.post("/v1/memory/recall", json={"scope": place, "query": f"what about {CANARY}?"})
        client.post("/v1/memory/erase", json={"scope": place, "message_id": f"id-{CANARY}"})
        for path in ("history", "conversations", "stats", "export", CANARY):
            client.get(f"/v1/memory/{path}", params=place | {CANARY: CANARY})
            client.get(f"/v1/memory/{path}", params=place)
        client.get("/healthz", headers={"X-Request-ID": f"{CANARY}@example.com", "Host": f"{CANARY}.example"})
    assert service.stop() == 0

    assert CANARY not in service.log.read_text()
    requests = [line for line in service.logged() if line["event"] == "request"]
    assert len(requests) == 18
    told = {"time", "level", "event", "method", "route", "status", "ms", "request_id"}
    reached = {"who": "local", "tenant": "shop", "user": "ann", "conversation_id": "talk-1", "outcome": "ok"}
    reached |= {"caller_tenant": "default", "caller_user": "default"}
    assert requests[0].keys() == told | reached.keys()
    assert reached.items() <= requests[0].items()
    assert (requests[0]["method"], requests[0]["route"]) == ("POST", "/v1/memory/append")
    assert {line["status"] for line in requests} == {200, 400, 404, 409, 421, 422}


def test_a_broken_request_line_is_answered_and_not_quoted_in_the_log(service: RunningService) -> None:
    host, port = service.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as raw:
        raw.sendall(f"GET /{CANARY} HTTP/9.9 {CANARY}\r\n\r\n".encode())
        assert raw.recv(1_000).startswith(b"HTTP/1.1 400")
    service.stop()

    assert CANARY not in service.log.read_text()


def test_an_oversized_upload_over_a_real_socket_is_answered(service: RunningService) -> None:
    event = {"kind": "UserMessage", "text": "x" * 10_000_000}
    with service.client() as client:
        answer = client.post("/v1/memory/append", json={"scope": TALK, "events": [event]})

        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
        assert client.get("/v1/memory/stats").json()["messages"] == 0


def test_an_upload_without_a_length_is_answered_too(service: RunningService) -> None:
    with service.client() as client:
        chunks = (b" " * 1_000_000 for _ in range(10))
        answer = client.post("/v1/memory/append", content=chunks, headers={"Content-Type": "application/json"})

        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def serve_and_wait(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "serve", *arguments],
        cwd=folder,
        env=clean_environment(folder),
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "example.com"])
def test_it_listens_on_loopback_only(tmp_path: Path, host: str) -> None:
    ended = serve_and_wait(tmp_path, "--host", host, "--port", "0")

    assert ended.returncode == 1
    assert "loopback" in ended.stderr
    assert "no authentication" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_taken_port_is_told_without_a_traceback(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = serve_and_wait(tmp_path, "--json", "--port", str(taken.getsockname()[1]))

    assert ended.returncode == 1
    assert ended.stdout == ""
    assert json.loads(ended.stderr)["field"] == "--port"


def test_a_store_that_will_not_open_is_told_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_bytes(b"not a database " * 100)
    ended = serve_and_wait(tmp_path, "--json", "--port", "0", "--url", "sqlite:///memory.db")

    assert ended.returncode == 1
    assert json.loads(ended.stderr.splitlines()[-1])["code"] == "store_corrupt"
