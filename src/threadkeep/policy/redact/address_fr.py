# ruff: noqa: E501  (tables of words and forms)
"""French addresses, in any case: `12 bis rue de la Paix, 75002 Paris`, `appt 3, résidence Les Lilas, 69003 lyon`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from threadkeep.policy.redact.gazetteer import any_of
from threadkeep.policy.redact.rule import FORM, Family, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from threadkeep.policy.redact.view import View

_STREET: Final = r"(?:rue|avenue|av\.?|boulevard|blvd|bd\.?|bld|allee|impasse|chemin|quai|ruelle|faubourg|fbg|sentier|rond-point|esplanade|montee)"
_AMBIGUOUS: Final = (
    r"(?:place|pl\.?|square|passage|route|cours|villa|cite|voie|promenade|residence|hameau|lotissement|lieu-dit)"
)
"""Also words of other languages, or of no street: French only with an article behind them."""
_OF: Final = r"(?:de la |de l'|des |de |du |d'|la |le |les |l')"
_AND: Final = (
    r"(?:et|a|au|aux|pour|avec|qui|que|c'est|est|svp|merci|je|on|il|elle|dans|chez|vers|ou|mais|avant|apres)(?![a-z'])"
)
_WORD: Final = rf"(?!{_AND})(?:[a-z][a-z'\-]{{1,20}}|[0-9]{{1,2}})(?![a-z0-9])"
_NAME: Final = rf"{_OF}{{0,1}}{_WORD}(?: {_OF}{{0,1}}{_WORD}){{0,3}}"
_HOUSE: Final = r"[0-9]{1,4}(?: ?(?:bis|ter|quater|[a-d]))?(?:[/\-][0-9]{1,4})?(?![0-9a-z])"
_UNIT: Final = (
    r"(?:appt?\.?|appartement|apt\.?|bat\.?|batiment|etage|escalier|esc\.?|porte|residence|res\.?|hall|interphone|code)"
)
_TOWN: Final = rf"(?:{any_of('towns_fr')})(?: cedex)?(?: [0-9]{{1,2}}e?)?(?![a-z])"
_ADDRESS: Final = re.compile(
    rf"(?<![a-z0-9.,/])(?:{_UNIT} ?[0-9a-z]{{1,4}},? ){{0,3}}{_HOUSE},? (?:{_STREET} {_NAME}|{_AMBIGUOUS} {_OF}{_WORD}(?: {_OF}{{0,1}}{_WORD}){{0,3}})"
)
_UNNUMBERED: Final = re.compile(
    rf"(?<![a-z0-9])(?:{_STREET} {_NAME}|{_AMBIGUOUS} {_OF}{_WORD}(?: {_OF}{{0,1}}{_WORD}){{0,3}}),? (?=[0-9]{{5}} )"
)
_TAIL: Final = re.compile(
    rf"(?:,? (?:{_UNIT} ?[0-9a-z]{{1,4}}|[0-9]{{1,2}}(?:er|e|eme) etage)){{0,3}}(?:,? (?:a )?(?:[0-9]{{5}}(?: {_TOWN}| [a-z\-]{{2,20}})?|{_TOWN}))?"
)


def _addresses(view: View) -> Iterator[tuple[int, int]]:
    for pattern in (_ADDRESS, _UNNUMBERED):
        for match in pattern.finditer(view.lower):
            # A name that ends before a word in lower case may have taken a word too many; masking one word too many
            # does no harm.
            end = _capitals_end(view.text, match)
            tail = _TAIL.match(view.lower, end)
            yield match.start(), tail.end() if tail else end


def _capitals_end(text: str, match: re.Match[str]) -> int:
    """Where the name has capitals it ends with the last of them: `12 rue Victor Hugo demain`."""
    end, words = match.start(), match[0].rstrip().split(" ")
    last = 0
    for word in words:
        if text[end : end + 1].isupper() or (
            "'" in word and text[end + word.index("'") + 1 : end + word.index("'") + 2].isupper()
        ):
            last = end + len(word)
        end += len(word) + 1
    return last if last and not text[match.start()].isupper() else match.start() + len(match[0].rstrip())


_WORDS: Final = (
    "rue avenue av boulevard blvd bd bld allee impasse chemin quai ruelle faubourg fbg sentier rond esplanade montee place pl square passage"
    " route cours villa cite voie promenade residence hameau lotissement lieu"
)

FAMILIES: Final = (
    Family(
        (Rule("address.fr", "ADDRESS", _addresses, FORM - 1),),
        words=_WORDS,
        digits=1,
        narrow=(
            rf"(?i-u:(?:[0-9]|bis|ter|quater|[0-9] ?[a-d]),? (?:{_STREET} [a-z0-9]|{_AMBIGUOUS} {_OF})|(?:{_STREET}|{_AMBIGUOUS}) [ -/:-~]{{2,60}}[0-9]{{5}})"
        ),
    ),
)
