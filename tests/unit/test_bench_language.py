"""`bench language` measures every contestant on every set. No figure is asserted: that is what the benchmark is for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OPEN_DATA = ROOT.parent / "shared" / "data"


@pytest.mark.slow
def test_language_measures_ours_and_the_peers_on_the_same_lines() -> None:
    if not (OPEN_DATA / "language").is_dir():
        pytest.skip(f"the open data sets are not at {OPEN_DATA}")
    command = [sys.executable, "-m", "bench", "language", "--quick", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert set(result["contestants"]) == {"Threadkeep", "lingua", "pycld2", "py3langid"}
    lines = {
        name: [(row["set"], row["language"], row["texts"]) for row in its["sets"]]
        for name, its in result["contestants"].items()
    }
    assert len(lines["Threadkeep"]) == 20
    assert all(its == lines["Threadkeep"] for its in lines.values())
    assert all(0 <= row["accuracy"] <= 1 for its in result["contestants"].values() for row in its["sets"])
    assert len(result["must_show"]) == 8
