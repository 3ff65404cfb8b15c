"""The requirements manifest is whole: every row is complete and has a test that exists, or says `open` while it may."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/requirements"
SYSTEMS = {
    "search_bot": "SB",
    "hotel_concierge": "HC",
    "docs_retrieval": "DR",
    "pc_shop": "PS",
    "reflection_module": "RM",
}
PARTS = {"core", "text", "stores", "recall", "langgraph", "assistant", "retrieval", "adapters"}
RESOLVED_PARTS = {
    "core",
    "stores",
    "text",
}  # a part enters when it is finished; from then on none of its rows may be open

HEADER = ["id", "where", "requirement", "part", "held by"]
TABLE_LINE = re.compile(r"\s*\||\W*[A-Z]{2}-\d")  # the second form catches a row that lost its leading pipe
REFERENCE = re.compile(r"`((?:tests|src/threadkeep/testing)/[\w/]+\.py)::(?:(\w+)::)?(test_\w+)`")


class Row(NamedTuple):
    cells: list[str]

    @property
    def id(self) -> str:
        return self.cells[0]

    @property
    def part(self) -> str:
        return self.cells[3]

    @property
    def held_by(self) -> str:
        return self.cells[4]


def parse(markdown: str) -> list[Row]:
    """Every table row, the malformed ones too, without headers and rules. A pipe inside a cell is written `\\|`."""
    rows: list[Row] = []
    for line in filter(TABLE_LINE.match, markdown.splitlines()):
        inner = line.strip().removeprefix("|").removesuffix("|")
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", inner)]
        if cells != HEADER and not all(re.fullmatch(":?-+:?", cell) for cell in cells):
            rows.append(Row(cells))
    return rows


def incomplete(rows: list[Row]) -> list[str]:
    return [" | ".join(row.cells) for row in rows if len(row.cells) != len(HEADER) or not all(row.cells)]


def misnamed(rows: list[Row], prefix: str) -> list[str]:
    return [row.id for row in rows if not re.fullmatch(rf"{prefix}-\d{{3}}", row.id)]


def repeated(rows: list[Row]) -> list[str]:
    return [identifier for identifier, times in Counter(row.id for row in rows).items() if times > 1]


def of_unknown_part(rows: list[Row]) -> list[str]:
    return [row.id for row in rows if row.part not in PARTS]


def held_by_nothing_known(rows: list[Row], root: Path = ROOT) -> list[str]:
    """Rows whose last cell is neither `open` nor a list of tests that exist."""
    return [row.id for row in rows if row.held_by != "open" and not all_tests_exist(row.held_by, root)]


def open_though_resolved(rows: list[Row], resolved: set[str]) -> list[str]:
    return [row.id for row in rows if row.part in resolved and row.held_by == "open"]


def all_tests_exist(cell: str, root: Path) -> bool:
    references = REFERENCE.findall(cell)
    only_references = not re.sub(r"<br>|[,\s]", "", REFERENCE.sub("", cell))
    return bool(references) and only_references and all(exists(root, *reference) for reference in references)


def exists(root: Path, path: str, suite: str, name: str) -> bool:
    owners = {owner for owner, test in written_in(root / path) if test == name and suite in ("", owner)}
    if path.startswith("tests/"):
        return bool(owners)
    return any(owner and is_run(owner, root) for owner in owners)


@cache
def written_in(file: Path) -> set[tuple[str, str]]:
    """(class, name) of each test written in the file; the class of a plain function is empty."""
    if not file.is_file():
        return set()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    bodies = [("", tree.body), *((node.name, node.body) for node in tree.body if isinstance(node, ast.ClassDef))]
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {(owner, node.name) for owner, body in bodies for node in body if isinstance(node, functions)}


@cache
def is_run(suite: str, root: Path) -> bool:
    """Whether a test module names this public contract suite, or one that is made of it."""
    named = any(
        re.search(rf"\b{suite}\b", file.read_text(encoding="utf-8")) for file in root.glob("tests/**/test_*.py")
    )
    return named or any(is_run(larger, root) for larger in made_of(root).get(suite, ()))


@cache
def made_of(root: Path) -> dict[str, set[str]]:
    """Each public suite by name, and the suites that inherit its cases."""
    larger: dict[str, set[str]] = {}
    for file in root.glob("src/threadkeep/testing/**/*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                for base in node.bases:
                    larger.setdefault(ast.unparse(base), set()).add(node.name)
    return larger


@cache
def manifest(system: str) -> list[Row]:
    return parse((FOLDER / f"{system}.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_has_its_manifest(system: str):
    assert len(manifest(system)) >= 60


def test_the_folder_holds_no_manifest_that_nobody_checks():
    assert {file.stem for file in FOLDER.iterdir()} == {*SYSTEMS, "README"}


@pytest.mark.parametrize(("system", "prefix"), SYSTEMS.items())
def test_every_row_is_complete_and_carries_the_prefix_of_its_system(system: str, prefix: str):
    assert incomplete(manifest(system)) == []
    assert misnamed(manifest(system), prefix) == []


def test_ids_are_unique_over_all_systems():
    assert repeated([row for system in SYSTEMS for row in manifest(system)]) == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_row_names_a_known_part(system: str):
    assert of_unknown_part(manifest(system)) == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_test_that_a_row_names_exists(system: str):
    assert held_by_nothing_known(manifest(system)) == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_no_row_of_a_resolved_part_is_left_open(system: str):
    assert RESOLVED_PARTS <= PARTS
    assert open_though_resolved(manifest(system), RESOLVED_PARTS) == []


# The checker itself can go red: each complaint is raised by a small bad table, and a good one raises none.

GOOD = r"""
| id | where | requirement | part | held by |
|---|---|---|---|---|
| XX-001 | §1 | a `str\|None` | core | `tests/test_a.py::test_plain`, `tests/test_a.py::TestA::test_method` |
| XX-002 | §1 | a contract | core | `src/threadkeep/testing/c.py::Contract::test_case` |
| XX-003 | §2 | later | text | open |
"""


@pytest.fixture
def small_repo(tmp_path: Path) -> Path:
    files = {
        "tests/test_a.py": "async def test_plain(): ...\nclass TestA(Contract):\n    def test_method(self): ...\n",
        "src/threadkeep/testing/c.py": "class Contract(Part):\n    def test_case(self): ...\n",
        "src/threadkeep/testing/p.py": "class Part:\n    def test_part(self): ...\n",
        "src/threadkeep/testing/d.py": "class NobodyRunsThis:\n    def test_case(self): ...\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_a_good_table_raises_no_complaint(small_repo: Path):
    rows = parse(GOOD)
    assert [row.id for row in rows] == ["XX-001", "XX-002", "XX-003"]
    complaints = [incomplete(rows), misnamed(rows, "XX"), repeated(rows), of_unknown_part(rows)]
    assert [*complaints, held_by_nothing_known(rows, small_repo), open_though_resolved(rows, {"core"})] == [[]] * 6


@pytest.mark.parametrize(
    "line",
    [
        "| XX-001 | §1 | no part | open |",
        "| XX-001 | §1 | | core | open |",
        "| XX-001 | §1 | a | pipe | core | open |",
        "XX-001 is no row",
    ],
)
def test_a_row_with_a_cell_too_few_too_many_or_empty_is_found(line: str):
    assert len(incomplete(parse(line))) == 1


def test_a_row_with_the_prefix_of_another_system_is_found():
    assert misnamed(parse(GOOD), "YY") == ["XX-001", "XX-002", "XX-003"]


def test_an_id_used_twice_is_found():
    assert repeated(parse(GOOD + "| XX-003 | §3 | again | text | open |\n")) == ["XX-003"]


def test_an_unknown_part_is_found():
    assert of_unknown_part(parse("| XX-001 | §1 | what | kernel | open |")) == ["XX-001"]


@pytest.mark.parametrize(
    "held_by",
    [
        "`tests/test_a.py::test_of_another_name`",
        "`tests/test_a.py::TestB::test_method`",
        "`tests/test_gone.py::test_plain`",
        "`tests/test_a.py::test_plain`, `tests/test_a.py::test_missing`",
        "`src/threadkeep/testing/d.py::NobodyRunsThis::test_case`",
        "tests/test_a.py::test_plain",
        "`tests/test_a.py::test_plain` and by hand",
        "done",
    ],
)
def test_a_test_that_does_not_exist_is_found(held_by: str, small_repo: Path):
    assert held_by_nothing_known(parse(f"| XX-001 | §1 | what | core | {held_by} |"), small_repo) == ["XX-001"]


def test_a_case_counts_when_a_suite_that_is_made_of_it_is_run(small_repo: Path):
    row = "| XX-001 | §1 | what | core | `src/threadkeep/testing/p.py::Part::test_part` |"
    assert held_by_nothing_known(parse(row), small_repo) == []


def test_an_open_row_of_a_resolved_part_is_found():
    assert open_though_resolved(parse(GOOD), {"core", "text"}) == ["XX-003"]
