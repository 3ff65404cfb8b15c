# ruff: noqa: E501  (tables of words and forms)
"""Street addresses in Latin script: the English order, the continental order, post boxes, and what follows them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from threadkeep.policy.redact.prescan import SPACE
from threadkeep.policy.redact.rule import CONTEXT, FORM, Family, Finder, Rule, every
from threadkeep.policy.redact.view import View

# The post office's list of American street suffixes and their usual short forms, and the British ones.
STREET_SUFFIX: Final = (
    "Alley|Aly|Annex|Arcade|Avenue|Ave|Bayou|Beach|Bend|Bluff|Bluffs|Bottom|Boulevard|Blvd|Branch|Bridge|Brook|Brooks"
    "|Burg|Burgs|Bypass|Camp|Canyon|Cape|Causeway|Center|Centers|Centre|Circle|Cir|Circles|Cliff|Cliffs|Close|Club"
    "|Common|Commons|Corner|Corners|Course|Court|Ct|Courts|Cove|Coves|Creek|Crescent|Cres|Crest|Crossing|Crossroad"
    "|Crossroads|Curve|Dale|Dam|Divide|Drive|Dr|Drives|Estate|Estates|Expressway|Expy|Extension|Extensions|Fall|Falls"
    "|Ferry|Field|Fields|Flat|Flats|Ford|Fords|Forest|Forge|Forges|Fork|Forks|Fort|Freeway|Garden|Gardens|Gate"
    "|Gateway|Glen|Glens|Green|Greens|Grove|Groves|Harbor|Harbors|Haven|Heights|Hts|Highway|Hwy|Hill|Hills|Hollow"
    "|Inlet|Island|Islands|Isle|Junction|Junctions|Key|Keys|Knoll|Knolls|Lake|Lakes|Land|Landing|Lane|Ln|Light|Lights"
    "|Loaf|Lock|Locks|Lodge|Loop|Mall|Manor|Manors|Meadow|Meadows|Mews|Mill|Mills|Mission|Motorway|Mount|Mountain"
    "|Mountains|Neck|Orchard|Oval|Overpass|Parade|Park|Parks|Parkway|Pkwy|Parkways|Pass|Passage|Path|Pike|Pine|Pines"
    "|Place|Pl|Plain|Plains|Plaza|Point|Points|Port|Ports|Prairie|Quay|Radial|Ramp|Ranch|Rapid|Rapids|Rest|Ridge"
    "|Ridges|River|Road|Rd|Roads|Route|Row|Rue|Run|Shoal|Shoals|Shore|Shores|Skyway|Spring|Springs|Spur|Spurs|Square"
    "|Sq|Squares|Station|Stravenue|Stream|Street|St|Str|Streets|Summit|Terrace|Ter|Throughway|Trace|Track|Trafficway"
    "|Trail|Trailer|Tunnel|Turnpike|Underpass|Union|Unions|Valley|Valleys|Via|Viaduct|View|Views|Village|Villages"
    "|Ville|Vista|Walk|Walks|Wall|Way|Ways|Well|Wells|Wharf|Wood|Woods|Wynd"
)
# Those of them that are streets before they are anything else.
STREETS: Final = (
    "Alley|Avenue|Ave|Boulevard|Blvd|Circle|Cir|Close|Court|Ct|Crescent|Cres|Drive|Dr|Highway|Hwy|Lane|Ln|Mews|Parkway"
    "|Pkwy|Place|Pl|Plaza|Road|Rd|Row|Square|Sq|Street|St|Str|Terrace|Ter|Turnpike|Way"
)
# First words of street names where the number comes last, or first in French.
STREET_PREFIX: Final = (
    r"[Rr]ue|[Aa]venue|[Aa]v\.?|[Aa]venida|[Aa]vda\.?|[Bb]oulevard|[Bb]d\.?|[Cc]hemin|[Ii]mpasse|[Qq]uai|[Ll]argo"
    r"|[Vv]ia|[Vv]iale|[Vv]icolo|[Pp]iazza|[Ss]trada|[Cc]orso|[Cc]alle|C/|[Pp]aseo|[Pp]laza|[Rr]ua|[Tt]ravessa|[Pp]raca"
    r"|[Qq]uadra|[Cc]arrera|[Uu]l\.|[Uu]lic[ay]|[Aa]l\.|[Aa]lej[ai]|[Pp]lac|[Pp]lacu|[Oo]s\.|[Oo]siedl[eu]|[Tt]rg"
    r"|[Nn]amesti|[Rr]ond[oa]|[Bb]ulwar|[Ss]kwer|[Jj]alan|[Jj]l\.|[Oo]dos|[Ll]eoforos|[Ss]quare|[Aa]llee"
)
# Endings that make a word a street in the Germanic, Nordic, Baltic and Hungarian languages.
STREET_ENDING: Final = (
    "strasse|strase|gasse|weg|platz|allee|damm|ufer|steig|graben|bruecke|straat|laan|plein|kade|hove|dreef|singel"
    "|gata|gatan|gaten|gade|vej|veien|vegen|vagen|straeti|strati|stien|braut|vegur|torg|torget|terrasse"
    "|katu|ntie|kuja|polku|rinne|tanav|maantee|puiestee|iela|gatve|vangen|vanget|vollen|backen|stigen"
)
UNIT: Final = (
    r"(?:[Aa]pt|[Aa]partment|[Ss]uite|[Ss]te|[Uu]nit|[Ff]lat|[Rr]oom|[Rr]m|[Ff]loor|[Ff]l|[Bb]uilding"
    r"|[Bb]ldg|[Ll]okal|m\.)"
    r"\.?[ ]?#?[0-9]{1,5}[A-Za-z]?"
)
COUNTRY: Final = (
    "Afghanistan|Albania|Algeria|Argentina|Armenia|Australia|Austria|Azerbaijan|Bangladesh|Belarus"
    "|Belgium|Bolivia|Bosnia"
    "|Brazil|Bulgaria|Cambodia|Cameroon|Canada|Chile|China|Colombia|Croatia|Cuba|Cyprus|Czechia|Czech Republic|Denmark"
    "|Ecuador|Egypt|England|Estonia|Ethiopia|Finland|France|Georgia|Germany|Ghana|Greece|Greenland"
    "|Greenlander|Hong Kong"
    "|Hungary|Iceland|India|Indonesia|Iran|Iraq|Ireland|Israel|Italy|Jamaica|Japan|Jordan|Kazakhstan|Kenya|Korea|Kuwait"
    "|Laos|Latvia|Lebanon|Libya|Liechtenstein|Lithuania|Luxembourg|Malaysia|Malta|Mexico|Moldova"
    "|Monaco|Mongolia|Morocco"
    "|Nepal|Netherlands|New Zealand|Nigeria|Norway|Oman|Pakistan|Panama|Paraguay|Peru|Philippines"
    "|Poland|Polska|Portugal"
    "|Qatar|Romania|Russia|Saudi Arabia|Scotland|Serbia|Singapore|Slovakia|Slovenia|South Africa|South Korea|Spain"
    "|Sri Lanka|Sweden|Switzerland|Taiwan|Thailand|Tunisia|Turkey|UAE|UK|Ukraine|United Arab Emirates|United Kingdom"
    "|United States|Uruguay|USA|US|Uzbekistan|Venezuela|Vietnam|Viet Nam|Wales|Zimbabwe"
)


_UPPER: Final = r"[A-Z\u00c0-\u1fff]"
_NAME: Final = rf"(?:{_UPPER}(?:[^\W\d_]|['\-]){{1,30}}|[A-Z]\.?|St\.|Dr\.)(?![\w])"
_SMALL: Final = (
    r"(?:de|da|do|dos|das|del|della|dei|di|du|des|la|le|les|el|al|van|der|den|von|zu|of|the|na|nad|u|v|w|z"
    r"|i|ten|e|y)(?![\w])"
)
_WORDS: Final = rf"{_NAME}(?:[ ](?:{_SMALL}[ ]){{0,2}}{_NAME}){{0,4}}"
_HOUSE: Final = r"[0-9]{1,5}[A-Za-z]?(?:[/\-][0-9]{1,4}[A-Za-z]?)?(?![\w])"
_LEAD: Final = r"(?<![\w.,/:\-#$€£])(?:[0-9]{2,6}[ ])?"
_COMPASS: Final = r"(?:North|South|East|West|N|S|E|W|NE|NW|SE|SW|Northeast|Northwest|Southeast|Southwest)\.?"

_ENGLISH: Final = re.compile(
    rf"{_LEAD}{_HOUSE}[ ](?:{_COMPASS}[ ])?(?:(?:{_NAME}|[0-9]{{1,3}}(?:st|nd|rd|th)|{_SMALL})[ ]){{1,4}}"
    rf"(?P<suffix>{STREET_SUFFIX})(?![\w])\.?(?:[ ]{_COMPASS}(?![\w]))?"
)
_PREFIXED: Final = re.compile(
    rf"{_LEAD}(?:{_HOUSE}[ ])?(?:{STREET_PREFIX})(?:[ ]|(?<=[./]))(?:(?:{_NAME}|{_SMALL}"
    rf"|[0-9]{{1,2}})[ ]){{1,5}}{_HOUSE}\.?"
    rf"|{_LEAD}{_HOUSE}[ ](?:{STREET_PREFIX})[ ]{_WORDS}"
)
_COMPOUND: Final = re.compile(
    rf"{_LEAD}(?:{_NAME}[ ]){{0,2}}(?:[\w'.\-]{{2,30}}(?<=[a-z])(?:{STREET_ENDING})|{_NAME}[ ](?:utca"
    rf"|u\.|ut|utja|ter|tere|korut|rkp\.|kapu|[Ss]tr\.|[Ss]trasse|gate|vei|plass|alle|poik))"
    rf"[ ]{_HOUSE}\.?"
)
_BOX: Final = re.compile(
    rf"{_LEAD}(?:[Pp]\.?[ ]?[Oo]\.?[ ]?[Bb]ox|[Pp]ostbox|[Pp]ostboks|[Pp]ostfach|[Ss]krytka pocztowa|[Ss]kr\.[ ]?poczt\.)[ ]#?[0-9]{{1,7}}"
    r"|(?i:(?<![\w])(?:psc|cmr|unit|uss|usns|usnv|uscgc)[ ][^\n]{2,40}\n?[ ,]{0,3}(?:apo|fpo"
    r"|dpo)[ ,]{1,2}(?:aa|ae|ap)[ ,]{1,2}[0-9]{5})"
)
_WITH_UNIT: Final = re.compile(
    rf"{_LEAD}(?:[0-9]{{1,5}}[ ])?{_WORDS}(?:[ ][0-9]{{1,5}})?\.?[ ,]{{0,2}}(?:\n[ \t>?]{{0,6}})?{UNIT}(?![\w])"
)
_CUE: Final = (
    r"(?i:address(?: of [^\n:,]{1,40})?(?: is|:|\swith|\sto)|addresses, here they are:|resid\w{1,4} "
    r"(?:at|on)|liv(?:e|es|ed|ing) (?:at|on|in)|located (?:at|on|in)"
    r"|moved to|meet (?:me|you|us) (?:at|on)|sen[dt] (?:it |this |them |that )?to|deliver(?:ed)? "
    r"(?:it |this |them )?to|ship(?:ped)? (?:it |this |them )?to|return to"
    r"|a taxi to|stop at|drops you off at"
    r"|(?:office|station|restaurant|shop|house|home|flat|place)s? (?:is|are) (?:at|on|in)|arrived at"
    r"|enter on|address\?|north side of)"
)
_CUED: Final = re.compile(
    rf"(?:{_CUE})[ \t\n]{{1,8}}(?P<address>(?:(?:Flat|Apt\.?|Unit|Studio|Level|Suite"
    rf"|H\.No\.)[ ]?[0-9]{{1,4}}[A-Za-z]?[\s,/]{{1,3}})?(?:[0-9]{{2,6}}[ ])?(?:{_HOUSE},?[ ]{_WORDS}"
    rf"(?:[ ]{_HOUSE})?"
    rf"|{_WORDS}[ ]{_HOUSE}\.?))"
)
_BLOCK: Final = re.compile(
    rf"(?:^|\n)[ \t>?]{{0,8}}(?:{_NAME}[ ]){{0,5}}?(?P<address>[0-9]{{2,6}}[ ]{_WORDS}[ ]{_HOUSE}\.?)(?=[ \t]*(?:\n|$))"
)

_CORNER: Final = re.compile(
    rf"(?:the )?corner of (?:[0-9]{{1,6}}[ ])?(?:(?:{_NAME}|{_SMALL}|ul\.|[0-9]{{1,5}}\.?"
    rf"|[Ss]tr\.?)[ ]){{1,6}}and[ ](?:{_SMALL}[ ])?{_WORDS}"
)

_GAP: Final = r"[ \t]*[,\n]?[ \t>?]*,?[ \t]*"
_UNIT_PART: Final = re.compile(rf"{_GAP}{UNIT}(?![\w])")
_TOWN: Final = rf"{_WORDS}(?:[ ]\([\w ]{{2,20}}\))?"
_STATE: Final = r"(?:[A-Z]{2,3}|nan)(?![\w])"
_ZIP: Final = (
    r"(?:[0-9]{5}(?:-[0-9]{4})?|[0-9]{4}(?:[ ]?[A-Z]{2})?|[0-9]{2}-[0-9]{3}|[0-9]{3}[ ]?[0-9]{2,3}"
    r"|[A-Z]{1,2}[0-9][A-Z0-9]?[ ]?[0-9][A-Z]{2}|[A-Z][0-9][A-Z][ ]?[0-9][A-Z][0-9])(?![\w])"
)
_SEP: Final = r"(?:[ \t]*[,\n]{1,2}[ \t>?]*,?[ \t]*|[ ])"
_TAIL: Final = re.compile(
    rf"(?:{_SEP}(?!(?:Mobile|Phone|Tel|Fax|Email|E-mail|Desk|Date|Name)\b){_TOWN}){{0,2}}"
    rf"(?:{_SEP}{_STATE})?(?:{_SEP}(?:{COUNTRY})(?![\w])(?:[ ]\([\w ]{{2,20}}\))?)?(?:{_SEP}{_ZIP})?"
)
_SETTLED: Final = re.compile(rf"(?:{_ZIP}|(?:{COUNTRY})(?:[ ]\([\w ]{{2,20}}\))?|nan|{UNIT})\Z")
_STOP: Final = re.compile(r"\s*(?:[.?!;)]|\Z)")
_COMMA_TOWN: Final = re.compile(rf",[ ]{_TOWN}(?=\s*(?:[,.;!?)\n]|$))(?:,[ ][A-Z]{{2}}(?![\w]))?")


def extend(text: str, end: int) -> int:
    """Where the flat, town, state, country and postcode behind a street end. A town on a line of its own counts only
    if a postcode or a country follows: otherwise it may be anybody's signature."""
    street = end
    for _ in range(3):
        unit = _UNIT_PART.match(text, end)
        end = unit.end() if unit else end
    tail = _TAIL.match(text, end)
    after = tail.end() if tail else end
    if after > end and (_SETTLED.search(text, end, after) or (end > street and _STOP.match(text, after))):
        return after
    town = _COMMA_TOWN.match(text, end)
    return town.end() if town else end


