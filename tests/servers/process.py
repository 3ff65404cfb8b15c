"""Running a server's program as a child process that is always cleaned up."""

import os
import pwd
import shutil
import signal
import stat
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.servers.reaper import kill_tree, reaper

STOP_SECONDS = 15
UNPRIVILEGED_ACCOUNT = "nobody"


def account_arguments() -> dict[str, Any]:
    """`subprocess` arguments that step down from root: PostgreSQL and PgBouncer refuse to run as root."""
    if os.geteuid() != 0:
        return {}
    account = pwd.getpwnam(UNPRIVILEGED_ACCOUNT)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def give_to_account(path: Path) -> None:
    account = account_arguments()
    if account:
        os.chown(path, account["user"], account["group"], follow_symlinks=False)


def within_reach(program: Path, root: Path, needed: Sequence[str], folder: Path) -> Path:
    """The program, or its copy in `folder` when the account may not enter where it is installed (a venv in /root).

    Copied is what is `needed` under `root`, to the same places: the program finds its libraries from its own.
    """
    if not account_arguments() or all(part.stat().st_mode & stat.S_IXOTH for part in [program, *program.parents]):
        return program
    copy = folder / "program"
    for name in needed:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (root / name).is_dir() else shutil.copy2)(root / name, copy / name)
    for part in [copy, *copy.rglob("*")]:
        give_to_account(part)
    return copy / program.relative_to(root)


def clean_environment(folder: Path) -> Mapping[str, str]:
    """Only what a server needs: a developer's PGHOST or MYSQL_HOME must not reach it."""
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "LC_ALL": "C", "TZ": "UTC"}


def run_to_end(command: Sequence[str | Path], folder: Path) -> None:
    """Run a preparing step (initdb and the like); what it printed is in the error when it fails."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=clean_environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **account_arguments(),
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}:\n{done.stdout[-2000:]}")


class ServerProcess:
    """One running program; its output goes to `log`."""

    def __init__(self, command: Sequence[str | Path], folder: Path, log: Path, *, step_down: bool = True) -> None:
        with log.open("ab") as output:
            self._child = subprocess.Popen(
                command,
                cwd=folder,
                env=clean_environment(folder),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for pytest, which then stops its servers in order
                **(account_arguments() if step_down else {}),
            )
        self._put_under_watch()

    def _put_under_watch(self) -> None:
        try:
            reaper().watch_process(self.pid)
        except OSError:  # the reaper is gone: better no server than one that nobody ends
            kill_tree(self.pid)
            self._child.wait(STOP_SECONDS)
            raise

    @property
    def pid(self) -> int:
        return self._child.pid

    def has_ended(self) -> bool:
        return self._child.poll() is not None

    def kill(self) -> None:
        kill_tree(self.pid)
        self._child.wait(STOP_SECONDS)
        reaper().forget_process(self.pid)

    def stop(self, polite_signal: signal.Signals) -> None:
        """Ask first, so that the server frees what lies outside its folder (shared memory); then insist."""
        self._child.send_signal(polite_signal)
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(STOP_SECONDS)
        self.kill()
