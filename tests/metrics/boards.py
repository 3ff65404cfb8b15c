"""What stands in `deploy/`: the dashboards' questions and the alerts' expressions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DEPLOY = Path(__file__).parents[2] / "deploy"
BOARDS = sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))
RULES = sorted((DEPLOY / "prometheus" / "rules").glob("*.yml"))
CONFIGURATION = DEPLOY / "prometheus" / "prometheus.yml"


def panels() -> Iterator[tuple[str, str]]:
    """Title and expression of every question that a dashboard asks."""
    for board in BOARDS:
        told: dict[str, Any] = json.loads(board.read_text("utf-8"))
        for panel in told["panels"]:
            for target in panel["targets"]:
                yield f"{told['title']} / {panel['title']}", target["expr"]


def configuration(target: str, key: Path) -> str:
    """The one that is deployed, but for where the service is, where its key is, and how often it is asked."""
    text = CONFIGURATION.read_text("utf-8")
    for old, new in {"127.0.0.1:8000": target, "threadkeep.key": str(key), "15s": "1s"}.items():
        text, found = re.subn(re.escape(old), new, text)
        assert found, old
    return text