def _seeds(pattern: re.Pattern[str], group: str | int = 0) -> Finder:
    def find(view: View) -> Iterator[tuple[int, int]]:
        for match in pattern.finditer(view.text):
            yield match.start(group), extend(view.text, match.end(group))

    return find


def _english(view: View) -> Iterator[tuple[int, int]]:
    for match in view.from_digits(_ENGLISH):
        # `5 Great Lakes` is no address; a word that is not first of all a street needs a longer house number.
        if match["suffix"] in _STREETS or re.search(r"[0-9]{3}", match[0]):
            yield match.start(), extend(view.text, match.end())


def _compound_word(view: View) -> bool:
    """A word that ends like a street, or stands for one; then also right in front of a number."""
    lower = view.lower
    ends = [start - 1 for start in view.runs if start > 3 and lower[start - 4 : start - 1] in _LAST_THREE]
    if not any(lower.endswith(_ALL_ENDINGS, 0, end) for end in ends):
        return False
    words = _WORD.findall(lower)
    return any(word.endswith(_ENDINGS) for word in words) or not _HUNGARIAN.isdisjoint(words)


def _spaced_capital(view: View) -> bool:
    text = view.text
    return any(text[start + 1 : start + 3].isupper() and text[start - 1] == " " for start in view.runs if start)


