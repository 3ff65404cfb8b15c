# ruff: noqa: E501  (tables of words and forms)
"""Street addresses in Latin script: of any country by their form, then English, French and Polish ones by their words.

By form: the English order, the continental order, post boxes, and what follows them.

English, as people write them in a hurry: `221b baker street london`, `flat 3, 12 high st`, `tower 2, room 1203`. Every
word between the number and the street word must be one that a street can be named after: no count, measure or preposition
(`2 minutes down the road`).

French, in any case: `12 bis rue de la Paix, 75002 Paris`, `appt 3, résidence Les Lilas, 69003 lyon`.

Polish: `ul. Długa 5/7 m. 3, 00-238 Warszawa`, in any case and without diacritics too. Everyday ones have no street word
(`Marszałkowska 104/122, Warszawa`): a name before a house number, and one thing more. The name is a street's, it has a
street's ending and a flat or a verb of living beside it, or a town or postcode follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from threadkeep.policy.redact.gazetteer import any_of, names, words
from threadkeep.policy.redact.rule import CONTEXT, FORM, SPACE, Family, Finder, Rule, View, every

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
    for match in _ENGLISH.finditer(view.text):
        # `5 Great Lakes` is no address; a word that is not first of all a street needs a longer house number.
        if match["suffix"] in _STREETS or re.search(r"[0-9]{3}", match[0]):
            yield match.start(), extend(view.text, match.end())


_NUMBERED_UNIT: Final = (
    r"(?i-u:apt|apartment|suite|ste|unit|flat|room|rm|floor|fl|building|bldg|lokal|m\.)\.?[ ]?#?[0-9]"
)
"""The number of a flat, before the street in front of it is looked for."""


def _rule(name: str, find: Finder, sure: int = CONTEXT - 5) -> tuple[Rule]:
    return (Rule(f"address.{name}", "ADDRESS", find, sure),)


_STREETS: Final = frozenset(STREETS.split("|"))
_ENDINGS: Final = tuple(STREET_ENDING.split("|"))
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

_LATIN_FAMILIES: Final = (
    Family(
        _rule("labelled", _labelled, FORM),
        words="address adres dostawy zamieszkania dia chi",
        digits=1,
        narrow=r"(?i-u:address|adres|dostawy|zamieszkania|chi|nha|hang)[ ]?:",
    ),
    Family(_rule("postcode.gb", every(_UK_POSTCODE), FORM), digits=2, narrow="[A-Z0-9] [0-9][A-Z]{2}"),
    Family(_rule("english", _english), words=_SUFFIXES, digits=1, narrow=_NUMBER_BEFORE_STREET),
    Family(_rule("prefixed", _seeds(_PREFIXED)), words=_PREFIXES, digits=1, narrow=_PREFIX_BESIDE_NUMBER),
    Family(_rule("compound", _seeds(_COMPOUND)), digits=1, narrow=_ENDING_BEFORE_NUMBER),
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
        narrow=_NUMBER_BEHIND_CUE,
    ),
    Family(
        _rule("block", _seeds(_BLOCK, "address"), FORM),
        digits=3,
        signs="\n",
        narrow=rf"[0-9][ ]{_UPPERCASE}",
    ),
)


_EN_STREET: Final = r"(?:street|avenue|ave|road|rd|lane|ln|boulevard|blvd|parkway|pkwy|crescent|cres|mews|gardens|grove|hwy|parade|trl|turnpike|concourse|esplanade|bvd)"
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
_EN_WORD: Final = rf"(?!{_NO_NAME})(?:[a-z][a-z'\-]{{1,18}}|[0-9]{{1,3}}(?:st|nd|rd|th))(?![a-z0-9])"
_EN_COMPASS: Final = r"(?:north|south|east|west|n|s|e|w|ne|nw|se|sw)\.?"
_EN_HOUSE: Final = r"[0-9]{1,5}[a-z]?(?:[/\-][0-9]{1,4}[a-z]?)?(?![0-9a-z.:%])"
_EN_UNIT: Final = (
    r"(?:(?:flat|bungalow|cottage|walk-up|penthouse|ph|lot|door|chalet|cabin|apt\.?|apartment|unit|suite|ste\.?|room|rm|tower|block|blk|level|studio|bldg|building|floor|fl\.?|lvl|house|villa)[ ]?#?(?:[0-9]{1,5}[a-z]?(?:/(?=[0-9]))?|[a-z])"
    r"|#[0-9]{1,4}(?:-[0-9]{1,4})?[a-z]?|[0-9]{1,3}(?:st|nd|rd|th)[ ](?:floor|fl)|[0-9]{1,3}/f)(?:(?<=/)|(?![0-9a-z]))"
)
_EN_ADDRESS: Final = re.compile(
    rf"(?<![a-z0-9.,/:$#])(?:(?:the )?{_EN_UNIT}(?:,? |(?<=/))){{0,3}}(?:(?<=, )(?:[a-z][a-z'\-]{{1,18}} ){{0,2}}[a-z][a-z'\-]{{1,18}}, )?(?P<house>{_EN_HOUSE}),? (?:{_EN_COMPASS} )?(?P<name>{_EN_WORD}(?: {_EN_WORD}){{0,2}}) "
    rf"(?:(?P<street>{_EN_STREET})|(?P<other>{_OTHERS}))(?![a-z0-9])\.?(?: {_EN_COMPASS}(?![a-z]))?"
    rf"(?:(?<=road) [0-9]{{1,4}}(?![0-9a-z]))?"
)
_NUMBERED_ROAD: Final = re.compile(
    rf"(?<![a-z0-9.,/:$#]){_EN_HOUSE} (?:(?:old|new|n|s|e|w|north|south|east|west) )?(?:county|state|farm|us|fm|rural|route|highway|hwy)(?: (?:road|rd|route|highway|hwy))? [0-9]{{1,4}}(?![0-9a-z])"
)
_EN_UNITS: Final = re.compile(rf"(?<![a-z0-9]){_EN_UNIT},? {_EN_UNIT}(?:,? {_EN_UNIT}){{0,2}}")
_LIVED_IN: Final = re.compile(
    r"(?<![a-z])(?!room|rm|floor|fl|level|lvl|th |st |nd |rd |f(?![a-z]))[a-z]+[. ]?#?[0-9a-z]|#"
)
_EN_POSTCODE: Final = (
    r"(?:[a-z]{1,2}[0-9][a-z0-9]? ?[0-9][a-z]{2}|[0-9]{5}(?:-[0-9]{4})?|[a-z][0-9][a-z] ?[0-9][a-z][0-9])(?![0-9a-z])"
)
_EN_STATE: Final = (
    r"(?:al|ak|az|ar|ca|co|ct|de|fl|ga|hi|id|il|ia|ks|ky|la|ma|md|mi|mn|ms|mo|mt|ne|nv|nh|nj|nm|ny|nc|nd|oh|ok|or|pa|ri|sc|sd|tn|tx|ut|vt|va|wa|wv"
    r"|wi|wy|dc|nsw|vic|qld|tas|bc|ab|on|qc)"
)
_EN_TOWN: Final = rf"(?:{any_of('towns_en')})"
_EN_TAIL: Final = re.compile(
    rf"(?:,? {_EN_UNIT}){{0,3}}(?P<place>(?:,? (?:in )?{_EN_TOWN}(?![a-z])){{0,3}}(?:,? {_EN_STATE}(?=,? [0-9]{{4,5}}|[,.;!?]|\s*\Z|\n)(?:,? [0-9]{{4}}(?![0-9]))?)?(?:,? {_EN_POSTCODE})?)"
)
_EN_LIVING: Final = re.compile(
    r"(?<![a-z])(?:address(?:es)?|live[sd]?|living|lives|reside[sd]?|moved|moving|ship(?:ped)?|deliver(?:ed|y)?|send|sent|mail|post|staying|stay|pick(?:ed)? (?:me|us|it) up"
    r"|drop(?:ped)?|meet|home|house|office|flat|apartment|place|parcel|package|order|taxi|uber|cab|come|located|visit|billing|shipping)"
    r"[^0-9\n.;!?]{0,30}\Z"
)
_FAMOUS: Final = frozenset(("wall", "sesame", "downing", "jump", "easy", "coronation", "quality", "abbey"))
"""Streets that stand for a trade, a film or a record; with a town behind them they are addresses all the same."""
_YEAR: Final = re.compile(r"(?:19|20)[0-9]{2}")
_STREET_AND_POSTCODE: Final = re.compile(
    rf"(?<![a-z0-9])(?P<name>{_EN_WORD}(?: {_EN_WORD}){{0,2}}) (?:{_EN_STREET}|{_OTHERS})(?![a-z])\.?(?:,? {_EN_TOWN}){{0,2}}"
    rf",? (?:{_EN_STATE} [0-9]{{5}}(?:-[0-9]{{4}})?|[a-z]{{1,2}}[0-9][a-z0-9]? ?[0-9][a-z]{{2}})(?![0-9a-z])"
)


def _everyday_english(view: View) -> Iterator[tuple[int, int]]:
    lower = view.lower
    for match in _EN_ADDRESS.finditer(lower):
        tail = _EN_TAIL.match(lower, match.end())
        end = tail.end() if tail else match.end()
        evident = end > match.end() or match.start() < match.start("house")
        if (_YEAR.fullmatch(match["house"]) or match["name"] in _FAMOUS) and not evident:
            continue
        short = re.split(r"[ .]", match[0].rstrip("."))[-1] in _SHORT and len(match["house"]) >= 3
        lettered = match["house"][-1].isalpha() or short
        if (
            evident
            or lettered
            or match["street"]
            or _EN_LIVING.search(lower, max(0, match.start() - 48), match.start())
        ):
            yield match.start(), end
    for match in _NUMBERED_ROAD.finditer(lower):
        tail = _EN_TAIL.match(lower, match.end())
        yield match.start(), tail.end() if tail else match.end()


def _units(view: View) -> Iterator[tuple[int, int]]:
    """Two parts of a building beside each other, `tower 2, flat 12a`; a guest's room and its floor are none."""
    return (match.span() for match in _EN_UNITS.finditer(view.lower) if _LIVED_IN.search(match[0]))


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


