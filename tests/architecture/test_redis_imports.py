"""Redis is optional: one folder knows its driver, and nothing is loaded before it is wanted."""

import ast
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "threadkeep"
DRIVERS = {"redis", "cryptography"}
OURS = SOURCE / "sessions" / "redis"
SEALING = {SOURCE / "sealing.py"}  # when first wanted


def drivers_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    names = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return {name.split(".")[0] for name in names} & DRIVERS


def test_only_the_redis_folder_imports_the_driver() -> None:
    elsewhere = [path for path in sorted(SOURCE.rglob("*.py")) if OURS not in path.parents]
    assert [
        path for path in elsewhere if not drivers_in(path) <= ({"cryptography"} if path in SEALING else set())
    ] == []


def test_only_one_module_speaks_the_drivers_language() -> None:
    speakers = {path.stem for path in OURS.glob("*.py") if "redis" in drivers_in(path)}
    assert speakers == {"client"}


def test_importing_the_package_loads_no_driver() -> None:
    asked = "import sys, threadkeep; print(sorted({'redis', 'cryptography'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_no_script_decodes_json() -> None:
    scripts = sorted((OURS / "lua").glob("*.lua"))
    assert scripts
    assert [path.name for path in scripts if "cjson" in path.read_text("utf-8")] == []