def _is_cued(view: View) -> bool:
    """A capital beside a number and, not too far before, one of the phrases in lower case: cheaper than in either."""
    reaches = ((start, _reach(view.text, start)) for start in view.runs)
    return any(_LOWER_CUE.search(view.lower, max(0, start - reach), start) for start, reach in reaches if reach)


def _reach(text: str, start: int) -> int:
    """How far before this number a phrase can stand whose address it is part of."""
    word = text[text.rfind(" ", max(0, start - 34), max(0, start - 1)) + 1] if start > 1 else "a"
    if text[start - 1] == " " and not "\0" < word < "A" and not "[" <= word <= "~":
        return 340
    return 120 if _CAPITAL_NEXT.match(text, start) else 0


def _has_two_numbers(view: View) -> bool:
    return _TWO_NUMBERS.search(view.text) is not None


_TWO_NUMBERS: Final = re.compile(rf"[0-9][ ]{_UPPER}[^0-9\n]*[ ][0-9]{{1,5}}[A-Za-z0-9/\-]{{0,7}}\.?[ \t]*(?:\n|\Z)")
_CAPITAL_NEXT: Final = re.compile(rf"[0-9]{{1,6}}[A-Za-z]?(?:[/\-][0-9]{{1,4}}[A-Za-z]?)?,?[ ]{_UPPER}")
_LOWER_CUE: Final = re.compile(_CUE.removeprefix("(?i:").removesuffix(")"))
_NUMBERED_UNIT: Final = (
    r"(?i-u:apt|apartment|suite|ste|unit|flat|room|rm|floor|fl|building|bldg|lokal|m\.)\.?[ ]?#?[0-9]"
)
"""The number of a flat, before the street in front of it is looked for."""


