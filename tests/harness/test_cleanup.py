"""Nothing a test run started outlives it, however the run ends."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from tests.servers.locate import POSTGRES, REDIS
from tests.servers.postgres import PostgresServer
from tests.servers.process import account_arguments, within_reach
from tests.servers.provide import need_program
from tests.servers.reaper import is_gone
from tests.servers.redis import RedisServer
from tests.servers.server import ServerDidNotStart
from tests.servers.waiting import wait_until

RUN = """
import os, signal, sys
from tests.servers.redis import RedisServer
server = RedisServer(sys.argv[1])
server.start()
print(server.pid, server.folder, flush=True)
"""


def is_alive(pid):
    try:
        return not is_gone(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize(
    "ending",
    ["os.kill(os.getpid(), signal.SIGKILL)", "os.kill(os.getpid(), signal.SIGTERM)", "os._exit(1)", "sys.exit(0)"],
)
def test_servers_end_with_the_run_that_started_them(ending):
    command = [sys.executable, "-c", RUN + ending, need_program(REDIS)]
    run = subprocess.run(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True, timeout=60)
    pid, folder = run.stdout.split()
    wait_until(lambda: not is_alive(int(pid)), seconds=10, what="the server is gone")
    wait_until(lambda: not Path(folder).exists(), seconds=10, what="its folder is gone")


@pytest.fixture
def made_folders(monkeypatch):
    made = []

    def make_and_remember(**options):
        made.append(real(**options))
        return made[-1]

    real = tempfile.mkdtemp
    monkeypatch.setattr(tempfile, "mkdtemp", make_and_remember)
    return made


def test_a_server_that_cannot_start_shows_its_log_and_leaves_no_folder(made_folders):
    server = RedisServer(need_program(REDIS), settings=["--no-such-setting", "1"])
    with pytest.raises(ServerDidNotStart, match="no-such-setting"):
        server.start()
    assert len(made_folders) == 1
    assert not Path(made_folders[0]).exists()


def test_a_server_is_not_started_twice(new_redis):
    with pytest.raises(RuntimeError, match="already started"):
        new_redis().start()


def test_a_stopped_server_can_be_started_anew(new_redis):
    server = new_redis()
    server.stop()
    server.start()
    assert server.answers()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root steps down to another account")
def test_root_runs_servers_as_an_account_without_rights(new_redis):
    assert psutil.Process(new_redis().pid).uids().real == account_arguments()["user"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root steps down to another account")
def test_postgres_runs_from_a_folder_only_root_may_enter(tmp_path):
    program = Path(need_program(POSTGRES))
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "packages").symlink_to(program.parents[3])
    with PostgresServer(str(closed / "packages" / program.relative_to(program.parents[3]))) as server:
        assert (server.folder / "program").exists()
        server.stop()
        server.start()
        assert server.answers()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root steps down to another account")
def test_a_program_everybody_may_run_is_not_copied(tmp_path):
    assert within_reach(Path("/bin/sh"), Path("/bin"), ["sh"], tmp_path) == Path("/bin/sh")
