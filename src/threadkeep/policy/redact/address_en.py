# ruff: noqa: E501  (tables of words and forms)
"""English addresses as people write them in a hurry: `221b baker street london`, `flat 3, 12 high st`, `tower 2, room 1203`.

`address_latin.py` has those with capitals. Here every word between the number and the street word must be one that a
street can be named after: no count, measure or preposition (`2 minutes down the road`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from threadkeep.policy.redact.gazetteer import any_of
from threadkeep.policy.redact.rule import CONTEXT, FORM, Family, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from threadkeep.policy.redact.view import View

_STREET: Final = r"(?:street|avenue|ave|road|rd|lane|ln|boulevard|blvd|parkway|pkwy|crescent|cres|mews|gardens|grove|hwy|parade|trl|turnpike|concourse|esplanade|bvd)"
"""Streets and nothing else, in the singular and behind a number."""
_SHORT: Final = frozenset(("st", "dr", "ct", "pl", "ter", "cir", "sq", "trl", "ln", "ave", "rd"))
"""Short forms, which name a street wherever a house number of three digits stands before them."""
_OTHERS: Final = r"(?:st|dr|drive|court|ct|place|pl|terrace|ter|way|close|square|sq|circle|cir|row|hill|park|walk|view|rise|highway|plaza|loop|trail|broadway|quay|wharf|green|heights)"
"""Other things as well: these need a flat, a town, a postcode or a verb of living beside them."""
_NO_NAME: Final = (
    r"(?:a|an|the|of|on|in|at|to|for|from|and|or|with|by|down|up|off|near|per|is|was|are|minutes?|mins?|hours?|hrs?|days?|weeks?|months?|years?|yrs?"
    r"|miles?|km|kms|metres?|meters?|feet|foot|ft|inch(?:es)?|blocks?|steps?|cars?|people|persons?|men|women|kids|lanes?|ways?|stars?|times?|different"
    r"|more|other|new|old|big|small|large|long|short|busy|quiet|narrow|wide|good|great|nice|best|worst|main roads|major|minor|million|billion|thousand"
    r"|hundred|percent|pm|am|seconds?|secs?|degrees?|dollars?|bucks|pounds?|euros?|th|st|nd|rd|my|your|our|his|her|their|this|that|these|those|it|we"
    r"|you|they|i|he|she|will|can|not|no|just|only|each|every|same|next|last|first|second|third|left|right|way|points?|players?|bedrooms?|beds?|rooms?"
    r"|floors?|story|storey|mile|lane|dirt|country|open|single|double|two|three|four|five|public|private|tennis|basketball|food|supreme|high court|test"
    r"|hour|minute|day|night|road|street|drive|driving|walking|bike|bus|train|stop|stops)(?![a-z])"
)
_WORD: Final = rf"(?!{_NO_NAME})(?:[a-z][a-z'\-]{{1,18}}|[0-9]{{1,3}}(?:st|nd|rd|th))(?![a-z0-9])"
_COMPASS: Final = r"(?:north|south|east|west|n|s|e|w|ne|nw|se|sw)\.?"
_HOUSE: Final = r"[0-9]{1,5}[a-z]?(?:[/\-][0-9]{1,4}[a-z]?)?(?![0-9a-z.:%])"
_UNIT: Final = (
    r"(?:(?:flat|bungalow|cottage|walk-up|penthouse|ph|lot|door|chalet|cabin|apt\.?|apartment|unit|suite|ste\.?|room|rm|tower|block|blk|level|studio|bldg|building|floor|fl\.?|lvl|house|villa)[ ]?#?(?:[0-9]{1,5}[a-z]?(?:/(?=[0-9]))?|[a-z])"
    r"|#[0-9]{1,4}(?:-[0-9]{1,4})?[a-z]?|[0-9]{1,3}(?:st|nd|rd|th)[ ](?:floor|fl)|[0-9]{1,3}/f)(?:(?<=/)|(?![0-9a-z]))"
)
_ADDRESS: Final = re.compile(
    rf"(?<![a-z0-9.,/:$#])(?:(?:the )?{_UNIT}(?:,? |(?<=/))){{0,3}}(?:(?<=, )(?:[a-z][a-z'\-]{{1,18}} ){{0,2}}[a-z][a-z'\-]{{1,18}}, )?(?P<house>{_HOUSE}),? (?:{_COMPASS} )?(?P<name>{_WORD}(?: {_WORD}){{0,2}}) "
    rf"(?:(?P<street>{_STREET})|(?P<other>{_OTHERS}))(?![a-z0-9])\.?(?: {_COMPASS}(?![a-z]))?"
    rf"(?:(?<=road) [0-9]{{1,4}}(?![0-9a-z]))?"
)
_NUMBERED_ROAD: Final = re.compile(
    rf"(?<![a-z0-9.,/:$#]){_HOUSE} (?:(?:old|new|n|s|e|w|north|south|east|west) )?(?:county|state|farm|us|fm|rural|route|highway|hwy)(?: (?:road|rd|route|highway|hwy))? [0-9]{{1,4}}(?![0-9a-z])"
)
_UNITS: Final = re.compile(rf"(?<![a-z0-9]){_UNIT},? {_UNIT}(?:,? {_UNIT}){{0,2}}")
_LIVED_IN: Final = re.compile(
    r"(?<![a-z])(?!room|rm|floor|fl|level|lvl|th |st |nd |rd |f(?![a-z]))[a-z]+[. ]?#?[0-9a-z]|#"
)
_POSTCODE: Final = (
    r"(?:[a-z]{1,2}[0-9][a-z0-9]? ?[0-9][a-z]{2}|[0-9]{5}(?:-[0-9]{4})?|[a-z][0-9][a-z] ?[0-9][a-z][0-9])(?![0-9a-z])"
)
_STATE: Final = (
    r"(?:al|ak|az|ar|ca|co|ct|de|fl|ga|hi|id|il|ia|ks|ky|la|ma|md|mi|mn|ms|mo|mt|ne|nv|nh|nj|nm|ny|nc|nd|oh|ok|or|pa|ri|sc|sd|tn|tx|ut|vt|va|wa|wv"
    r"|wi|wy|dc|nsw|vic|qld|tas|bc|ab|on|qc)"
)
_TOWN: Final = rf"(?:{any_of('towns_en')})"
_TAIL: Final = re.compile(
    rf"(?:,? {_UNIT}){{0,3}}(?P<place>(?:,? (?:in )?{_TOWN}(?![a-z])){{0,3}}(?:,? {_STATE}(?=,? [0-9]{{4,5}}|[,.;!?]|\s*\Z|\n)(?:,? [0-9]{{4}}(?![0-9]))?)?(?:,? {_POSTCODE})?)"
)
_LIVING: Final = re.compile(
    r"(?<![a-z])(?:address(?:es)?|live[sd]?|living|lives|reside[sd]?|moved|moving|ship(?:ped)?|deliver(?:ed|y)?|send|sent|mail|post|staying|stay|pick(?:ed)? (?:me|us|it) up"
    r"|drop(?:ped)?|meet|home|house|office|flat|apartment|place|parcel|package|order|taxi|uber|cab|come|located|visit|billing|shipping)"
    r"[^0-9\n.;!?]{0,30}\Z"
)
_FAMOUS: Final = frozenset(("wall", "sesame", "downing", "jump", "easy", "coronation", "quality", "abbey"))
"""Streets that stand for a trade, a film or a record; with a town behind them they are addresses all the same."""
_YEAR: Final = re.compile(r"(?:19|20)[0-9]{2}")
_STREET_AND_POSTCODE: Final = re.compile(
    rf"(?<![a-z0-9])(?P<name>{_WORD}(?: {_WORD}){{0,2}}) (?:{_STREET}|{_OTHERS})(?![a-z])\.?(?:,? {_TOWN}){{0,2}}"
    rf",? (?:{_STATE} [0-9]{{5}}(?:-[0-9]{{4}})?|[a-z]{{1,2}}[0-9][a-z0-9]? ?[0-9][a-z]{{2}})(?![0-9a-z])"
)


def _addresses(view: View) -> Iterator[tuple[int, int]]:
    lower = view.lower
    for match in _ADDRESS.finditer(lower):
        tail = _TAIL.match(lower, match.end())
        end = tail.end() if tail else match.end()
        evident = end > match.end() or match.start() < match.start("house")
        if (_YEAR.fullmatch(match["house"]) or match["name"] in _FAMOUS) and not evident:
            continue
        short = re.split(r"[ .]", match[0].rstrip("."))[-1] in _SHORT and len(match["house"]) >= 3
        lettered = match["house"][-1].isalpha() or short
        if evident or lettered or match["street"] or _LIVING.search(lower, max(0, match.start() - 48), match.start()):
            yield match.start(), end
    for match in _NUMBERED_ROAD.finditer(lower):
        tail = _TAIL.match(lower, match.end())
        yield match.start(), tail.end() if tail else match.end()


def _units(view: View) -> Iterator[tuple[int, int]]:
    """Two parts of a building beside each other, `tower 2, flat 12a`; a guest's room and its floor are none."""
    return (match.span() for match in _UNITS.finditer(view.lower) if _LIVED_IN.search(match[0]))