def _rule(name: str, find: Finder, sure: int = CONTEXT - 5) -> tuple[Rule]:
    return (Rule(f"address.{name}", "ADDRESS", find, sure),)


_STREETS: Final = frozenset(STREETS.split("|"))
_ENDINGS: Final = tuple(STREET_ENDING.split("|"))
_HUNGARIAN: Final = frozenset(
    ("utca", "ut", "u", "utja", "ter", "tere", "korut", "rkp", "kapu", "str", "poik", "vei", "plass")
)
_WORD: Final = re.compile(r"[a-z]+")
_APART: Final = " utca| u.| ut| utja| ter| tere| korut| rkp.| kapu| str.| strasse| gate| vei| plass| alle| poik"
_ALL_ENDINGS: Final = (*_ENDINGS, *_APART.split("|"))
_LAST_THREE: Final = frozenset(ending[-3:] for ending in _ALL_ENDINGS)
_UPPERCASE: Final = r"[A-Z\x{80}-\x{10FFFF}]"
_NUMBER_BEFORE_STREET: Final = rf"[0-9][A-Za-z]?[ ](?:[^ ]+[ ]){{1,5}}(?:{STREET_SUFFIX})"
_NUMBER_BEHIND_CUE: Final = (
    _CUE.replace(r"\w", "[^ ]").replace(r"\s", SPACE) + rf"[ \t\n]{{1,8}}(?:[0-9]|{_UPPERCASE}[^0-9\n]*[0-9])"
)
_PREFIX_BESIDE_NUMBER: Final = (
    rf"(?:{STREET_PREFIX})[ ][^\n]*[0-9]|[./][^ \n][^\n]*[0-9]|[0-9][A-Za-z]?[ ](?:{STREET_PREFIX})[ ]"
)
"""A short form may stand right before the name (`jl.Sudirman 45`)."""
_ENDING_BEFORE_NUMBER: Final = f"(?i-u:{'|'.join(sorted(_LAST_THREE)).replace('.', '[.]')})(?s:.)[0-9]"
_SUFFIXES: Final = " ".join(STREET_SUFFIX.lower().split("|"))
_PREFIXES: Final = (
    "rue avenue av avenida avda boulevard bd chemin impasse quai largo via viale vicolo piazza strada corso calle paseo"
    " plaza rua travessa praca quadra carrera ul ulica ulicy al aleja alei plac placu os osiedle osiedlu trg namesti"
    " rondo ronda bulwar skwer jalan jl odos leoforos square allee"
)
_UNITS: Final = "apt apartment suite ste unit flat room rm floor fl building bldg lokal"
_CUE_WORDS: Final = (
    "address addresses reside resides residing resided live lives lived living located moved meet sent send deliver"
    " delivered ship shipped return taxi stop drops office offices station restaurant shop house home flat place"
    " arrived enter north"
)

