"""Every metric, after a scripted load, has the value that an independent count gives: on one process and on four.

And a real Prometheus that scrapes one of the four answers every question of the dashboards and of the alerts.
"""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.metrics.boards import RULES, configuration, panels
from tests.metrics.checks import CHECKS
from tests.metrics.conftest import Place
from tests.metrics.load import APPENDS, run
from tests.servers.locate import PROMETHEUS
from tests.servers.prometheus import PrometheusServer, promtool
from tests.servers.provide import need_program
from tests.servers.waiting import wait_until

KEY = Path("threadkeep.key")  # beside the configuration


@pytest.mark.parametrize("processes", ["one", "four"])
def test_after_a_load_every_metric_has_the_value_that_an_independent_count_gives(
    request: pytest.FixtureRequest, processes: str
) -> None:
    place: Place = request.getfixturevalue(processes)
    for check in CHECKS:
        check(place)


def test_each_of_four_tells_the_same(four: Place) -> None:
    first, *others = [four.told(number).samples for number in range(4)]
    assert all(other == first for other in others)


@pytest.fixture(scope="module")
def program() -> str:
    return need_program(PROMETHEUS)


@pytest.fixture(scope="module")
def prometheus(program: str, four: Place) -> Iterator[PrometheusServer]:
    """Scraping one of the four, before and after some more work."""
    target = four.services[1].url.removeprefix("http://")
    rules = {f"rules/{path.name}": path.read_text("utf-8") for path in RULES}
    server = PrometheusServer(program, configuration(target, KEY), rules | {KEY.name: "no key is needed on loopback"})
    with server:
        wait_until(lambda: bool(server.query("threadkeep_flushed_entries_total")), seconds=30, what="it has scraped")
        run(four.clients, four.counted, first=100)
        listed = four.app["pages"] + four.work_of_the_app()["pages"]
        appends = four.counted.statuses.total()
        counted = f"sum(threadkeep_append_duration_seconds_count) == {appends}"
        flushed = f"threadkeep_flushed_entries_total == {2 * APPENDS}"
        pages = f"checkpoint_list_duration_seconds_count == {listed}"
        for expected in (counted, flushed, pages):
            wait_until(lambda expected=expected: bool(server.query(expected)), seconds=30, what=expected)
        yield server


def test_the_panel_of_the_cache_shows_what_was_served_from_it(prometheus: PrometheusServer, four: Place) -> None:
    (expression,) = [expression for title, expression in panels() if title.endswith("Cache Hit Rate")]
    asked = four.counted.asked
    ratio = re.sub(r"rate\((.*?)\[5m\]\)", r"\1", expression)
    served = f"abs({ratio} - {asked['cached'] / asked.total()}) < 0.000001"
    wait_until(lambda: bool(prometheus.query(served)), seconds=30, what=served)


def test_every_panel_and_every_alert_is_answered_by_a_prometheus_that_scrapes_a_service(
    prometheus: PrometheusServer,
) -> None:
    asked = list(panels())
    assert len(asked) >= 24
    empty = [title for title, expression in asked if not _numbers(prometheus.query(expression))]
    assert empty == []
    rules = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
    assert len(rules) == 13
    for rule in rules:
        prometheus.query(rule["query"])
        assert rule["health"] in ("ok", "unknown"), rule  # unknown until it is first evaluated
    (dead,) = prometheus.query("threadkeep_dead_letters > 0")
    assert dead["value"][1] == "1"


def _numbers(result: list[dict[str, Any]]) -> list[float]:
    return [number for one in result if not math.isnan(number := float(one["value"][1]))]


def test_every_alert_fires_for_its_reason_and_for_nothing_else(program: str, tmp_path: Path) -> None:
    for path in (*RULES, Path(__file__).with_name("alerts.yml")):
        shutil.copy(path, tmp_path)
    assert "SUCCESS: 13 rules found" in promtool(program, "check", "rules", *RULES)
    assert "SUCCESS" in promtool(program, "test", "rules", tmp_path / "alerts.yml")


def test_the_panels_of_the_document_are_asked_word_for_word() -> None:
    asked = {title.partition(" / ")[2]: " ".join(expression.split()) for title, expression in panels()}
    assert asked["Active Conversations"] == "conversation_total_active"
    assert asked["Average Queries per Conversation"] == "avg(conversation_queries_per_conversation)"
    assert asked["Checkpoint Performance"] == (
        "rate(checkpoint_save_duration_seconds_sum[5m]) / rate(checkpoint_save_duration_seconds_count[5m])"
    )
