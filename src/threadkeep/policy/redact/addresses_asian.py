# ruff: noqa: E501  (tables of words and forms)
"""Vietnamese and Chinese addresses.

Vietnamese: house number and lane, street, ward, district, city. Folded, so diacritics do not matter. Formal ones have a
street word or a ward (`số 12 đường Lê Lợi, phường Bến Nghé`). Everyday ones (`giao tới 123 Lê Lợi, Q1`) have a house
number before a name, and one thing more: the name is a street's, a ward or town follows, or a verb of delivering or
living stands in front.

Chinese, traditional and simplified: from the province, city or road down to the number and the room.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from threadkeep.policy.redact.gazetteer import any_of, names, words
from threadkeep.policy.redact.rule import CONTEXT, Family, Rule, View

_AREA: Final = (
    r"(?:[Pp]huong|[Pp]\.|[Xx]a|[Tt]hi tran|[Qq]uan|[Qq]\.|[Hh]uyen|[Hh]\.|[Tt]hi xa|[Tt][Pp]\.?"
    r"|[Tt]hanh pho|[Tt]inh|[Aa]p|[Tt]hon|[Kk]hu(?: do thi| pho)?)"
)
_CAPITAL: Final = rf"(?!{_AREA}[ ])[A-Z0-9][A-Za-z0-9]{{0,8}}"
_NAME: Final = rf"{_CAPITAL}(?:[ ]{_CAPITAL}){{0,4}}"
_HOUSE: Final = r"(?:[Ss]o(?: nha)?[ ]|[Nn]ha so[ ])?[0-9]{1,4}[A-Za-z]?(?:/[0-9]{1,4}[A-Za-z]?){0,4}(?![0-9A-Za-z/])"
_LANE: Final = (
    r"(?:[Nn]go|[Nn]gach|[Hh]em|[Kk]iet|[Kk]hu|[Kk]hom|[Aa]p|[Tt]hon|[Xx]om|[Tt]o|[Kk]hu pho|[Kk][Pp]"
    r"|[Ll]o|[Cc]an(?: ho)?|[Tt]ang|[Pp]hong"
    r"|[Tt]oa(?: nha)?|[Cc]hung cu)"
)
_STREET: Final = r"(?:[Dd]uong|[Pp]ho|[Dd]ai lo|[Qq]uoc lo|[Tt]inh lo|[Dd]\.|[Ql]L)"
_CITIES: Final = (
    r"(?:(?:TP\.?[ ]?)?HCM|[Ss]ai ?[Gg]on|Ho Chi Minh|Ha Noi|Hanoi|Da Nang|Hai Phong|Can Tho|Hue"
    r"|Nha Trang|Da Lat|Vung Tau|Bien Hoa"
    r"|Viet ?[Nn]am|HN|SG|DN)"
)
_PART: Final = (
    rf"(?:(?:[ ]?[,\-][ ]?|[ ])(?:{_AREA}[ ]?{_NAME}|{_LANE}[ ][0-9A-Za-z/]{{1,8}}|{_STREET}[ ]{_NAME}|{_CITIES}"
    rf"|{_NAME}(?=[ ]?(?:[,.;\n]|$))))"
)
_FULL: Final = re.compile(
    rf"(?<![0-9A-Za-z/.,])(?:{_LANE}[ ][0-9A-Z][0-9A-Za-z/]{{0,7}}[, ]{{1,2}}){{0,3}}{_HOUSE}[, ]{{1,2}}"
    rf"(?:(?:{_LANE}[ ][0-9A-Za-z/]{{1,8}}[, ]{{1,2}}){{0,3}}"
    rf"(?:{_STREET}[ ][0-9A-Za-z][A-Za-z0-9]{{0,8}}(?:[ ]{_CAPITAL}){{0,4}}(?![A-Za-z0-9])"
    rf"|{_NAME}(?=(?:[ ]?[,\-][ ]?|[ ]){_AREA}(?![a-z])))|{_LANE}[ ][0-9/]{{1,8}}[, ]{{1,2}}{_NAME}(?=[ ]?,)){_PART}{{0,5}}"
    rf"(?:[ ][0-9]{{5,6}}(?![0-9]))?"
)
_RURAL: Final = re.compile(rf"(?<![A-Za-z])(?:[Tt]hon|[Aa]p|[Xx]om|[Tt]o|[Kk]hu pho)[ ]{_NAME}{_PART}{{2,5}}")
_LOWER: Final = re.compile(
    r"(?<![0-9a-z/.,])(?:so(?: nha)?[ ]|nha so[ ])?[0-9]{1,4}[a-z]?(?:/[0-9]{1,4}[a-z]?){0,4}[ ](?:"
    r"(?:ngo|ngach|hem)[ ][0-9/]{1,8}[ ,]{1,2}){0,2}"
    r"(?:duong|pho)[ ](?:[a-z0-9]{1,8}[ ]?){1,4}(?:,[ ]?(?:phuong|p\.|xa|quan|q\.|huyen|tp\.?"
    r"|thanh pho|tinh)[ ]?(?:[a-z0-9]{1,8}[ ]?){1,4}){1,4}"
)

# What each of the first two cannot do without, and what is found faster.
_NUMBERED: Final = re.compile(
    rf"[0-9]{{1,4}}[A-Za-z]?(?:/[0-9]{{1,4}}[A-Za-z]?){{0,4}}[, ]{{1,2}}"
    rf"(?:(?:{_LANE}[ ][0-9A-Za-z/]{{1,8}}[, ]{{1,2}}){{0,3}}(?:{_STREET}[ ]|{_NAME}(?=(?:[ ]?[,\-][ ]?|[ ]){_AREA}(?![a-z])))"
    rf"|{_LANE}[ ][0-9/]{{1,8}}[, ]{{1,2}}{_NAME}(?=[ ]?,))"
)
_VI_HAMLET: Final = re.compile(
    rf"[A-Z0-9](?:(?<=\b[Tt]o[ ].)|(?<=\b[Aa]p[ ].)|(?<=[Tt]hon[ ].)|(?<=[Xx]om[ ].)|(?<=hu pho[ ].))"
    rf"[A-Za-z0-9 ]{{0,48}}{_PART}{{2}}"
)


def _vietnamese(view: View) -> Iterator[tuple[int, int]]:
    """Capitals show where a name ends; the pattern that does without them is for texts that have none."""
    text = view.text
    written: list[tuple[int, int]] = []
    if any(_NUMBERED.match(text, start) for start in view.runs):
        written += [match.span() for match in _FULL.finditer(text)]
    if _VI_HAMLET.search(text):
        written += [match.span() for match in _RURAL.finditer(text)]
    yield from written
    if not written and ("duong " in view.lower or "pho " in view.lower):
        for match in _LOWER.finditer(view.lower):
            yield match.start(), match.start() + len(match[0].rstrip())


_CUES: Final = "duong pho ngo ngach hem kiet phuong quan xa huyen tp q p h thon ap xom d dai khu lo thanh"

_NARROW: Final = (
    rf"[0-9][A-Za-z]?[, ]{{1,2}}(?:{_LANE}[ ]|{_STREET}[ ]|[A-Z0-9][A-Za-z0-9 ]*(?:[,\-][ ]?)?{_AREA})"
    r"|(?:[Tt]o|[Aa]p|[Tt]hon|[Xx]om|hu pho)[ ][A-Z0-9]|[0-9][A-Za-z]?[ ](?i-u:ngo|ngach|hem|duong|pho)[ ]"
)
"""What each of the three begins with."""

# Everyday forms, in lower case. What they hold is bounded, and each is tried only at a number.
_VI_DOOR: Final = r"[0-9]{1,4}(?: bis|[a-z])?(?:[/\-][0-9]{1,4}[a-z]?){0,4}(?![0-9a-z/])"
_KNOWN_STREET: Final = any_of("streets_vi")
_KNOWN_TOWN: Final = any_of("towns_vi")
_ANY_STREET: Final = r"(?:duong|pho|dai lo|quoc lo|tinh lo|d\.|ql|tl|hem|ngo|ngach|kiet)"
_SYLLABLES: Final = r"[a-z]{1,7}(?: [a-z]{1,7}){1,3}"
_NUMBERED_AREA: Final = (
    r"(?:(?:q|p|f|kp|khu pho|quan|phuong|to|ap|thon|khu|block|blk|lau|tang|toa)[. ]{0,2}[0-9]{1,3}[a-z]?(?![0-9a-z]))"
)
_AREA_WORD: Final = (
    r"(?:phuong|p\.|quan|q\.|xa|x\.|huyen|h\.|thi tran|tt\.?|thi xa|tx\.?|thanh pho|tp\.?|tinh|thon|ap|xom|khu do thi|kdt"
    r"|chung cu|cc|khu pho|khu dan cu|kdc)"
)
_NOT_A_NAME: Final = (
    r"(?:o|va|cho|cua|voi|con|cai|nguoi|gio|ngay|thang|lan|ve|nhe|nha|a|ah|ad|shop|em|anh|chi|minh|ban|thi|la|co|khong|ko"
    r"|duoc|truoc|sau|luc|khi|neu|roi|giup|gium|de|di|den|toi|tai|tu|qua|mua|ban|them|nua|hay|hoac|de|chieu|sang|trua|mai|nay"
    r"|do|kia|se|da|dang|can|muon|gap|lay|giao|gui|ship)(?![a-z])"
)
_AREA_NAME: Final = rf"(?!{_NOT_A_NAME})[a-z]{{1,7}}(?: (?!{_NOT_A_NAME}|{_AREA_WORD} )[a-z]{{1,7}}){{0,2}}(?![a-z])"
_NEXT: Final = re.compile(
    rf"(?: ?[,\-] ?| )(?:(?<=khu pho [0-9] )(?:{_AREA_NAME})(?=,)|{_NUMBERED_AREA}|{_KNOWN_TOWN}(?![a-z])|{_AREA_WORD} ?(?:{_KNOWN_TOWN}(?![a-z])|{_AREA_NAME})"
    rf"|{_ANY_STREET} (?:{_KNOWN_STREET}(?![a-z0-9])|{_VI_DOOR}|{_AREA_NAME}))"
)
_HOUSE_AND_STREET: Final = re.compile(
    rf"{_VI_DOOR}(?:, ?| )(?:(?:ngo|ngach|hem|kiet|duong so) {_VI_DOOR}(?:, ?| )){{0,3}}"
    rf"(?P<street>(?P<known>(?:{_ANY_STREET} )?{_KNOWN_STREET})(?![a-z0-9])|(?P<area>{_NUMBERED_AREA})|(?:{_ANY_STREET} )?(?P<name>{_SYLLABLES})|duong {_VI_DOOR})"
)
_LED: Final = re.compile(
    r"(?<![a-z])(?:den|toi|o|tai|ve|qua|dia chi|dc|d/c|nha|tro|van phong|cong ty|cty|so nha|so|dia diem|ghe|ship|giao|gui|tro)"
    r"(?: (?:hang|den|toi|ve|o|tai|cho|em|anh|chi|minh|ban|nha|giup|gium|ngay|la|so|qua|don)){0,4} ?[:\-]? ?\Z"
)
_LANES_BEFORE: Final = re.compile(
    r"(?:(?<![a-z])(?:so(?: nha)?|nha(?: so)?|hem|ngo|ngach|kiet|lo|can(?: ho)?|phong|p\.|tang|lau|block|ap|thon|to|doi|toa(?: nha)?)"
    r"(?:[ .]{0,2}(?:[a-z]?[0-9]{1,5}[a-z]?(?:[.\-/][0-9]{1,4})?|(?<=toa nha)(?: [a-z]{1,8}){1,3}))?,? ?){1,3}\Z"
)
_YEARLY: Final = re.compile(r"(?<![a-z])(?:nam|tu|den|the ky|khoa|lop|top|hon|khoang|tang|giam|gia)[ ]\Z")
_DATED: Final = re.compile(r"(?<![a-z])(?:ngay|thang|nam|mung|mong|quoc lo|tinh lo|ql|tl|km|lop|trieu)[ ]\Z")
_UNIT: Final = re.compile(
    r"(?<![a-z])(?:can(?: ho)?|phong|p\.|tang|lau|toa(?: nha)?|block|blk|thap|lo|nha so|so nha) ?[a-z]{0,2}[0-9]{1,4}(?:[.\-/][0-9]{1,4})?[a-z]?"
    r"(?![0-9a-z])"
)
_BUILDING: Final = re.compile(
    r"(?: ?[,\-] ?| )(?:(?P<room>(?:can(?: ho)?|tang|lau|phong) [a-z]?[0-9]{1,4}[a-z]?)(?![a-z0-9])|(?:chung cu|cc|toa(?: nha)?|block|blk|thap|khu do thi|kdt|khu dan cu|kdc|cu xa|ky tuc xa|ktx|nha tro|khu tro|can ho"
    r"|tang|lau) (?-i:[A-Z0-9])[a-z0-9]{0,12}(?: (?-i:[A-Z0-9])[A-Za-z0-9.]{0,12}){0,4}|(?:vinhomes|vinhome|masteri|sunrise|landmark|times city|royal city"
    r"|ecopark|saigon pearl|the manor|estella|diamond island|gateway|sunwah|keangnam|mipec|goldmark|eurowindow|hh[0-9]|ct[0-9]|park [0-9])"
    r"[a-z0-9]{0,6}(?: (?-i:[A-Z0-9])[A-Za-z0-9.]{0,12}){0,4})",
    re.IGNORECASE,
)
_AT: Final = re.compile(
    r"(?<![a-z])(?:o|tai|nha|so|dia chi|dc|truoc|gan|ve|qua|den|toi)(?: (?:so|nha|cho|em|minh|la))?[ :]{1,2}\Z"
)
_NO_STREET: Final = words(
    "trieu dong nguoi suat phan ly banh ca com pho bun tra chai hop goi cai chiec ve phong ngay thang gio phut lan kg ty nghin ngan cho con bo cap"
)
_LANE_NAME: Final = re.compile(
    r"(?:(?:doi|to|xom) [0-9]{1,3},? )?(?:so(?: nha)? )[0-9]{1,4}[a-z]?(?:/[0-9]{1,4}[a-z]?){0,3},? (?:ngo|ngach|hem|kiet|thon|ap|xom|to|khu|doi|lo|cu xa)(?: [A-Z0-9][A-Za-z0-9]{0,8}){1,4}(?: cu xa(?: [A-Z][A-Za-z0-9]{0,8}){1,3})?"
    r"|(?:ap|thon|to|xom|doi) [0-9]{1,3}, so nha [0-9]{1,4}[a-z]?(?=,)"
)
"""A lane or hamlet with a name, behind the number of a house that is called one."""
_FIRST: Final = words(
    "nguyen le tran pham hoang huynh phan vu vo dang bui do ho ngo duong ly dinh truong dao doan luong ton"
    " cao ha kim lac au an bach cach cong dien hai hung khanh nam thanh tan tay quang ung nguyen hong xuan mac"
    " dong song luy phu binh chu lam ta to trinh trung tu van vinh yen hang lang thai tam cau bau"
)
_MANY_SYLLABLES: Final = 2
_GLUED: Final = re.compile(r"(?:[a-gi-jl-z0-9/.,:$\-]|[a-z0-9][hk])\Z")
"""What makes a number part of something longer; `k82/14` and `h5` are doors of lanes (*kiệt*, *hẻm*)."""


def _everyday(view: View) -> Iterator[tuple[int, int]]:
    text, lower = view.text, view.lower
    position = 0
    for start in view.runs:
        if start < position or _GLUED.search(lower, max(0, start - 3), start):
            continue
        house = _HOUSE_AND_STREET.match(lower, start)
        if house is None:
            continue
        end = _street_end(text, lower, house)
        if end is None:
            continue
        after, parts = _areas(lower, end)
        led = _LED.search(lower, max(0, start - 40), start) is not None
        if not _believed(view, house, end, parts, led):
            continue
        start -= lower[start - 1 : start] in ("k", "h")
        before = _LANES_BEFORE.search(lower, max(0, start - 48), start)
        position = after
        yield (before.start() if before else start), after


def _street_end(text: str, lower: str, house: re.Match[str]) -> int | None:
    """A known street ends where its name does, any other one where its capitals end; without capitals it is left to
    the ward or town behind it."""
    if house["name"] is None:
        return house.end()
    start = house.start("name")
    capitals = _CAPITALS.match(text, start)
    if capitals is not None:
        return capitals.end() if " " in capitals[0] else None
    found = _NEXT_OF_LOWER.search(lower, start, min(len(text), house.end() + 1 + 16))
    if found is None or text[start : found.start()].split(" ")[0] not in _FIRST:
        return None
    return found.start() if _MANY_SYLLABLES <= len(text[start : found.start()].split()) <= 4 else None


def _areas(lower: str, end: int) -> tuple[int, int]:
    parts = 0
    for _ in range(6):
        area = _NEXT.match(lower, end)
        if area is None:
            break
        end, parts = area.end(), parts + 1
    return end, parts


def _believed(view: View, house: re.Match[str], end: int, parts: int, led: bool) -> bool:
    number = house[0].split(" ")[0].rstrip(",")
    if _DATED.search(view.lower, max(0, house.start() - 9), house.start()):
        return False
    year = len(number) == 4 and number[:2] in ("14", "15", "16", "17", "18", "19", "20")
    counted = _YEARLY.search(view.lower, max(0, house.start() - 8), house.start()) is not None
    if "lich" in house[0].split(" "):
        return False
    if parts:
        return not (counted and year)
    if counted or year:
        return False
    capitals = view.text[house.start("street")].isupper()
    if house["area"] is not None:
        return False
    if house["known"] is not None:
        return capitals or led or "/" in number or house["known"].count(" ") >= 2
    if capitals and " ng" in house[0][: house.start("street") - house.start()]:  # in a lane with a number
        return True
    first = (house["name"] or "").split(" ")[0]
    placed = _AT.search(view.lower, max(0, house.start() - 24), house.start()) is not None
    named = house["name"] is None or (capitals and (first in _FIRST or (placed and first not in _NO_STREET)))
    return led and named


def _lanes(view: View) -> Iterator[tuple[int, int]]:
    for match in _LANE_NAME.finditer(_lower_words(view.text)):
        yield match.start(), _areas(view.lower, match.end())[0]


def _lower_words(text: str) -> str:
    """The text with the first letter of the words of an address in lower case; names keep their capitals."""
    return _LANE_WORD.sub(lambda word: word[0].lower(), text)


_LANE_WORD: Final = re.compile(r"(?<![A-Za-z])(?:So|Nha|Ngo|Ngach|Hem|Kiet|Thon|Ap|Xom|To|Khu|Doi)(?= )")


def _units(view: View) -> Iterator[tuple[int, int]]:
    """A flat, room or floor, and the building it is in."""
    for unit in _UNIT.finditer(view.lower):
        end, parts = unit.end(), 0
        for _ in range(4):
            building = _BUILDING.match(view.text, end)
            if building is None:
                break
            end, parts = building.end(), parts + (building["room"] is None)
        if parts:
            yield unit.start(), _areas(view.lower, end)[0]


_CAPITALS: Final = re.compile(r"[A-Z][a-z]{0,7}(?: [A-Z][a-z]{0,7}){0,3}(?![a-z])")
_NEXT_OF_LOWER: Final = re.compile(rf"(?: ?, ?| )(?:{_NUMBERED_AREA}|{_AREA_WORD} |{_KNOWN_TOWN}(?![a-z]))")
_EVERYDAY_SIGN: Final = (
    rf"(?i-u:[0-9][a-z]?(?:, ?| )(?:{_ANY_STREET} )?(?:{_KNOWN_STREET}|[a-z]{{1,7}} [a-z]{{1,7}}(?: [a-z]{{1,7}}){{0,2}}"
    rf"(?: ?[,\-] ?| )(?:[qpf][. ]{{0,2}}[0-9]|{_AREA_WORD}|{_KNOWN_TOWN})|{_ANY_STREET} [0-9]))"
    rf"|(?i-u:giao|ship|gui|chuyen|den|toi|o|tai|ve|qua|cho|chi|dc|nha|la|so|:|don|quan)[ :\-]{{1,3}}[A-Za-z]?[0-9]{{1,4}}[A-Za-z]?(?:/[0-9A-Za-z]{{1,5}}){{0,4}}[, ]"
)
_EVERYDAY_WORDS: Final = " ".join(
    sorted(
        _FIRST
        | words(
            "duong pho hem ngach kiet giao ship gui den toi tai ve nha chi dc q p f quan phuong tp ngu pasteur"
            " calmette yersin"
        )
        | {name.split(" ")[0] for name in names("streets_vi")}
    )
)
_UNIT_SIGN: Final = r"(?i-u:can|ho|phong|tang|lau|toa|nha|block|blk|thap|so|lo)[ .]{0,2}[A-Za-z]{0,2}[0-9]"

_VI_FAMILIES: Final = (
    Family((Rule("address.vi", "ADDRESS", _vietnamese, CONTEXT - 4),), words=_CUES, digits=1, narrow=_NARROW),
    Family(
        (Rule("address.vi.everyday", "ADDRESS", _everyday, CONTEXT - 5),),
        words=_EVERYDAY_WORDS,
        digits=1,
        narrow=_EVERYDAY_SIGN,
    ),
    Family(
        (
            Rule("address.vi.unit", "ADDRESS", _units, CONTEXT - 5),
            Rule("address.vi.lane", "ADDRESS", _lanes, CONTEXT - 5),
        ),
        words="can phong tang lau toa block blk thap lo nha so p",
        digits=1,
        narrow=_UNIT_SIGN,
    ),
)


_REGIONS: Final = (
    "臺灣|台灣|台湾|北京|天津|上海|重慶|重庆|河北|山西|遼寧|辽宁|吉林|黑龍江|黑龙江|江蘇|江苏|浙江|安徽|福建|江西|山東|山东|河南|湖北|湖南"
    "|廣東|广东|海南|四川|貴州|贵州|雲南|云南|陝西|陕西|甘肅|甘肃|青海|內蒙古|内蒙古|廣西|广西|西藏|寧夏|宁夏|新疆|香港|澳門|澳门"
    "|臺北|台北|新北|桃園|臺中|台中|臺南|台南|高雄|基隆|新竹|苗栗|彰化|南投|雲林|嘉義|屏東|宜蘭|花蓮|臺東|台東|澎湖|金門|連江"
)
_HAN: Final = r"\u3400-\u9fff"
_COUNT: Final = r"(?:[ ]?(?:[0-9]{1,6}|[一二三四五六七八九十百零〇]{1,5})[ ]?)"
_ZH_DOOR: Final = (
    rf"(?:{_COUNT}段)?(?:{_COUNT}巷)?(?:{_COUNT}弄)?(?:{_COUNT}衖)?{_COUNT}(?:[之\-]{_COUNT})?[號号](?!公車|公车|[線线]|出口|球|電池|电池|選手|选手|月台|機|机)(?:之{_COUNT})?"
    rf"(?:[ ,，]?(?:[A-Za-z0-9{_HAN}]{{0,12}}?{_COUNT}?[A-Za-z]?[ ]?(?:棟|栋|座|幢|單元|单元|大樓|樓|楼|層|层|室|房|戶|户|號房|号房)|[0-9]{{1,3}}[Ff](?![A-Za-z])|[Bb][0-9](?![0-9A-Za-z])|頂樓(?:加蓋)?|顶楼)"
    rf"(?:[之\-]{_COUNT})?(?![{_HAN}]{{0,12}}[號号])){{0,5}}"
)
# A road, then the number on it.
_ROAD: Final = re.compile(
    rf"(?:大道|大街|大路|胡同|(?<![國国省縣县])[道]|[路街巷弄里村莊庄鄉乡鎮镇區区])(?:[東西南北中东][路段]?)?{_ZH_DOOR}"
)
_BLOCK: Final = re.compile(
    rf"[{_HAN}]{{2,10}}?(?:小區|小区|花園|花园|公寓|家園|家园|社區|社区|新村|苑|大廈|大厦|廣場|广场|名邸|雅居|嘉園|嘉园|國宅|国宅|宿舍|邨|城)[ ]?"
    rf"(?:[A-Za-z]|{_COUNT})(?:棟|栋|幢|座|號樓|号楼|單元|单元)(?:{_COUNT}(?:單元|单元|門|门))?(?:{_COUNT}(?:樓|楼|層|层)(?:之{_COUNT})?)?"
    rf"(?:[ ]?[A-Za-z]?{_COUNT}[A-Za-z]?(?:室|房|號|号|戶|户)?)?"
)
_NAMED_REGION: Final = re.compile(
    rf"(?:{_REGIONS})[{_HAN}]{{0,12}}?[省市縣县區区鄉鎮镇][{_HAN}]{{1,10}}?(?:大道|大街|大路|胡同|[路街巷])(?:{_COUNT}段)?"
    rf"(?![{_HAN}]{{0,4}}[路街])"
)
_LIVING: Final = re.compile(
    rf"(?:居住[在於于]|住[在於于]|[現现]居(?:住[在於于])?|[住地]址(?:是|為|为)?[：:]?|家住|寄到|送到|老家[在是])\s?"
    rf"(?P<address>(?:[0-9]{{3,6}}[ ]?)?"
    rf"(?:{_REGIONS})[{_HAN}0-9\-]{{2,36}}(?:[A-Za-z]座)?)"
)
_STARTS: Final = re.compile(rf"(?:{_REGIONS})")
_REACH: Final = 36
_PREFIX: Final = 7
_BOX: Final = re.compile(
    r"(?:[\u3400-\u9fff]{2,4})?郵政(?:第)?[ ]?[0-9]{1,4}(?:[-之][0-9]{1,4})?[號号]?信箱|(?:邮政)?信箱[ ]?[0-9]{1,5}[號号]"
)
_ZH_HAMLET: Final = re.compile(
    rf"[\u3400-\u9fff]{{1,3}}[里村]{_COUNT}[鄰邻][\u3400-\u9fff]{{0,8}}?{_COUNT}(?:之{_COUNT})?[號号](?:之{_COUNT})?"
)


def _chinese(view: View) -> Iterator[tuple[int, int]]:
    for match in _ROAD.finditer(view.text):
        yield _with_postcode(view.text, _start(view.text, match.start()), match.end())


def _with_postcode(text: str, start: int, end: int) -> tuple[int, int]:
    before = _POSTCODE_BEFORE.search(text, max(0, start - 8), start)
    after = _AFTERWARDS.match(text, end)
    return before.start() if before else start, after.end() if after else end


_POSTCODE_BEFORE: Final = re.compile(r"(?<![0-9])[0-9]{3,6}[ ]?\Z")
_AFTERWARDS: Final = re.compile(
    rf"(?:[A-Za-z]座|[A-Za-z0-9{_HAN}]{{1,12}}(?:小區|小区|大廈|大厦|公寓|社區|社区))?(?:[ ,，]{{0,2}}[0-9]{{5,6}}"
    rf"(?![0-9]))?"
)


def _start(text: str, road: int) -> int:
    """The first region named shortly before, or else the last break: a comma, a verb of being somewhere."""
    floor = max(0, road - _REACH)
    lead = text[floor:road]
    clause = len(lead) - len(re.split(r"[，。；、！？,;!?\s：:（(]", lead)[-1])
    region = _STARTS.search(lead, clause)
    if region is not None:
        # `華江里環河南路` holds the name of a province by chance: what stands before it in the clause is part of it.
        before = lead[clause : region.start()]
        cut = max((before.rfind(verb) for verb in "在於于住址是為为到寄至從从往去國给給宅我"), default=-1)
        return floor + (clause + cut + 1 if region.start() - clause - cut <= _PREFIX else region.start())
    name = lead[max(clause, len(lead) - 12) :]
    cut = max((name.rfind(verb) for verb in "在於于住址是為为到寄送至從从往去"), default=-1)
    return road - len(name) + cut + 1


def _blocks(view: View) -> Iterator[tuple[int, int]]:
    """A housing estate, the block and the flat in it, with no road."""
    for match in _BLOCK.finditer(view.text):
        start = _start(view.text, match.start() + 2)
        yield max(start, match.start()) if start > match.start() else min(start, match.start()), match.end()


def _regions(view: View) -> Iterator[tuple[int, int]]:
    return (_with_postcode(view.text, *match.span()) for match in _NAMED_REGION.finditer(view.text))


def _hamlets(view: View) -> Iterator[tuple[int, int]]:
    """A village, its neighbourhood and the number of the house, and post boxes."""
    for pattern in (_ZH_HAMLET, _BOX):
        yield from (match.span() for match in pattern.finditer(view.text))


def _living(view: View) -> Iterator[tuple[int, int]]:
    return (_with_postcode(view.text, *match.span("address")) for match in _LIVING.finditer(view.text))


_ZH_FAMILIES: Final = (
    Family((Rule("address.zh.hamlet", "ADDRESS", _hamlets, CONTEXT - 5),), han=True, strings=("鄰", "邻", "信箱")),
    Family(
        (Rule("address.zh.block", "ADDRESS", _blocks, CONTEXT - 8),),
        han=True,
        strings=("棟", "栋", "幢", "座", "號樓", "号楼", "單元", "单元"),
    ),
    Family(
        (Rule("address.zh", "ADDRESS", _chinese, CONTEXT - 5),),
        han=True,
    ),
    Family(
        (Rule("address.zh.living", "ADDRESS", _living, CONTEXT - 9),),
        han=True,
        strings=("住", "居", "址", "寄到", "送到", "老家"),
    ),
    Family(
        (Rule("address.zh.road", "ADDRESS", _regions, CONTEXT - 8),),
        han=True,
    ),
)

FAMILIES: Final = (*_VI_FAMILIES, *_ZH_FAMILIES)