_LABELLED: Final = re.compile(
    r"(?i:(?<![a-z])(?:address|adres(?: dostawy| zamieszkania)?|dia chi(?: nha| giao hang)?))[ ]?:\s{0,8}"
    r"(?P<address>[^\n\0]{3,120}?)(?=\n|\Z|(?<!TP)(?<!Tp)(?<![ QP])(?<!St)(?<!No)(?<!Apt)(?<!ul)(?<!al)"
    r"(?<!os)[.;!?](?:\s|\Z)|\s(?i:phone|tel|mobile|email|e-mail|fax|sdt|dt)\b)"
)
_POSTCODE_LINE: Final = re.compile(rf"(?:\n[ \t]*[^\n]{{2,40}}){{0,3}}?\n[^\n]{{0,30}}{_ZIP}(?=[ \t]*(?:\n|\Z|[.,]))")


def _labelled(view: View) -> Iterator[tuple[int, int]]:
    """Addresses behind a label: the rest of its row, and the rows down to a postcode."""
    for match in _LABELLED.finditer(view.text):
        lines = _POSTCODE_LINE.match(view.text, match.end())
        end = lines.end() if lines else match.end()
        if re.search(r"[0-9]", view.text[match.start("address") : end]):
            yield match.start("address"), end


_UK_POSTCODE: Final = r"(?<![A-Za-z0-9])[A-Z]{1,2}[0-9][A-Z0-9]?[ ][0-9](?![TG]B)[ABD-HJLNP-UW-Z]{2}(?![A-Za-z0-9])"
"""But for `T7 1TB` and `M2 8GB`: sizes of disks and memory are more common than such a postcode alone."""

