"""Which families are worth trying on a text, found without asking each of them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from threadkeep.policy.redact.rule import Family
    from threadkeep.policy.redact.view import View


class Selection:
    """An index of families by the words they need; most texts have none of those words, no digit, and cost little."""

    __slots__ = ("_by_word", "_wordless", "_words")

    def __init__(self, families: Iterable[Family]) -> None:
        by_word: dict[str, list[Family]] = defaultdict(list)
        wordless: dict[tuple[bool, bool], list[Family]] = defaultdict(list)
        for family in families:
            for word in family.words.split():
                by_word[word].append(family)
            if not family.words:
                wordless[family.digit, family.han].append(family)
        self._by_word = dict(by_word)
        self._words = frozenset(by_word)
        self._wordless = tuple(wordless.items())

    def __call__(self, view: View) -> Iterator[Family]:
        """Each family once, in no order that matters."""
        for (digit, han), families in self._wordless:
            if (not digit or view.digit) and (not han or view.han):
                for family in families:
                    if family.gate is None or family.gate(view):
                        yield family
        mentioned = self._words & view.words
        if mentioned:
            yield from self._named(mentioned, view)

    def _named(self, mentioned: frozenset[str], view: View) -> Iterator[Family]:
        seen: set[int] = set()
        for word in mentioned:
            for family in self._by_word[word]:
                if id(family) in seen or (family.digit and not view.digit):
                    continue
                seen.add(id(family))
                if family.gate is None or family.gate(view):
                    yield family
