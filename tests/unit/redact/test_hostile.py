"""No text makes a rule slow: the work grows as the text does."""

import time

import pytest

from bench.redaction_growth import reached
from bench.redaction_hostile import UNITS, hostile
from threadkeep.policy.redact import redact
from threadkeep.policy.redact.families import BUILT_IN

LENGTH = 20_000


def work(text):
    started = time.process_time()
    redact(text, "vi")
    return time.process_time() - started


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS.keys())
def test_four_times_the_text_costs_about_four_times_the_work(unit):
    """Processor time, best of three. Quadratic work would cost sixteen times as much."""
    redact("+48 601 234 567, PESEL 44051401458")  # load what is loaded on first use
    short, long = hostile(unit, LENGTH), hostile(unit, 4 * LENGTH)
    once = min(work(short) for _ in range(3))
    assert min(work(long) for _ in range(3)) <= 2 * 4 * once + 0.02


@pytest.mark.slow
def test_one_long_word_of_token_beginnings_costs_no_more():
    short, long = (". " + "éeyJ" * (length // 4) for length in (LENGTH, 4 * LENGTH))
    once = min(work(short) for _ in range(3))
    assert min(work(long) for _ in range(3)) <= 2 * 4 * once + 0.02


def test_every_rule_is_reached_by_a_hostile_text():
    named = {rule.name for unit in UNITS.values() for rule, _ in reached(hostile(unit, 2_000))}
    assert named == {rule.name for family in BUILT_IN for rule in family.rules}