_STREET_WORDS: Final = re.sub(r"[(?:)]", "", f"{_EN_STREET}|{_OTHERS}|county|route|fm").replace("|", " ")
_UNIT_WORDS: Final = "flat apt apartment unit suite ste room rm tower block blk level studio bldg building floor fl lvl house villa f th st nd rd bungalow cottage penthouse lot cabin"

_EN_FAMILIES: Final = (
    Family(
        (Rule("address.en", "ADDRESS", _everyday_english, FORM - 1),),
        words=_STREET_WORDS,
        digits=1,
        narrow=rf"(?i-u:[0-9][a-z]?,? (?:[a-z0-9'.\-]{{1,20}} ){{1,4}}(?:{_EN_STREET}|{_OTHERS})|[0-9] (?:[a-z]{{1,6}} )?(?:county|state|farm|us|fm|rural|route|highway|hwy) (?:road |rd |route )?[0-9])",
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


_FR_STREET: Final = r"(?:rue|avenue|av\.?|boulevard|blvd|bd\.?|bld|allee|impasse|chemin|quai|ruelle|faubourg|fbg|sentier|rond-point|esplanade|montee)"
_AMBIGUOUS: Final = (
    r"(?:place|pl\.?|square|passage|route|cours|villa|cite|voie|promenade|residence|hameau|lotissement|lieu-dit)"
)
"""Also words of other languages, or of no street: French only with an article behind them."""
_OF: Final = r"(?:de la |de l'|des |de |du |d'|la |le |les |l')"
_AND: Final = (
    r"(?:et|a|au|aux|pour|avec|qui|que|c'est|est|svp|merci|je|on|il|elle|dans|chez|vers|ou|mais|avant|apres)(?![a-z'])"
)
_FR_WORD: Final = rf"(?!{_AND})(?:[a-z][a-z'\-]{{1,20}}|[0-9]{{1,2}})(?![a-z0-9])"
_FR_NAME: Final = rf"{_OF}{{0,1}}{_FR_WORD}(?: {_OF}{{0,1}}{_FR_WORD}){{0,3}}"
_FR_HOUSE: Final = r"[0-9]{1,4}(?: ?(?:bis|ter|quater|[a-d]))?(?:[/\-][0-9]{1,4})?(?![0-9a-z])"
_FR_UNIT: Final = (
    r"(?:appt?\.?|appartement|apt\.?|bat\.?|batiment|etage|escalier|esc\.?|porte|residence|res\.?|hall|interphone|code)"
)
_FR_TOWN: Final = rf"(?:{any_of('towns_fr')})(?: cedex)?(?: [0-9]{{1,2}}e?)?(?![a-z])"
_FR_ADDRESS: Final = re.compile(
    rf"(?<![a-z0-9.,/])(?:{_FR_UNIT} ?[0-9a-z]{{1,4}},? ){{0,3}}{_FR_HOUSE},? (?:{_FR_STREET} {_FR_NAME}|{_AMBIGUOUS} {_OF}{_FR_WORD}(?: {_OF}{{0,1}}{_FR_WORD}){{0,3}})"
)
_UNNUMBERED: Final = re.compile(
    rf"(?<![a-z0-9])(?:{_FR_STREET} {_FR_NAME}|{_AMBIGUOUS} {_OF}{_FR_WORD}(?: {_OF}{{0,1}}{_FR_WORD}){{0,3}}),? (?=[0-9]{{5}} )"
)
_FR_TAIL: Final = re.compile(
    rf"(?:,? (?:{_FR_UNIT} ?[0-9a-z]{{1,4}}|[0-9]{{1,2}}(?:er|e|eme) etage)){{0,3}}(?:,? (?:a )?(?:[0-9]{{5}}(?: {_FR_TOWN}| [a-z\-]{{2,20}})?|{_FR_TOWN}))?"
)


def _french(view: View) -> Iterator[tuple[int, int]]:
    for pattern in (_FR_ADDRESS, _UNNUMBERED):
        for match in pattern.finditer(view.lower):
            # A name that ends before a word in lower case may have taken a word too many; masking one word too many
            # does no harm.
            end = _capitals_end(view.text, match)
            tail = _FR_TAIL.match(view.lower, end)
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


_FR_WORDS: Final = (
    "rue avenue av boulevard blvd bd bld allee impasse chemin quai ruelle faubourg fbg sentier rond esplanade montee place pl square passage"
    " route cours villa cite voie promenade residence hameau lotissement lieu"
)

_FR_FAMILIES: Final = (
    Family(
        (Rule("address.fr", "ADDRESS", _french, FORM - 1),),
        words=_FR_WORDS,
        digits=1,
        narrow=(
            rf"(?i-u:(?:[0-9]|bis|ter|quater|[0-9] ?[a-d]),? (?:{_FR_STREET} [a-z0-9]|{_AMBIGUOUS} {_OF})|(?:{_FR_STREET}|{_AMBIGUOUS}) [ -/:-~]{{2,60}}[0-9]{{5}})"
        ),
    ),
)


_PL_STREET: Final = (
    r"(?:ul\.|ul(?= )|ulic[aeyi]|al\.|alej[aei]|alejach|pl\.|plac|placu|os\.|osiedl[eu]|rond[oaui]{1,2}"
    r"|skwer\w{0,2}|bulwar\w{0,2}|bulwarze|skwerze|rondzie|rynku|rynek|trakt\w{0,3}|szos[aey])"
)
_NUMBER: Final = (
    r"[0-9]{1,4}(?:[a-z]|[ ][a-d](?![a-z.]))?(?:[ ]?/[ ]?[0-9]{1,4}[a-z]?)?(?:,?[ ](?:m\.?|lok\.?|lokal|mieszkania"
    r"|mieszkanie|klatka|kl\.?|blok|bl\.|pietro|p\.|pok\.?|pokoj)[ ]?(?:[0-9]{1,4}[a-z]?|[a-z](?![a-z])|[ivx]{1,4}(?![a-z]))|,?[ ](?:pierwsze|drugie|trzecie|czwarte|piate|szoste|siodme|ostatnie|[0-9]{1,2}\.?|[ivx]{1,4}) pietro|,?[ ]parter){0,3}(?![0-9a-z])"
)
_PL_TOWN: Final = r"[A-Z][A-Za-z]{1,20}(?:[ \-][A-Z][A-Za-z]{1,20}){0,2}"
_STREET_ADDRESS: Final = re.compile(rf"(?<![a-z]){_PL_STREET}[ ]?(?:[a-z0-9][a-z0-9.'\-]{{0,25}}[ ]){{1,4}}?{_NUMBER}")
_PL_POSTCODE: Final = re.compile(rf"(?<![0-9A-Za-z\-])[0-9]{{2}}-[0-9]{{3}}[ ](?![A-Z]{{2,3}}(?![A-Za-z])){_PL_TOWN}")
"""`90-100 PSI` is a range with its unit."""
_PL_TAIL: Final = re.compile(
    rf"(?:,?[ ](?:w[ ])?[0-9]{{2}}-[0-9]{{3}}(?:[ ][A-Za-z]{{2,20}}"
    rf"(?:[ \-][A-Z][A-Za-z]{{1,20}}){{0,2}})?|(?:,|[ ]w)[ ]{_PL_TOWN})"
)


def _polish(view: View) -> Iterator[tuple[int, int]]:
    for match in _STREET_ADDRESS.finditer(view.lower):
        tail = _TOWN_NEXT.match(view.lower, match.end()) or _PL_TAIL.match(view.text, match.end())
        yield match.start(), tail.end() if tail else match.end()


_KNOWN_STREET: Final = any_of("streets_pl")
_KNOWN_TOWN: Final = any_of("towns_pl")
_ENDING: Final = r"(?:sk|ck|dzk|zk|n|w|j)(?:a|iej|ej)|(?:sk|ck|dzk)iego|(?:icz|owicz|ewicz)a|(?:czna|czej|cza|sta|stej|ta|tej|cha|chej|la|lej|ra|rej|ka|kiej|ga|giej)"
"""Of adjectives that agree with *ulica*, and of surnames that a street is of."""
_NAMED: Final = re.compile(
    rf"(?<![a-z0-9])(?:(?P<known>{_KNOWN_STREET})|(?P<name>(?:[a-z]{{2,20}}[ \-]){{0,2}}?[a-z]{{1,20}}(?:{_ENDING})))"
    rf"[ ](?:nr[ ])?(?P<number>{_NUMBER})"
)
_TOWN_NEXT: Final = re.compile(
    rf"(?:,?[ ](?:w[ ]|we[ ]|k\.?[ ])?[0-9]{{2}}-[0-9]{{3}}(?:[ ](?:{_KNOWN_TOWN}(?![a-z])|[a-z]{{2,20}}))?"
    rf"|(?:,[ ]?|[ ](?:w|we)[ ]|[ ]){_KNOWN_TOWN}(?![a-z]))"
)
_PL_LIVING: Final = re.compile(
    r"(?:(?<![a-z])(?:mieszka\w{0,5}|zamieszka\w{0,5}|zameldowan\w{0,3}|adres\w{0,5}|wysl\w{1,6}|wyslij\w{0,3}|dostaw\w{1,5}|dostarcz\w{0,4}"
    r"|przesylk\w{1,2}|paczk\w{1,2}|kurier\w{0,4}|dowie\w{1,4}|odbior\w{0,2}|odbierz\w{0,2}|przyjed\w{1,4}|podjed\w{1,4}|przyjd\w{1,4}|biuro"
    r"|dom|wynajm\w{1,6}|kupil\w{0,3}|taksowk\w{1,2}|taxi|spotka\w{0,5}|zawiez\w{0,3}|korespondencj\w{1,2}|ul|ulic\w)"
    r"[^0-9\n.;!?]{0,40})\Z"
)
_PLACED: Final = re.compile(r"(?<![a-z])(?:na|przy|pod|z|od|spod|do|kolo|obok)[ ](?:ulic[yae][ ])?\Z")
_NO_STREET: Final = words(
    "ustawa ustawy uchwala strona strony tabela wersja wersji liga ligi polska polskiej pozycja grupa klasa"
    " klasy sprawa sprawy sygnatura faktura umowa umowy norma lista nowa stara edycja seria czesc kolejka"
    " runda dyrektywa rezerwacja oferta zmiana zmiany wygrana maja marca lipca czerwca roku"
)


def _everyday(view: View) -> Iterator[tuple[int, int]]:
    for left, right in view.around_digits(before=64, after=48):
        yield from _named(view, left, right)


def _named(view: View, left: int, right: int) -> Iterator[tuple[int, int]]:
    for match in _NAMED.finditer(view.lower, left, right):
        town = _TOWN_NEXT.match(view.lower, match.end())
        end = town.end() if town else match.end()
        start = match.start()
        if match["name"] is not None:
            start = _first_capital(view.text, match)
        if _believed(view, match, start, town is not None):
            yield start, end


_CAPITALISED: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:Sw|sw|Gen|gen|Ks|ks|Plk|plk|Dr|dr|Abp|Bp|Marsz|Prof)\.[ ])?[A-Z][a-z]{2,20}(?:[ \-](?:[A-Z][a-z]{2,20}|[IVX]{1,4})){0,2}[ ](?=[0-9])"
)
_NUMBERED: Final = re.compile(_NUMBER)
_AT_HOME: Final = re.compile(
    r"(?<![a-z])(?:mieszka\w{0,5}|blok\w{0,3}|akademik\w{0,2}|kamienic\w{1,2}|klatk\w{1,2}|adres\w{0,3}|u (?:mnie|nas)|dom(?:u|em)?)[ :,]{1,2}(?:to |jest |na |przy |pod )?\Z"
)


