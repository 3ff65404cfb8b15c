"""Terminals that cannot show everything, and outputs that are full or closed: told in a line, never a traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

COMMANDS = ["demo", "export", "stats --json", "doctor", "--help"]


def call(command: str, store: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    name, *flags = command.split()
    url = ["--url", store] if name in ("export", "stats", "doctor") else []
    return subprocess.run([sys.executable, "-m", "threadkeep.cli", name, *flags, *url], timeout=60, **options)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_terminal_that_lacks_the_letters_gets_the_rest(command: str, encoding: str, store: str) -> None:
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    ended = call(command, store, capture_output=True, env=environment)

    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_output_is_told(command: str, store: str) -> None:
    with open("/dev/full", "wb") as full:
        ended = call(command, store, stdout=full, stderr=subprocess.PIPE)

    assert ended.returncode == 1
    assert b"Traceback" not in ended.stderr
    assert ended.stderr.count(b"\n") == 1
    assert b"No space left on device" in ended.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_closed_output_is_told(command: str, store: str) -> None:
    ended = call(command, store, stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1))

    assert ended.returncode == 1
    assert b"Traceback" not in ended.stderr
    assert ended.stderr.count(b"\n") == 1


def test_with_json_a_closed_output_is_told_as_json(store: str) -> None:
    ended = call("stats --json", store, stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1))

    assert json.loads(ended.stderr)["code"] == "io_error"


@pytest.mark.parametrize("command", ["export", "stats --json"])
def test_a_reader_that_has_left_gets_no_traceback(command: str, store: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ended = call(command, store, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)

    assert ended.returncode == 1
    assert b"Traceback" not in ended.stderr
    assert b"Exception ignored" not in ended.stderr


def test_an_export_to_a_file_needs_no_output(store: str, tmp_path: Path) -> None:
    ended = call(f"export --out {tmp_path}/all.ndjson", store, stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1))

    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "all.ndjson").exists()