def _streets(view: View) -> Iterator[tuple[int, int]]:
    """A street and its postcode, without the number of a house. Of the words in front only those with a capital belong
    to the name, where the street has one."""
    for match in _STREET_AND_POSTCODE.finditer(view.lower):
        start = match.start()
        words = match["name"].split(" ")
        if view.text[match.end("name") + 1].isupper():
            while len(words) > 1 and not view.text[start].isupper():
                start += len(words.pop(0)) + 1
        else:
            start += sum(len(word) + 1 for word in words[:-1])
        yield start, match.end()


_STREET_WORDS: Final = re.sub(r"[(?:)]", "", f"{_STREET}|{_OTHERS}|county|route|fm").replace("|", " ")
_UNIT_WORDS: Final = "flat apt apartment unit suite ste room rm tower block blk level studio bldg building floor fl lvl house villa f th st nd rd bungalow cottage penthouse lot cabin"

FAMILIES: Final = (
    Family(
        (Rule("address.en", "ADDRESS", _addresses, FORM - 1),),
        words=_STREET_WORDS,
        digits=1,
        narrow=rf"(?i-u:[0-9][a-z]?,? (?:[a-z0-9'.\-]{{1,20}} ){{1,4}}(?:{_STREET}|{_OTHERS})|[0-9] (?:[a-z]{{1,6}} )?(?:county|state|farm|us|fm|rural|route|highway|hwy) (?:road |rd |route )?[0-9])",
    ),
    Family(
        (Rule("address.en.units", "ADDRESS", _units, CONTEXT - 7),),
        words=_UNIT_WORDS,
        least=2,
        digits=1,
        narrow=r"(?i-u:flat|apt|apartment|unit|suite|ste|room|rm|tower|block|blk|level|studio|bldg|building|floor|fl|lvl|house|villa)[. ]{0,2}#?[0-9A-Za-z]{1,6},? ",
    ),
    Family(
        (Rule("address.en.postcode", "ADDRESS", _streets, CONTEXT - 7),),
        words=_STREET_WORDS,
        digits=2,
        narrow=r"(?i-u:[a-z]{1,2}[0-9][a-z0-9]? ?[0-9][a-z]{2}|[a-z]{2} [0-9]{5})",
    ),
)