def _any_name(view: View) -> Iterator[tuple[int, int]]:
    """A name outside the lists and without a typical ending, if a postcode follows it, or a flat and a preposition."""
    for match in _CAPITALISED.finditer(view.text):
        word = match[0].split(" ")[0].lower()
        number = _NUMBERED.match(view.lower, match.end())
        if (
            number is None
            or (match[0].count(" ") == 1 and word in _NO_STREET)
            or word in _TOWNS
            or re.search(r"/(?:19|20)[0-9]{2}", number[0])
        ):
            continue
        town = _TOWN_NEXT.match(view.lower, number.end())
        postcode = town is not None and re.search(r"[0-9]{2}-[0-9]{3}", town[0])
        flat = re.search(r"/|[ ](?:m|lok|kl|pok|piet)", number[0]) is not None
        placed = _PLACED.search(view.lower, max(0, match.start() - 16), match.start()) is not None
        home = _AT_HOME.search(view.lower, max(0, match.start() - 24), match.start()) is not None
        if postcode or (flat and (placed or home)) or (home and len(number[0]) <= 3):
            yield match.start(), town.end() if town else number.end()


_TOWNS: Final = names("towns_pl")
_PL_STREETS: Final = names("streets_pl")


def _first_capital(text: str, match: re.Match[str]) -> int:
    """Of the words in front only those with a capital belong to the name."""
    start = match.start("number") - 1
    while start > match.start("name"):
        before = max(text.rfind(" ", match.start("name"), start), match.start("name") - 1) + 1
        if start < match.start("number") - 1 and not text[before].isupper():
            return start + 1
        start = before - 1
    return match.start("name")


