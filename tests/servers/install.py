"""Getting the servers that are missing: by apt when root, otherwise what wheels and the machine already offer."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.servers.locate import KINDS, Found, Kind, Missing, locate
from tests.servers.missing import verdict_on_missing

POLICY = Path("/usr/sbin/policy-rc.d")
LOCK = Path(tempfile.gettempdir()) / "threadkeep-servers-install.lock"
APT_GET = ("apt-get", "--quiet", "--yes", "--option", "DPkg::Lock::Timeout=300")


def install(environment: Mapping[str, str] = os.environ) -> int:
    """Install what is missing and print one line per server; the exit code says whether a test run makes sense."""
    refusal = ""
    if _wanted_from_apt(environment):
        with _one_at_a_time():
            refusal = _apt_install(_wanted_from_apt(environment))
    results = [locate(kind, environment) for kind in KINDS.values()]
    for result in results:
        print(result, flush=True)
    if refusal:
        print(f"apt-get: {refusal}", flush=True)
    nothing_missing = not any(isinstance(result, Missing) for result in results)
    return 0 if nothing_missing or verdict_on_missing(environment) == "skip" else 1


def _wanted_from_apt(environment: Mapping[str, str]) -> Sequence[Kind]:
    if not _apt_may_be_used():
        return []
    return [kind for kind in KINDS.values() if kind.apt_packages and not _is_there(locate(kind, environment))]


def _apt_may_be_used() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def _is_there(result: Found | Missing) -> bool:
    # The distribution's own server is preferred to a wheel's where it can be had.
    return isinstance(result, Found) and not result.in_wheel


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """apt waits for dpkg's lock but not for that of its package lists, so two test runs must take turns."""
    with LOCK.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _apt_install(kinds: Sequence[Kind]) -> str:
    """Install all at once; returns why apt refused, or nothing. Whoever held the lock before may have done it all."""
    if not kinds:
        return ""
    print(f"installing {', '.join(kind.name for kind in kinds)} by apt ...", flush=True)
    packages = [package for kind in kinds for package in kind.apt_packages]
    with _services_do_not_start():
        return _apt("update") or _apt("install", "--no-install-recommends", *packages)


def _apt(*arguments: str) -> str:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run([*APT_GET, *arguments], env=environment, capture_output=True, text=True)
    return "" if done.returncode == 0 else (done.stderr.strip() or f"ended with {done.returncode}")[-1000:]


@contextmanager
def _services_do_not_start() -> Iterator[None]:
    """A package's service would hold its usual port and outlive the tests; Debian asks this file before starting it."""
    if POLICY.exists():
        yield  # the machine's owner has a policy: it stands
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()
