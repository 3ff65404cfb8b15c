"""The page lists every metric with its type, and every label value that is fixed."""

import re
from pathlib import Path

from tests.metrics.checks import ITS_OWN, ON_SERVERS, OURS
from threadkeep.metrics.measured import COUNTED

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| ?(.*?) ?\| .+ \|$", re.MULTILINE)


def test_every_metric_stands_on_its_page_with_its_type_and_label() -> None:
    rows = {name.removesuffix("_total") if kind == "counter" else name: (kind, label)
            for name, kind, label in ROW.findall(PAGE.read_text("utf-8"))}  # fmt: skip
    assert {name: kind for name, (kind, _) in rows.items()} == ITS_OWN | OURS | ON_SERVERS
    for one in COUNTED:
        values = f": {', '.join(one.seen)}" if one.seen else ""
        assert rows[one.name.removesuffix("_total")][1] == (f"`{one.label}`{values}" if one.label else ""), one.name
