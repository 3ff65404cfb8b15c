"""Ends what a test run started, even when the run itself is killed.

`atexit` does not run after SIGKILL, `os._exit` (pytest-timeout) or a lost xdist worker. So a small child process holds
the other end of our pipe: when the pipe closes, however that came about, it kills the processes and removes the
folders still on its list. A process is known by its id *and* its start time, so a reused id is never hit.
"""

import atexit
import json
import os
import shutil
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import psutil

FINISH_SECONDS = 15


class Reaper:
    def __init__(self) -> None:
        # A session of its own: Ctrl-C in the terminal must not end the reaper before it has done its work.
        self._child = subprocess.Popen(
            [sys.executable, "-P", __file__], stdin=subprocess.PIPE, text=True, start_new_session=True
        )
        self._owner = os.getpid()
        atexit.register(self.finish)

    def watch_process(self, pid: int) -> None:
        self._tell("watch", "process", [pid, psutil.Process(pid).create_time()])

    def forget_process(self, pid: int) -> None:
        self._tell("forget", "process", [pid, 0])

    def watch_folder(self, folder: Path) -> None:
        self._tell("watch", "folder", [str(folder), 0])

    def forget_folder(self, folder: Path) -> None:
        self._tell("forget", "folder", [str(folder), 0])

    def finish(self) -> None:
        if os.getpid() != self._owner:
            return  # a forked child inherits our atexit list, but not our servers
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait(FINISH_SECONDS)

    def _tell(self, verb: str, kind: str, subject: list[object]) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps([verb, kind, *subject]) + "\n")
        self._child.stdin.flush()


@cache
def reaper() -> Reaper:
    """The one reaper of this test process, started with its first server."""
    return Reaper()


def kill_tree(pid: int) -> None:
    """SIGKILL a process and all below it, and wait until they are gone.

    The parent is frozen first, so that it cannot fork between the listing and the kill.
    """
    try:
        parent = psutil.Process(pid)
        parent.suspend()
        family = [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for member in family:
        try:
            member.kill()
        except psutil.NoSuchProcess:
            continue
    _wait_until_gone(family)


def _wait_until_gone(family: list[psutil.Process]) -> None:
    deadline = time.monotonic() + FINISH_SECONDS
    while not all(is_gone(member) for member in family):
        if time.monotonic() > deadline:
            raise TimeoutError(f"still there after SIGKILL: {family}")
        time.sleep(0.005)


def is_gone(process: psutil.Process) -> bool:
    """A zombie holds no memory, file or port any more: whoever is its parent may collect it later."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _is_same_process(pid: int, started: float) -> bool:
    try:
        return psutil.Process(pid).create_time() == started
    except psutil.NoSuchProcess:
        return False


def main() -> None:
    watched: dict[tuple[str, int | str], float] = {}
    for line in sys.stdin:
        verb, kind, subject, started = json.loads(line)
        if verb == "watch":
            watched[kind, subject] = started
        else:
            watched.pop((kind, subject), None)
    for (kind, subject), started in watched.items():
        if kind == "process" and _is_same_process(int(subject), started):
            kill_tree(int(subject))
    for kind, subject in watched:
        if kind == "folder":
            shutil.rmtree(str(subject), ignore_errors=True)


if __name__ == "__main__":
    main()
