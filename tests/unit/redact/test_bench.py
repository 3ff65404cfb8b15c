"""The benchmark runs and says what it promises to say. No timing is asserted."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT.parent / "shared" / "data"
ENGINES = {"threadkeep", "seed regexes", "detect-secrets"}


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="the open data sets are not here")
def test_a_quick_run_measures_its_engines_on_every_set():
    command = [sys.executable, "-m", "bench", "redaction", "--quick", "--json", "--data", str(DATA)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert set(result["engines"]) == ENGINES
    sets = {
        "synth en",
        "multipriv en",
        "multipriv en, completed",
        "multipriv zh",
        "templates vi",
        "templates pl",
        "secrets",
    }
    for engine in result["engines"].values():
        assert set(engine["sets"]) == sets
        assert engine["mb_per_s"] > 0
    assert all(one["ratio"] > 0 for what in ("texts", "rules") for one in result["growth"][what].values())
