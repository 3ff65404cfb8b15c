"""How the cost grows on hostile texts: of a whole redaction, and of each rule on the text that is worst for it.

Processor time, the least of several runs of either length in turn: a busy machine only ever adds to it. Runs of half a
second are not repeated, unless their ratio is above the bound: that is measured up to six times more, as any is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.redaction_hostile import UNITS, hostile
from threadkeep.policy.redact import RedactionRules, Redactor, warm_up
from threadkeep.policy.redact.engine import BUILT_IN, Selection
from threadkeep.policy.redact.rule import Rule, View, shadow

BOUND = 2.3
"""Twice the length may cost so many times as much."""
_SAMPLE = 20_000  # characters; enough to tell which text is worst for a rule
_LONG = 0.5  # seconds
_AGAIN = 6  # more rounds where the ratio is above the bound


def growth(length: int) -> dict[str, Any]:
    """Seconds at twice this length, and how many times those of this length, by text and by rule."""
    warm_up()
    redact = Redactor(RedactionRules(names="rules"))
    texts = {name: _growth(lambda text: redact(text, "vi"), unit, length) for name, unit in UNITS.items()}
    worst = _worst_texts(min(length, _SAMPLE))
    rules = {
        name: {"text": text, **_growth(lambda text, rule=rule: list(rule.find(_view(text))), UNITS[text], length)}
        for name, (rule, text) in worst.items()
    }
    return {"texts": texts, "rules": rules, "unreached": sorted(_names() - worst.keys())}


def reached(text: str) -> Iterator[tuple[Rule, View]]:
    """The rules that a text gets as far as, each with the view it is given."""
    view = _view(text)
    for family in _SELECTION(view.text):
        yield from ((rule, view) for rule in family.rules)


_SELECTION = Selection(BUILT_IN)


def _names() -> set[str]:
    return {rule.name for family in BUILT_IN for rule in family.rules}


def _view(text: str) -> View:
    return View(text, shadow(text), "vi")


def _worst_texts(length: int) -> dict[str, tuple[Rule, str]]:
    """For each rule that any text reaches, the text on which it takes longest."""
    slowest: dict[str, tuple[float, Rule, str]] = {}
    for name, unit in UNITS.items():
        for rule, view in reached(hostile(unit, length)):
            seconds = _cpu(lambda rule=rule, view=view: list(rule.find(view)))
            if rule.name not in slowest or seconds > slowest[rule.name][0]:
                slowest[rule.name] = seconds, rule, name
    return {name: (rule, text) for name, (_, rule, text) in sorted(slowest.items())}


def _growth(work: Callable[[str], object], unit: str, length: int) -> dict[str, float]:
    texts = hostile(unit, length), hostile(unit, 2 * length)
    least = [_cpu(lambda text=text: work(text)) for text in texts]
    rounds = 0 if least[1] > _LONG else 1
    for again in range(rounds + _AGAIN):
        if again >= rounds and least[1] <= BOUND * least[0]:
            break
        least = [min(best, _cpu(lambda text=text: work(text))) for best, text in zip(least, texts, strict=True)]
    return {"seconds": round(least[1], 4), "ratio": round(least[1] / max(least[0], 1e-4), 2)}


def _cpu(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started
