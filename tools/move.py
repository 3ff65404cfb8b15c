"""Move modules of the package, or merge several into one, and rewrite every import of them.

    python tools/move.py threadkeep.db.errors threadkeep.db.errors
    python tools/move.py threadkeep.db.terms threadkeep.db.terms threadkeep.db.rows --merge --rename rows:_X=_Y

A move changes names of modules and nothing else, so a commit made with it can be read by its command line. In a merge
the sources follow one another in the order given, behind one block of imports. A name that two of them define in
different ways is refused until `--rename` gives one of them another name.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
TEXTS = ("src", "tests", "bench", "examples", "docs", "tools", "README.md", "CONTRIBUTING.md", "pyproject.toml")


@dataclass
class Module:
    name: str
    path: Path
    text: str
    docstring: str = ""
    imports: list[str] = field(default_factory=list[str])
    body: list[Piece] = field(default_factory=list["Piece"])


@dataclass
class Piece:
    text: str  # with the comments above it
    source: str = ""
    names: tuple[str, ...] = ()


def path_of(module: str) -> Path:
    path = SOURCE / Path(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def parsed(name: str, renames: dict[str, str]) -> Module:
    path = path_of(name)
    text = path.read_text("utf-8")
    for old, new in renames.items():
        text = re.sub(rf"(?<![\w.]){re.escape(old)}(?!\w)", new, text)
    module = Module(name, path, text)
    lines = text.splitlines(keepends=True)
    at = 0
    for number, node in enumerate(ast.parse(text).body):
        start, end = _first_line(node) - 1, node.end_lineno or node.lineno
        before = "".join(lines[at:start])
        piece = "".join(lines[start:end])
        at = end
        if number == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            module.docstring = piece
        elif isinstance(node, ast.Import | ast.ImportFrom):
            if before.strip():
                module.imports.append(before.strip("\n") + "\n")
            module.imports.append(piece)
        else:
            module.body.append(Piece(before + piece, piece.strip(), tuple(_names(node))))
    module.body.append(Piece("".join(lines[at:])))
    return module


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])


def _names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            yield from (one.id for one in ast.walk(target) if isinstance(one, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id


def merged(target: str, modules: list[Module], docstring: str | None) -> str:
    names = {module.name for module in modules}
    seen: dict[str, tuple[str, str]] = {}
    bodies: list[str] = []
    clashes: list[str] = []
    for module in modules:
        kept: list[str] = []
        for piece in module.body:
            if piece.names and all(seen.get(one, ("", ""))[1] == piece.source for one in piece.names):
                continue
            clashes += [f"{one}: {seen[one][0]} and {module.name}" for one in piece.names if one in seen]
            seen |= dict.fromkeys(piece.names, (module.name, piece.source))
            kept.append(piece.text)
        bodies.append("".join(kept).strip("\n"))
    if clashes:
        raise SystemExit("defined twice, use --rename:\n  " + "\n  ".join(clashes))
    imports = [one for module in modules for one in module.imports]
    doc = f'"""{docstring}"""\n' if docstring else modules[0].docstring
    future = "from __future__ import annotations\n"
    text = doc + "\n" + future + "\n" + "".join(one for one in dict.fromkeys(imports) if one != future)
    return without_own(text + "\n\n" + "\n\n\n".join(body for body in bodies if body) + "\n", names | {target})


def without_own(text: str, names: set[str]) -> str:
    """`text` without imports from the modules that it was made of."""
    lines = text.splitlines(keepends=True)
    gone: list[tuple[int, int]] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module in names:
            renamed = [f"{one.name} as {one.asname}" for one in node.names if one.asname and one.asname != one.name]
            if renamed:
                raise SystemExit(f"from {node.module} import {', '.join(renamed)}: write it out by hand first")
            gone.append((node.lineno, node.end_lineno or node.lineno))
    for start, end in sorted(gone, reverse=True):
        del lines[start - 1 : end]
    return "".join(lines)


def files() -> Iterator[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *TEXTS], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".ini", ".mako", ".json"} and path.exists():
            yield path


def rewrite(old: str, new: str, renames: dict[str, str]) -> None:
    old_parent, _, old_tail = old.rpartition(".")
    new_parent, _, new_tail = new.rpartition(".")
    old_file, new_file = (str(path_of_name(name)) for name in (old, new))
    for path in files():
        text = before = path.read_text("utf-8")
        if path.suffix == ".py":
            text = _parent_imports(text, old_parent, old_tail, new_parent, new_tail)
            text = _names_imported(text, old, renames)
        text = re.sub(rf"(?<![\w.]){re.escape(old)}(?![\w])", new, text)
        text = text.replace(old_file, new_file)
        if text != before:
            path.write_text(text, "utf-8")


def path_of_name(module: str) -> Path:
    return Path(*module.split(".")).with_suffix(".py")


def _parent_imports(text: str, old_parent: str, old_tail: str, new_parent: str, new_tail: str) -> str:
    """`from package import module`, alone or among others."""
    if old_parent not in text:
        return text
    lines = text.splitlines(keepends=True)
    for node in sorted(
        (one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.ImportFrom) and one.module == old_parent),
        key=lambda one: -one.lineno,
    ):
        if not any(one.name == old_tail for one in node.names):
            continue
        indent = " " * node.col_offset
        rest = [one for one in node.names if one.name != old_tail]
        made: list[str] = []
        if rest:
            names = ", ".join(one.name + (f" as {one.asname}" if one.asname else "") for one in rest)
            made.append(f"{indent}from {old_parent} import {names}\n")
        for one in node.names:
            if one.name == old_tail:
                called = one.asname or old_tail
                alias = "" if called == new_tail else f" as {called}"
                made.append(f"{indent}from {new_parent} import {new_tail}{alias}\n")
        lines[node.lineno - 1 : node.end_lineno] = made
    return "".join(lines)


def _names_imported(text: str, old: str, renames: dict[str, str]) -> str:
    if not renames or old not in text:
        return text
    lines = text.splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module == old:
            found = [one for one in node.names if one.name in renames]
            if not found:
                continue
            names = {one.name: renames[one.name] for one in found}
            everywhere = {one.name: renames[one.name] for one in found if not one.asname}
            span = slice(node.lineno - 1, node.end_lineno)
            piece = "".join(lines[span])
            for name, new in names.items():
                piece = re.sub(rf"(?<![\w.]){name}(?!\w)", new, piece)
            lines[span] = [piece, *[""] * ((node.end_lineno or node.lineno) - node.lineno)]
            for name, new in everywhere.items():
                lines = [re.sub(rf"(?<![\w.\"']){name}(?![\w\"'=])", new, line) for line in lines]
    return "".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="+", help="OLD NEW, or with --merge TARGET SOURCE…")
    parser.add_argument("--merge", action="store_true")
    parser.add_argument("--rename", action="append", default=[], help="module-tail:old=new")
    parser.add_argument("--doc", help="the docstring of the merged module")
    arguments = parser.parse_args()
    renames: dict[str, dict[str, str]] = {}
    for one in arguments.rename:
        tail, _, pair = one.partition(":")
        old, _, new = pair.partition("=")
        renames.setdefault(tail, {})[old] = new
    target, *sources = arguments.modules if arguments.merge else reversed(arguments.modules)
    modules = [parsed(name, renames.get(name.rpartition(".")[2], {})) for name in sources]
    path = SOURCE / path_of_name(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = merged(target, modules, arguments.doc) if arguments.merge else modules[0].text
    first = modules[0].path
    if first != path and not path.exists():
        subprocess.run(["git", "mv", first, path], cwd=ROOT, check=True)
    for module in modules:
        if module.path != path and module.path.exists():
            subprocess.run(["git", "rm", "-q", "-f", module.path], cwd=ROOT, check=True)
    path.write_text(text, "utf-8")
    for module in modules:
        if module.name != target:
            rewrite(module.name, target, renames.get(module.name.rpartition(".")[2], {}))


if __name__ == "__main__":
    main()
