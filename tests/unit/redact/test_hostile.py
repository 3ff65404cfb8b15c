"""No text makes a rule slow: the work grows as the text does."""

import pytest

from bench.redaction_growth import reached
from bench.redaction_hostile import UNITS, hostile
from tests.unit.growth import assert_growth
from threadkeep.policy.redact import RedactionRules, Redactor, warm_up
from threadkeep.policy.redact.engine import BUILT_IN

LENGTH = 40_000
BOUND = 8
"""Four times the text may cost so many times as much. Quadratic work would cost sixteen times as much."""


REDACT = Redactor(RedactionRules(names="rules"))


def redacted(text):
    return REDACT(text, "vi")


@pytest.fixture(autouse=True)
def warm():
    warm_up()


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS.keys())
def test_four_times_the_text_costs_about_four_times_the_work(unit):
    assert_growth(redacted, hostile(unit, LENGTH), hostile(unit, 4 * LENGTH), at_most=BOUND)


@pytest.mark.slow
def test_one_long_word_of_token_beginnings_costs_no_more():
    short, long = (". " + "éeyJ" * (length // 4) for length in (LENGTH, 4 * LENGTH))
    assert_growth(redacted, short, long, at_most=BOUND)


def test_every_rule_is_reached_by_a_hostile_text():
    named = {rule.name for unit in UNITS.values() for rule, _ in reached(hostile(unit, 2_000))}
    assert named == {rule.name for family in BUILT_IN for rule in family.rules}
