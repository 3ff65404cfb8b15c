"""`python -m tests.docs [PAGE…]`: do what each page says, with nothing installed but what it says to install.

Each page gets an environment and a folder of its own, and is followed from top to bottom: what it says to install is
installed, in the versions of `requirements.lock`; a snippet runs and prints what the page says; a command of a block is
called and may find nothing to work on (the reader's own database), but it is known, misses no extra and does not crash.
Then snippets and commands run once more, in the same folder. Needs uv, and a package index or uv's cache.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from tests.docs.pages import PAGES, ROOT, Command, Install, Page, Snippet

LOCK = ROOT / "requirements.lock"
MISSING = "needs an optional part"
CRASHED = ("Traceback (most recent call last)", "No such option", "No such command")
# In place of the reader's own server: nobody listens there.
NOBODY = "postgresql://reader:secret@127.0.0.1:9/memory"
PATIENCE = 10.0  # seconds; a command that is still running then has started


class Reader:
    """Follows one page in an environment that begins with Threadkeep alone."""

    def __init__(self, uv: str, wheel: Path, folder: Path) -> None:
        self._uv, self._wheel = uv, wheel
        self._venv, self._work = folder / "venv", folder / "work"
        shutil.copytree(ROOT / "examples", self._work / "examples")
        self._python = self._venv / "bin" / "python"
        self._environment = {"PATH": f"{self._venv / 'bin'}:{os.defpath}", "HOME": str(folder), "LANG": "C.UTF-8"}
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, self._venv], check=True)
        self._install("threadkeep")

    def failures(self, page: Page) -> Iterator[str]:
        for time in ("first", "second"):
            for step in page.steps:
                match step:
                    case Install(requirements) if time == "first":
                        self._install(*requirements)
                    case Snippet():
                        failure = step.failure(
                            self._python, self._work, self._environment, output_counts=time == "first"
                        )
                        if failure:
                            yield f"the {time} time {failure}"
                    case Command():
                        yield from self._failures_of(step)
                    case _:
                        pass

    def _install(self, *requirements: str) -> None:
        ours = f" @ {self._wheel.as_uri()}"
        wanted = [one + ours if one.startswith("threadkeep") else one for one in requirements]
        subprocess.run(
            [self._uv, "pip", "install", "--quiet", "--python", self._python, "--constraint", LOCK, *wanted], check=True
        )

    def _failures_of(self, command: Command) -> Iterator[str]:
        """Of a command that is only mentioned, whether there is such a one."""
        words = [re.sub(r"\$DATABASE_URL|postgresql://…", NOBODY, word) for word in command.words]
        if any(word.startswith("https://") for word in words):
            return  # it would leave this machine
        told = self._told([*words, "--help"] if command.is_mentioned else words)
        if any(sign in told for sign in CRASHED) or (MISSING in told and not command.is_mentioned):
            yield f"{command}: {told}"

    def _told(self, words: list[str]) -> str:
        running = subprocess.Popen(
            [self._venv / "bin" / words[0], *words[1:]],
            cwd=self._work,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            return running.communicate(timeout=PATIENCE)[0]
        except subprocess.TimeoutExpired:
            running.terminate()
            return running.communicate()[0]


def main(names: list[str]) -> int:
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    failed = 0
    print("| page | installs | snippets | seconds | |\n|---|---|---|---|---|")
    with TemporaryDirectory() as made:
        wheel = _wheel(Path(made))
        for page in PAGES:
            if page.name not in names if names else not _is_followed(page):
                continue
            begun = monotonic()
            with TemporaryDirectory() as folder:
                failures = list(Reader(uv, wheel, Path(folder)).failures(page))
            installs = ", ".join(f"`{one}`" for one in page.requirements)
            outcome = "FAILS" if failures else "runs twice"
            print(f"| {page} | {installs} | {len(page.snippets)} | {monotonic() - begun:.0f} | {outcome} |", flush=True)
            for failure in failures:
                print(f"{page}: {failure}", file=sys.stderr, flush=True)
            failed += bool(failures)
    return 1 if failed else 0


def _is_followed(page: Page) -> bool:
    """How-to pages, and snippets of the others; a contributor has every extra."""
    return page.name.startswith("docs/how-to/") or (bool(page.snippets) and page.name != "CONTRIBUTING.md")


def _wheel(folder: Path) -> Path:
    """As a reader gets it, without what only a checkout has."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
