"""Every Python snippet in the README and in docs/ runs as printed; a `text` block after one is what it prints."""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


@dataclass(frozen=True)
class Snippet:
    page: str
    number: int
    code: str
    prints: str | None

    def __str__(self) -> str:
        return f"{self.page}-{self.number}"


def snippets_of(page: str, text: str) -> list[Snippet]:
    blocks = BLOCK.findall(text)
    following = [*blocks[1:], ("", "")][: len(blocks)]
    return [
        Snippet(page, number, code, after if kind == "text" else None)
        for number, ((language, code), (kind, after)) in enumerate(zip(blocks, following, strict=True))
        if language == "python"
    ]


SNIPPETS = [s for page in PAGES for s in snippets_of(str(page.relative_to(ROOT)), page.read_text("utf-8"))]


@pytest.mark.parametrize("snippet", SNIPPETS, ids=str)
def test_a_snippet_runs_and_prints_what_the_page_says(snippet: Snippet, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", snippet.code], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    if snippet.prints is not None:
        assert ran.stdout == snippet.prints


def test_the_readme_has_a_snippet_whose_output_is_checked() -> None:
    assert any(s.page == "README.md" and s.prints for s in SNIPPETS)


def test_the_readme_reaches_runnable_python_before_line_forty() -> None:
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    assert lines.index("asyncio.run(main())") < 40


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_of_ours_leads_somewhere(page: Path) -> None:
    missing = [link for link in LINK.findall(page.read_text("utf-8")) if not (page.parent / link).exists()]
    assert missing == []


def test_a_snippet_and_its_output_are_told_apart() -> None:
    page = "```python\nprint(1)\n```\n\n```text\n1\n```\n\n```sh\nls\n```\n\n```python\npass\n```\n"
    assert [(s.code, s.prints) for s in snippets_of("p", page)] == [("print(1)\n", "1\n"), ("pass\n", None)]
