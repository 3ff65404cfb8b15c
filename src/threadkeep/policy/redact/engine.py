"""The redactor: selects the rule families worth trying on a text, collects their claims, settles overlaps, masks.

Two passes in C over the bytes of the text select the families. One keeps its *signs*: every digit as a `0`, and the
marks that some rule cannot do without; all else is dropped, so that what stood together still does. The other gives its
words. Most texts have no sign and no word that a family needs, and cost no more than this.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from heapq import heappop, heappush
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from threadkeep.policy.redact import (
    addresses_asian,
    addresses_western,
    banking,
    births,
    disguises,
    emails,
    ids,
    names,
    network,
    passwords,
    phones,
    tokens,
    wallets,
)
from threadkeep.policy.redact.ner import PresidioRecogniser, Recogniser, recognise
from threadkeep.policy.redact.ordinals import Labels, canonical
from threadkeep.policy.redact.rule import FORM, Family, Hit, Prescan, Rule, View, shadow

# The types a redaction can name: the one list of them, with what each covers.
KINDS: Final[dict[str, str]] = {
    "EMAIL": "e-mail addresses, IDN and obfuscated (`name [at] mail [dot] com`) included",
    "PHONE": "telephone and fax numbers of any country, with their extension",
    "CREDIT_CARD": "payment card numbers: issuer prefix, length and Luhn digit agree",
    "IBAN": "international bank account numbers",
    "BANK_ACCOUNT": "domestic account and routing numbers, where a word beside them says so",
    "SSN": "US social security numbers and ITINs",
    "NATIONAL_ID": "person and tax numbers of states (PESEL, NIP, CCCD, Taiwan id, resident id, NINO, …)",
    "PASSPORT": "passport numbers, where a word beside them says so",
    "DRIVER_LICENSE": "driving licence numbers, where a word beside them says so",
    "PLATE": "vehicle registration plates",
    "DATE_OF_BIRTH": "dates that a word beside them calls a birthday",
    "ADDRESS": "street addresses, post boxes, and the town and postcode that follow them",
    "COORDINATES": "latitude and longitude precise enough to find a house",
    "IP": "IPv4 and IPv6 addresses",
    "MAC": "hardware addresses",
    "NAME": "names of people, kept unless `names` masks them: by introduction, title or label, or by a model",
    "SECRET": "passwords, tokens, API keys, private keys, authorisation headers",
    "URL": "the part of a URL that grants access: credentials, tokens, signatures",
    "CRYPTO": "wallet addresses",
    "INTERNAL_ID": "identifiers of the operator's own systems, by configured pattern",
    "LOCATION": "locations found by an optional NER model; no rule of ours makes this type",
    "ORGANIZATION": "organisations found by an optional NER model; no rule of ours makes this type",
}

STRUCTURED: Final[frozenset[str]] = frozenset(KINDS) - {"NAME", "ADDRESS", "LOCATION", "ORGANIZATION"}
"""Types with a format of their own. The others are found in free text and err more often."""


# Every rule family that ships, in one list.
BUILT_IN: Final[tuple[Family, ...]] = (
    *emails.FAMILIES,
    *tokens.FAMILIES,
    *passwords.FAMILIES,
    *banking.FAMILIES,
    *ids.FAMILIES,
    *births.FAMILIES,
    *wallets.FAMILIES,
    *network.FAMILIES,
    *phones.FAMILIES,
    *disguises.FAMILIES,
    *addresses_western.FAMILIES,
    *addresses_asian.FAMILIES,
    *names.FAMILIES,
)


class Span(NamedTuple):
    """A masked stretch, in offsets of the text as it came in."""

    start: int
    end: int
    type: str


class Finding(NamedTuple):
    """A span and the rule that made it. Never holds the value itself, so it may be logged."""

    span: Span
    type: str
    rule: str


@dataclass(frozen=True, slots=True)
class Redaction:
    """The masked text and what was masked: spans sorted, never overlapping."""

    text: str
    spans: tuple[Span, ...] = ()

    @property
    def counts(self) -> Mapping[str, int]:
        return Counter(span.type for span in self.spans) if self.spans else {}


Names = Literal["off", "rules", "model"]

_ROUNDS: Final = 4
"""More than any text needs that was not built to need more; a bound keeps the cost linear."""


@dataclass(frozen=True, slots=True)
class RedactionRules:
    """What to look for and how to mask it.

    `types` are the built-in types to look for, `regions` the countries (ISO 3166) whose phone numbers are known without
    a cue, by default the usual ones and those of the text's language; `allow` values are left as they are, however they
    are cased or grouped; `custom` rules are the operator's own (see `custom.load`). `names` says what becomes of the
    names of people: `off` keeps them, `rules` masks those that are introduced, titled or labelled, `model` also those
    that the recogniser finds, with locations and organisations.
    """

    placeholder: Literal["typed", "plain"] = "typed"
    types: frozenset[str] = frozenset(KINDS)
    regions: tuple[str, ...] = ()
    allow: frozenset[str] = frozenset()
    custom: tuple[Rule, ...] = ()
    names: Names = "off"


class Redactor:
    """Pure and deterministic, unless its recogniser is not. Redacting its own output changes nothing.

    Rules with `names="model"` use the given recogniser, or Presidio's. Raise `MissingExtra` where it is not installed.
    """

    __slots__ = ("_allowed", "_families", "_prescan", "_recogniser", "_settings")

    def __init__(self, rules: RedactionRules | None = None, recogniser: Recogniser | None = None) -> None:
        self._settings = rules or RedactionRules()
        if recogniser is None and self._settings.names == "model":
            recogniser = PresidioRecogniser()
        families = tuple(_enabled(self._settings))
        self._families = Selection(families)
        self._prescan = Prescan.of(families) if recogniser is None else None
        self._allowed = frozenset(canonical(value) for value in self._settings.allow)
        self._recogniser = recogniser

    def __call__(self, text: str, language: str | None = None, ordinals: Labels | None = None) -> Redaction:
        hits = self._settled(text, language)
        if not hits:
            return Redaction(text)
        labels = [self._placeholder(hit.type) for hit in hits]
        if ordinals is not None:
            labels = [ordinals.label(hit.type, text[hit.start : hit.end]) for hit in hits]
        return Redaction(mask(text, hits, labels), tuple(Span(hit.start, hit.end, hit.type) for hit in hits))

    def explain(self, text: str, language: str | None = None) -> list[Finding]:
        """What would be masked and by which rule; the values themselves stay out of it."""
        return [
            Finding(Span(hit.start, hit.end, hit.type), hit.type, hit.rule) for hit in self._settled(text, language)
        ]

    def _settled(self, text: str, language: str | None) -> list[Hit]:
        """Masking one thing can bare the next (`a@b.org4111…`), so the masked text is searched until it is clean."""
        hits = self._hits(text, language)
        for _ in range(_ROUNDS - 1 if hits else 0):
            masked = mask(text, hits, [self._placeholder(hit.type) for hit in hits])
            more = self._hits(masked, language)
            if not more:
                break
            hits = sorted([*hits, *placed(more, hits, [len(self._placeholder(hit.type)) for hit in hits])])
        return hits

    def _hits(self, text: str, language: str | None) -> list[Hit]:
        folded = (text, None) if text.isascii() and "[REDACTED" not in text and "\\" not in text else shadow(text)
        if self._prescan is not None and not self._prescan(folded[0]):
            return []
        families = self._families(folded[0])
        if not families and self._recogniser is None:
            return []
        view = View(text, folded, language, self._settings.regions)
        found = [hit for hit in self._search(view, families) if not self._is_allowed(hit, view)]
        if not found:
            return []
        resolved = resolve(found, view.text)
        return [hit._replace(start=start, end=end) for hit in resolved for start, end in [view.original_span(*hit[:2])]]

    def _search(self, view: View, families: list[Family]) -> Iterator[Hit]:
        for family in families:
            for rule in family.rules:
                for start, end in rule.find(view):
                    yield from legible(view.text, Hit(start, end, rule.type, rule.name, rule.sure))
        if self._recogniser is not None:
            for start, end, kind in recognise(self._recogniser, view.text, view.language):
                yield from legible(view.text, Hit(start, end, kind, "ner", FORM - 5))

    def _is_allowed(self, hit: Hit, view: View) -> bool:
        return bool(self._allowed) and canonical(view.text[hit.start : hit.end]) in self._allowed

    def _placeholder(self, kind: str) -> str:
        return f"[REDACTED:{kind}]" if self._settings.placeholder == "typed" else "[REDACTED]"


def _enabled(settings: RedactionRules) -> Iterator[Family]:
    if settings.custom:
        yield Family(settings.custom)
    types = settings.types - {"NAME"} if settings.names == "off" else settings.types
    for family in BUILT_IN:
        rules = tuple(rule for rule in family.rules if rule.type in types)
        if rules:
            yield replace(family, rules=rules)


@lru_cache(maxsize=16)
def shared_redactor(rules: RedactionRules) -> Redactor:
    """One for all who have the same rules: what it looks for in is built up by the first texts that it sees."""
    return Redactor(rules)


def default_redactor() -> Redactor:
    return shared_redactor(RedactionRules())


def redact(text: str, language: str | None = None) -> Redaction:
    """Mask personal data and secrets with the default rules. `language` (BCP-47) selects local number formats."""
    return default_redactor()(text, language)


def warm_up() -> None:
    """Load what the first text with a number would wait for: some 0.2 s. Safe to call in a thread, at any time."""
    redact("Call +48 601 234 567 or 0912 345 678, PESEL 44051401458, card 4111 1111 1111 1111", "vi")
    redact("numer 22 123 45 67, 415 555 2671", "pl")


def explain(text: str, language: str | None = None) -> list[Finding]:
    """Span, type and rule of each thing `redact` would mask."""
    return default_redactor().explain(text, language)


def mask(text: str, hits: list[Hit], labels: list[str]) -> str:
    """`hits` sorted and disjoint, one label each."""
    pieces: list[str] = []
    position = 0
    for hit, label in zip(hits, labels, strict=True):
        pieces += (text[position : hit.start], label)
        position = hit.end
    return "".join((*pieces, text[position:]))


def placed(more: list[Hit], hits: list[Hit], widths: list[int]) -> list[Hit]:
    """Hits found in a masked text, moved to where they stand in the text before `hits` were masked."""
    moved: list[Hit] = []
    shift = upcoming = 0
    for hit in more:
        while upcoming < len(hits) and hits[upcoming].start <= hit.start + shift:
            shift += hits[upcoming].end - hits[upcoming].start - widths[upcoming]
            upcoming += 1
        moved.append(hit._replace(start=hit.start + shift, end=hit.end + shift))
    return moved


def legible(text: str, hit: Hit) -> Iterator[Hit]:
    """A claim never reaches over a NUL, which is what a placeholder looks like in the shadow."""
    claimed = text[hit.start : hit.end]
    if "\0" not in claimed:
        if claimed:
            yield hit
        return
    for piece in re.finditer(r"[^\0]+", claimed):
        if any(char.isalnum() for char in piece[0]):
            yield hit._replace(start=hit.start + piece.start(), end=hit.start + piece.end())


_EDGES = " \t\r\n,;:|/-"


def resolve(hits: Sequence[Hit], text: str) -> list[Hit]:
    """Sorted and disjoint. Costs n log n, whatever the nesting."""
    ordered = sorted(hits)
    if all(left.end <= right.start for left, right in pairwise(ordered)):
        return ordered
    kept: list[Hit] = []
    for hit, start, end in _winners(ordered):
        if (start, end) != (hit.start, hit.end):
            start, end = _trim(text, start, end)
        if start < end:
            kept.append(hit._replace(start=start, end=end))
    return kept


def _winners(ordered: list[Hit]) -> Iterator[tuple[Hit, int, int]]:
    """Sweep from left to right; between two borders the best open claim holds the ground."""
    claims = [(-hit.sure, hit.start - hit.end, hit.start, hit.rule, index) for index, hit in enumerate(ordered)]
    open_claims: list[tuple[int, int, int, str, int]] = []
    upcoming, holder, since = 0, -1, 0
    for border in sorted({border for hit in ordered for border in (hit.start, hit.end)}):
        while upcoming < len(ordered) and ordered[upcoming].start <= border:
            heappush(open_claims, claims[upcoming])
            upcoming += 1
        while open_claims and ordered[open_claims[0][-1]].end <= border:
            heappop(open_claims)
        best = open_claims[0][-1] if open_claims else -1
        if best != holder:
            if holder >= 0:
                yield ordered[holder], since, border
            holder, since = best, border


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    """What a loser keeps sheds the separators at its edges, and is empty if nothing legible is left."""
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip(_EDGES))
    end -= len(piece) - len(piece.rstrip(_EDGES))
    return (start, end) if any(char.isalnum() for char in text[start:end]) else (start, start)


_MARKS: Final = b"0123456789@:.-/=_)]}\n"
_DROPPED: Final = bytes(code for code in range(256) if code not in _MARKS)
_AS_SIGNS: Final = bytes(ord("0") if chr(code).isdecimal() else code for code in range(128)) + bytes(range(128, 256))
_AS_WORDS: Final = bytes(ord(chr(code).lower()) if chr(code).isalpha() else 32 for code in range(128)) + b" " * 128
_HAN: Final = re.compile(r"[\u3400-\u9fff]")


class _Needs(NamedTuple):
    """What a text must have before a family is tried, in forms that are quick to look up."""

    family: Family
    words: frozenset[bytes]
    signs: re.Pattern[bytes] | None
    narrow: Prescan | None


class Selection:
    """The families that a text can need, in the order of `BUILT_IN`."""

    __slots__ = ("_needs",)

    def __init__(self, families: Iterable[Family]) -> None:
        prescans = lru_cache(maxsize=None)(Prescan)
        self._needs = [
            _Needs(
                family,
                frozenset(word.encode() for word in family.words.split()),
                re.compile(family.signs.encode()) if family.signs else None,
                prescans(family.narrow) if family.narrow else None,
            )
            for family in families
        ]

    def __call__(self, text: str) -> list[Family]:
        data = text.encode("ascii", "replace")
        signs = data.translate(_AS_SIGNS, _DROPPED)
        digits, has_han = signs.count(b"0"), not text.isascii() and _HAN.search(text) is not None
        mentioned, lower = frozenset(data.translate(_AS_WORDS).split()), text.lower()
        narrow: dict[Prescan, bool] = {}
        found: list[Family] = []
        for family, words, form, prescan in self._needs:
            if digits < family.digits or (family.han and not has_han):
                continue
            if words and (words.isdisjoint(mentioned) or len(words & mentioned) < family.least):
                continue
            if form is not None and form.search(signs) is None:
                continue
            if family.strings and not any(string in lower for string in family.strings):
                continue
            if prescan is not None:
                if prescan not in narrow:
                    narrow[prescan] = prescan(text)
                if not narrow[prescan]:
                    continue
            found.append(family)
        return found
