"""Every Python snippet in the README and in docs/ runs as printed, and once more; a `text` block is what it prints."""

import re
import sys
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, PATHS, ROOT, Command, Install, Page, Snippet, page_of

LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


@pytest.mark.parametrize("page", [page for page in PAGES if page.snippets], ids=str)
def test_a_page_runs_twice_in_one_folder_and_prints_what_it_says(page: Page, tmp_path: Path) -> None:
    first = [snippet.failure(sys.executable, tmp_path) for snippet in page.snippets]
    assert first == [None] * len(first)
    again = [snippet.failure(sys.executable, tmp_path, output_counts=False) for snippet in page.snippets]
    assert again == [None] * len(again)


def test_the_readme_has_a_snippet_whose_output_is_checked() -> None:
    assert any(page.name == "README.md" and snippet.prints for page in PAGES for snippet in page.snippets)


def test_the_readme_reaches_runnable_python_before_line_forty() -> None:
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    assert lines.index("asyncio.run(main())") < 40


@pytest.mark.parametrize("page", PATHS, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_of_ours_leads_somewhere(page: Path) -> None:
    missing = [link for link in LINK.findall(page.read_text("utf-8")) if not (page.parent / link).exists()]
    assert missing == []


def test_a_page_is_read_as_the_steps_that_it_has_its_reader_do() -> None:
    page = """Type:

```sh
pip install --upgrade 'threadkeep[cli]' langchain-core   # or more
export X=1
threadkeep index add "a b" \\
  --user ann   # ours
```

```python
print(1)
```

```text
1
```

Call `threadkeep doctor`, see `threadkeep.toml`.

```python
pass
```
"""
    assert page_of("p", page).steps == (
        Install(("threadkeep[cli]", "langchain-core")),
        Command(("threadkeep", "index", "add", "a b", "--user", "ann"), is_mentioned=False),
        Snippet(1, "print(1)\n", "1\n"),
        Command(("threadkeep", "doctor"), is_mentioned=True),
        Snippet(2, "pass\n", None),
    )


def test_a_snippet_that_fails_or_prints_something_else_is_told(tmp_path: Path) -> None:
    assert Snippet(1, "print(1)", "1\n").failure(sys.executable, tmp_path) is None
    assert "prints '1\\n'" in (Snippet(1, "print(1)", "2\n").failure(sys.executable, tmp_path) or "")
    assert "ZeroDivisionError" in (Snippet(1, "1 / 0", None).failure(sys.executable, tmp_path) or "")
