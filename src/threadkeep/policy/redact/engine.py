"""Gates, then candidates, then validators, then the overlap rule, then the masked text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

from threadkeep.policy.redact import overlap
from threadkeep.policy.redact.families import BUILT_IN
from threadkeep.policy.redact.kinds import KINDS
from threadkeep.policy.redact.result import Finding, Redaction, Span
from threadkeep.policy.redact.rule import Family, Hit, Rule
from threadkeep.policy.redact.view import View

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROUNDS: Final = 4
"""More than any text needs that was not built to need more; a bound keeps the cost linear."""

@dataclass(frozen=True, slots=True)
class RedactionRules:
    """What to look for and how to mask it."""

    placeholder: Literal["typed", "plain"] = "typed"
    types: frozenset[str] = field(default_factory=lambda: frozenset(KINDS))
    allow: frozenset[str] = frozenset()
    custom: tuple[Rule, ...] = ()


class Redactor:
    """Pure and deterministic. Redacting its own output changes nothing."""

    __slots__ = ("_allowed", "_families", "_settings")

    def __init__(self, rules: RedactionRules | None = None) -> None:
        self._settings = rules or RedactionRules()
        self._families = tuple(_enabled(self._settings))
        self._allowed = frozenset(value.casefold() for value in self._settings.allow)

    def __call__(self, text: str, language: str | None = None) -> Redaction:
        hits = self._settled(text, language)
        if not hits:
            return Redaction(text)
        return Redaction(self._mask(text, hits), tuple(Span(hit.start, hit.end, hit.type) for hit in hits))

    def explain(self, text: str, language: str | None = None) -> list[Finding]:
        """What would be masked and by which rule; the values themselves stay out of it."""
        return [
            Finding(Span(hit.start, hit.end, hit.type), hit.type, hit.rule) for hit in self._settled(text, language)
        ]

    def _settled(self, text: str, language: str | None) -> list[Hit]:
        """Masking one thing can bare the next (`a@b.org4111…`), so the masked text is searched until it is clean."""
        hits: list[Hit] = []
        masked = text
        for _ in range(_ROUNDS):
            more = self._hits(masked, language)
            if not more:
                break
            hits = sorted([*hits, *self._placed(more, hits)])
            masked = self._mask(text, hits)
        return hits

    def _placed(self, more: list[Hit], hits: list[Hit]) -> list[Hit]:
        """Hits in a masked text, moved to where they stand in the text before masking."""
        placed: list[Hit] = []
        earlier = iter(hits)
        upcoming = next(earlier, None)
        shift = 0
        for hit in more:
            while upcoming is not None and upcoming.start <= hit.start + shift:
                shift += upcoming.end - upcoming.start - len(self._placeholder(upcoming.type))
                upcoming = next(earlier, None)
            placed.append(hit._replace(start=hit.start + shift, end=hit.end + shift))
        return placed

    def _hits(self, text: str, language: str | None) -> list[Hit]:
        view = View(text, language)
        found = [hit for hit in self._search(view) if not self._is_allowed(hit, view)]
        if not found:
            return []
        resolved = overlap.resolve(found, view.text)
        return [hit._replace(start=start, end=end) for hit in resolved for start, end in [view.original_span(*hit[:2])]]

    def _search(self, view: View) -> Iterator[Hit]:
        for family in self._families:
            if family.gate(view):
                for rule in family.rules:
                    for start, end in rule.find(view):
                        yield from _legible(view.text, Hit(start, end, rule.type, rule.name, rule.sure))

    def _is_allowed(self, hit: Hit, view: View) -> bool:
        return bool(self._allowed) and view.text[hit.start : hit.end].casefold() in self._allowed

    def _mask(self, text: str, hits: list[Hit]) -> str:
        pieces: list[str] = []
        position = 0
        for hit in hits:
            pieces += (text[position : hit.start], self._placeholder(hit.type))
            position = hit.end
        return "".join((*pieces, text[position:]))

    def _placeholder(self, kind: str) -> str:
        return f"[REDACTED:{kind}]" if self._settings.placeholder == "typed" else "[REDACTED]"


def _enabled(settings: RedactionRules) -> Iterator[Family]:
    if settings.custom:
        yield Family(lambda _: True, settings.custom)
    for family in BUILT_IN:
        rules = tuple(rule for rule in family.rules if rule.type in settings.types)
        if rules:
            yield Family(family.gate, rules)


def _legible(text: str, hit: Hit) -> Iterator[Hit]:
    """A claim never reaches over a NUL, which is what an earlier placeholder looks like in the shadow."""
    if "\0" not in text or "\0" not in text[hit.start : hit.end]:
        yield hit
        return
    for piece in re.finditer(r"[^\0]+", text[hit.start : hit.end]):
        if any(char.isalnum() for char in piece[0]):
            yield hit._replace(start=hit.start + piece.start(), end=hit.start + piece.end())


@cache
def default_redactor() -> Redactor:
    return Redactor()


def redact(text: str, language: str | None = None) -> Redaction:
    """Mask personal data and secrets with the default rules. `language` (BCP-47) tells local number formats apart."""
    return default_redactor()(text, language)


def explain(text: str, language: str | None = None) -> list[Finding]:
    """Span, type and rule of each thing `redact` would mask."""
    return default_redactor().explain(text, language)
