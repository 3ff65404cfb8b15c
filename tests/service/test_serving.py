"""`threadkeep serve` with an assistant, and on addresses that others can reach."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.service.conftest import client_of
from tests.service.running import COMMAND, RunningService, clean_environment
from tests.unit.cli.conftest import Command, threadkeep
from threadkeep.compose.service import open_keys
from threadkeep.errors import InvalidSetting
from threadkeep.http.app import create_app
from threadkeep.identity.api_keys import new_key
from threadkeep.ports.clock import system_clock
from threadkeep.settings import Settings

__all__ = ["threadkeep"]
SECRET = "0123456789abcdef0123456789abcdef"
SESSION = "3f0c9d4e-8d1b-4c57-9a51-0d6c2f3b7e10"


def library(folder: Path) -> Path:
    (folder / "knowledge").mkdir(parents=True)
    (folder / "assistant.toml").write_text('name = "library"\nlanguages = ["en"]\ndefault_language = "en"\n')
    (folder / "persona.md").write_text("Greeting: Welcome to the library!\nA quiet librarian.")
    (folder / "prompt.txt").write_text("Answer questions about the library.")
    (folder / "knowledge" / "hours.md").write_text("# Hours\n\nThe library opens at nine and closes at six.\n")
    return folder


def test_a_folder_answers_over_http_out_of_its_documents_and_the_talk(tmp_path: Path) -> None:
    folder = library(tmp_path / "library")
    with (
        RunningService(tmp_path, f"sqlite:///{tmp_path}/memory.db", "--assistant", str(folder)) as service,
        service.client() as client,
    ):
        talk = client.post("/conversations").json()
        place = f"/conversations/{talk['conversation_id']}"
        said = client.post(
            f"{place}/messages", params={"wait": "true"}, json={"content": "When does the library open?"}
        )
        first = client.post("/agent/chat", json={"sessionId": SESSION, "message": "My seat is number twelve."})
        second = client.post("/agent/chat", json={"sessionId": SESSION, "message": "Which seat is mine?"})
        indexed = client.post("/admin/index", params={"wait": "true"}).json()
        health = client.get("/agent/health").json()
        kept = client.get(f"{place}/history").json()["messages"]

    assert talk["greeting"]["content"] == "Welcome to the library!"
    assert "opens at nine" in said.json()["answer"]["content"]
    assert first.status_code == 200
    assert "twelve" in second.json()["reply"]
    assert (indexed["datasource"], indexed["report"]["unchanged"], indexed["report"]["added"]) == ("library", 1, 0)
    assert health["assistant"] is True
    assert [one["role"] for one in kept] == ["assistant", "user", "assistant"]


def test_a_broken_folder_keeps_the_service_from_starting(tmp_path: Path, threadkeep: Command) -> None:
    folder = library(tmp_path / "library")
    (folder / "assistant.toml").write_text("name = 7\n")

    ended = threadkeep("serve", "--json", "--port", "0", "--url", "sqlite://", "--assistant", str(folder))

    assert ended.code == 1
    assert ended.problem["code"] == "invalid_assistant"


def test_with_authentication_it_may_listen_for_others_and_knows_its_callers(
    tmp_path: Path, threadkeep: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    environment = {"THREADKEEP_API_KEY_SECRET": SECRET}
    monkeypatch.setenv("THREADKEEP_API_KEY_SECRET", SECRET)
    made = threadkeep("keys", "create", "--user", "ann", "--json", "--url", url).json
    with RunningService(tmp_path, url, "--host", "0.0.0.0", **environment) as service:
        port = re.search(r"\d+$", service.url)
        assert port is not None
        with httpx.Client(base_url=f"http://127.0.0.1:{port[0]}", trust_env=False) as client:
            headers = {"Host": "memory.example"}
            stranger = client.get("/conversations/c1/history", headers=headers)
            known = client.post("/conversations", headers=headers | {"X-API-Key": made["key"]})
            assert threadkeep("keys", "revoke", made["prefix"], "--url", url).code == 0
            open_to_all = client.get("/healthz", headers=headers)
        log = service.log.read_text()

    assert (stranger.status_code, known.status_code, open_to_all.status_code) == (401, 201, 200)
    assert made["key"] not in log


@pytest.mark.parametrize("host", ["", "192.0.2.1"])
def test_a_host_that_cannot_be_listened_on_is_what_is_named(
    threadkeep: Command, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setenv("THREADKEEP_API_KEY_SECRET", SECRET)
    ended = threadkeep("serve", "--json", "--host", host, "--port", "0", "--url", "sqlite://")

    assert (ended.code, ended.problem["field"]) == (1, "--host")
    assert "0.0.0.0" in ended.problem["fix"]


@pytest.fixture
def own_signals() -> Iterator[None]:
    """What a service that runs in this process has changed is as before."""
    before = [(number, signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGINT)]
    yield
    for number, handler in before:
        signal.signal(number, handler)


@pytest.mark.usefixtures("own_signals")
@pytest.mark.parametrize(("options", "retains"), [((), True), (("--no-worker",), False)])
def test_it_lets_go_of_what_was_kept_long_enough_unless_a_worker_does(
    threadkeep: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], retains: bool
) -> None:
    begun: list[tuple[str | None, float]] = []

    async def retain_daily(url: str | None, settings: Settings, **_: object) -> None:
        begun.append((url, settings.turn_retention_days))

    monkeypatch.setattr("threadkeep.cli.upkeep.retain_daily", retain_daily)
    monkeypatch.setattr("threadkeep.cli.serve._announce", lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM))
    monkeypatch.setenv("THREADKEEP_TURN_RETENTION_DAYS", "30")
    url = f"sqlite:///{tmp_path}/memory.db"
    ended = threadkeep("serve", "--json", "--port", "0", "--url", url, *options)

    assert ended.code == 0
    assert begun == ([(url, 30)] if retains else [])


def test_running_without_authentication_is_said_first_and_on_readyz(tmp_path: Path) -> None:
    with RunningService(tmp_path, f"sqlite:///{tmp_path}/memory.db") as service, service.client() as client:
        ready = client.get("/readyz").json()
        first = service.logged()[0]

    assert ready["authentication"] == "none"
    assert first.items() >= {"level": "warning", "event": "starting", "authentication": "none"}.items()


def test_with_authentication_the_first_line_and_readyz_say_so(tmp_path: Path) -> None:
    environment = {"THREADKEEP_JWT_SECRET": SECRET}
    with (
        RunningService(tmp_path, f"sqlite:///{tmp_path}/memory.db", **environment) as service,
        service.client() as client,
    ):
        ready = client.get("/readyz").json()
        first = service.logged()[0]

    assert ready["authentication"] == "required"
    assert first.items() >= {"level": "info", "event": "starting", "authentication": "required"}.items()


@pytest.mark.parametrize("revoked", [False, True])
def test_once_a_key_exists_running_without_authentication_must_be_asked_for(
    tmp_path: Path, threadkeep: Command, monkeypatch: pytest.MonkeyPatch, revoked: bool
) -> None:
    """As where the secret is left out of a new deployment: every call would be a SUPER_ADMIN's."""
    url = f"sqlite:///{tmp_path}/memory.db"
    monkeypatch.setenv("THREADKEEP_API_KEY_SECRET", SECRET)
    made = threadkeep("keys", "create", "--user", "ann", "--json", "--url", url).json
    if revoked:
        assert threadkeep("keys", "revoke", made["prefix"], "--url", url).code == 0
    monkeypatch.delenv("THREADKEEP_API_KEY_SECRET")

    command = [*COMMAND, "serve", "--json", "--port", "0", "--url", url]
    refused = subprocess.run(
        command, env=clean_environment(tmp_path), cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )

    assert refused.returncode == 1
    problem = json.loads(refused.stderr.splitlines()[-1])  # behind the log
    assert problem["code"] == "invalid_setting"
    assert "THREADKEEP_API_KEY_SECRET" in problem["detail"]
    assert "--no-auth" in problem["detail"]
    with RunningService(tmp_path, url, "--no-auth") as service, service.client() as client:
        assert client.get("/readyz").json()["authentication"] == "none"
        assert client.get("/v1/memory/stats").status_code == 200
    with RunningService(tmp_path, url, THREADKEEP_API_KEY_SECRET=SECRET) as service, service.client() as client:
        assert client.get("/v1/memory/stats").status_code == 401


def test_no_auth_is_for_loopback_and_wins_over_what_is_configured(
    tmp_path: Path, threadkeep: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    monkeypatch.setenv("THREADKEEP_JWT_SECRET", SECRET)

    refused = threadkeep("serve", "--json", "--port", "0", "--url", url, "--host", "0.0.0.0", "--no-auth")

    assert (refused.code, refused.problem["field"]) == (1, "--host")
    with (
        RunningService(tmp_path, url, "--no-auth", THREADKEEP_JWT_SECRET=SECRET) as service,
        service.client() as client,
    ):
        assert client.get("/v1/memory/stats").status_code == 200
        assert service.logged()[0]["authentication"] == "none"


async def test_an_application_made_of_the_settings_is_held_to_the_same(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    async with open_keys(url, Settings()) as keys:
        await keys.add(new_key(SECRET, system_clock(), ("default", "ann"))[1])
    settings = Settings(DATABASE_URL=url)
    refused, allowed = create_app(settings), create_app(settings, no_auth=True)

    with pytest.raises(InvalidSetting, match="no_auth"):
        async with refused.router.lifespan_context(refused):
            pass
    async with client_of(allowed) as client:
        assert (await client.get("/readyz")).json()["authentication"] == "none"
