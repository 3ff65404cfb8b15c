"""The documents of the example, indexed by one command and asked through MCP with a follow-up."""

import re
import subprocess
import sys
from pathlib import Path

from tests.service.running import clean_environment
from threadkeep.cli.app import run as cli

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "docs_retrieval"
PRINTED = re.compile(r"^```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def run(folder: Path, *arguments: str) -> str:
    ran = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=clean_environment(folder),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_example_prints_what_its_readme_says(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/guide.db"
    assert cli(["index", "add", str(EXAMPLE / "knowledge"), "--datasource", "guide", "--url", url]) == 0
    answered = run(tmp_path, str(EXAMPLE / "ask.py"), url)
    (printed,) = PRINTED.findall((EXAMPLE / "README.md").read_text("utf-8"))
    assert answered == printed
