"""What a page of the documentation has its reader do, in order: install, call a command, run a snippet."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATHS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
_FENCED = re.compile(r"^```(?P<language>\w+)\n(?P<block>.*?)^```$", re.DOTALL | re.MULTILINE)
_STEP = re.compile(_FENCED.pattern + r"|`(?P<inline>threadkeep [^`]+)`", _FENCED.flags)


@dataclass(frozen=True)
class Install:
    requirements: tuple[str, ...]


@dataclass(frozen=True)
class Command:
    words: tuple[str, ...]
    is_mentioned: bool  # in a sentence, not in a block to be typed

    def __str__(self) -> str:
        return " ".join(self.words)


@dataclass(frozen=True)
class Snippet:
    number: int
    code: str
    prints: str | None  # the block after it, if that is `text`

    def failure(
        self,
        python: str | Path,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        *,
        output_counts: bool = True,
    ) -> str | None:
        """Run it in a process of its own. Return what went wrong."""
        ran = subprocess.run(
            [python, "-W", "error", "-c", self.code],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        if ran.returncode:
            return f"snippet {self.number}: {ran.stderr}"
        if output_counts and self.prints not in (None, ran.stdout):
            return f"snippet {self.number} prints {ran.stdout!r}, and the page says {self.prints!r}"
        return None


Step = Install | Command | Snippet


@dataclass(frozen=True)
class Page:
    name: str
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return self.name

    @property
    def snippets(self) -> list[Snippet]:
        return [step for step in self.steps if isinstance(step, Snippet)]

    @property
    def requirements(self) -> list[str]:
        return [one for step in self.steps if isinstance(step, Install) for one in step.requirements]


def page_of(name: str, text: str) -> Page:
    return Page(name, tuple(_steps(text)))


def _steps(text: str) -> Iterator[Step]:
    snippets = 0
    for found in _STEP.finditer(text):
        if found["inline"]:
            yield Command(tuple(shlex.split(found["inline"])), is_mentioned=True)
        elif found["language"] == "sh":
            yield from _typed(found["block"])
        elif found["language"] == "python":
            snippets += 1
            after = _FENCED.search(text, found.end())
            output = after["block"] if after and after["language"] == "text" else None
            yield Snippet(snippets, found["block"], output)


def _typed(block: str) -> Iterator[Step]:
    for line in block.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:2] == ["pip", "install"]:
            yield Install(tuple(word for word in words[2:] if not word.startswith("-")))
        elif words[:1] == ["threadkeep"]:
            yield Command(tuple(words), is_mentioned=False)


PAGES = [page_of(str(path.relative_to(ROOT)), path.read_text("utf-8")) for path in PATHS]
