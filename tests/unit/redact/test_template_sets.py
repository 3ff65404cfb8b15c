"""The Vietnamese and Polish sets: with diacritics and without, structured types at 0.97 both ways."""

from pathlib import Path

import pytest

from bench.redaction_score import score
from bench.redaction_sets import templates
from tests.data import pii_pl, pii_vi
from tests.data.make_pii_sets import rows
from threadkeep.policy.redact import redact
from threadkeep.policy.redact.engine import STRUCTURED

DATA = Path(__file__).parents[2] / "data"
MODULES = {"vi": pii_vi, "pl": pii_pl}


def ours(text, language):
    return list(redact(text, language).spans)


@pytest.mark.parametrize("language", ["vi", "pl"])
@pytest.mark.parametrize("folded", [False, True], ids=["with diacritics", "without"])
def test_structured_types_are_found_and_nothing_else(language, folded):
    cases = templates(DATA, language)[folded::2]
    assert len(cases) >= 150
    for kind, tally in score(cases, ours).items():
        if kind in STRUCTURED:
            assert (tally.recall, tally.precision) >= (0.97, 0.97), (kind, tally.misses, tally.alarms)
            assert tally.precision >= 0.97, (kind, tally.alarms)


@pytest.mark.parametrize("language", ["vi", "pl"])
def test_values_never_seen_before_are_found_as_well(language):
    module = MODULES[language]
    fresh = rows(module.TEMPLATES, module.MAKERS, "another seed")
    for row in fresh:
        masked = redact(row["text"], language)
        leaked = [
            row["text"][start:end]
            for start, end, kind in row["spans"]
            if kind in STRUCTURED and not any(span.start <= start and end <= span.end for span in masked.spans)
        ]
        assert leaked == [], row["text"]


def test_the_committed_sets_are_what_the_generator_makes():
    for language, module in MODULES.items():
        made = rows(module.TEMPLATES, module.MAKERS, language)
        assert [case.text for case in templates(DATA, language)] == [row["text"] for row in made]