FAMILIES: Final = (
    Family(
        _rule("labelled", _labelled, FORM),
        words="address adres dostawy zamieszkania dia chi",
        digits=1,
        narrow=r"(?i-u:address|adres|dostawy|zamieszkania|chi|nha|hang)[ ]?:",
    ),
    Family(
        _rule("postcode.gb", every(_UK_POSTCODE), FORM), digits=2, gate=_spaced_capital, narrow="[A-Z0-9] [0-9][A-Z]{2}"
    ),
    Family(_rule("english", _english), words=_SUFFIXES, digits=1, narrow=_NUMBER_BEFORE_STREET),
    Family(_rule("prefixed", _seeds(_PREFIXED)), words=_PREFIXES, digits=1, narrow=_PREFIX_BESIDE_NUMBER),
    Family(_rule("compound", _seeds(_COMPOUND)), digits=1, gate=_compound_word, narrow=_ENDING_BEFORE_NUMBER),
    Family(
        _rule("box", _seeds(_BOX)),
        words="box postbox postboks postfach skrytka skr apo fpo dpo",
        digits=1,
        narrow=r"(?i-u:box|boks|fach|pocztowa|poczt[.])[ ]#?[0-9]|(?i-u:[afd]po)[ ,]{1,2}(?i-u:a[aep])",
    ),
    Family(_rule("unit", _seeds(_WITH_UNIT)), words=_UNITS, digits=1, narrow=_NUMBERED_UNIT),
    Family(_rule("corner", _seeds(_CORNER)), words="corner"),
    Family(
        _rule("told", _seeds(_CUED, "address"), FORM),
        words=_CUE_WORDS,
        digits=1,
        gate=_is_cued,
        narrow=_NUMBER_BEHIND_CUE,
    ),
    Family(
        _rule("block", _seeds(_BLOCK, "address"), FORM),
        digits=3,
        signs="\n",
        gate=_has_two_numbers,
        narrow=rf"[0-9][ ]{_UPPERCASE}",
    ),
)