def _believed(view: View, match: re.Match[str], start: int, town: bool) -> bool:
    word = view.lower[start : match.start("number")].split(" ")[0]
    number = match["number"]
    capital = view.text[view.text.rfind(" ", 0, match.start("number") - 1) + 1].isupper()
    flat = re.search(r"/|[ ](?:m|lok|kl|pok|piet|parter|trzecie|drugie|pierwsze)", number) is not None
    known = match["known"] is not None or view.lower[start : match.start("number") - 1] in _PL_STREETS
    if word in _NO_STREET and not known:
        return False
    if re.search(r"/(?:19|20)[0-9]{2}(?![0-9])", number):
        return False
    if town and re.fullmatch(r"(?:1[5-9]|20)[0-9]{2}", number) is None:
        return capital or flat or known
    year = re.fullmatch(r"(?:1[5-9]|20)[0-9]{2}", number) is not None
    if year:
        return False
    living = _PL_LIVING.search(view.lower, max(0, start - 60), start) is not None
    placed = _PLACED.search(view.lower, max(0, start - 16), start) is not None
    if capital:
        # `Polna 5` may be a heading; a preposition in front, or the verb, makes it an address.
        return flat or living or (placed and word.endswith(("ej", "iego", "icza", "skie"))) or (placed and known)
    return living and (flat or placed or known)


_PL_WORDS: Final = "ul ulica ulicy ulice al aleja alei aleje alejach pl plac placu os osiedle osiedlu rondo ronda rondzie skwer skwerze bulwar bulwarze rynek rynku trakt trakcie szosa szosie szosy"


_PL_FAMILIES: Final = (
    Family((Rule("address.pl", "ADDRESS", _polish, CONTEXT - 3),), words=_PL_WORDS, digits=1),
    Family(
        (Rule("address.pl.postcode", "ADDRESS", every(_PL_POSTCODE), CONTEXT - 6),),
        digits=5,
        signs="00-000",
        narrow="[0-9]{2}-[0-9]{3}",
    ),
    Family(
        (Rule("address.pl.everyday", "ADDRESS", _everyday, CONTEXT - 6),),
        digits=1,
        narrow=r"[A-Za-z] (?i-u:nr )?[0-9]",
    ),
    Family(
        (Rule("address.pl.name", "ADDRESS", _any_name, CONTEXT - 7),),
        digits=1,
        narrow=r"[A-Z][A-Za-z]{1,20} [0-9]{1,4}[a-z]?(?:/[0-9]|,? [0-9]{2}-[0-9]{3}|,? (?i-u:m|lok|kl|pok|klatka|parter|pietro)[. ])|(?i-u:mieszka|blok|akademik|kamienic|klatk|adres|u mnie|u nas|dom)[a-z]{0,5}[ :,]{1,2}(?:to |jest |na |przy |pod )?[A-Z][A-Za-z. ]{2,60} [0-9]",
        apart=True,
    ),
)

FAMILIES: Final = (*_LATIN_FAMILIES, *_EN_FAMILIES, *_FR_FAMILIES, *_PL_FAMILIES)
