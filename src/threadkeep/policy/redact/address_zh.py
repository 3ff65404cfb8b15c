# ruff: noqa: E501  (tables of words and forms)
"""Chinese addresses, traditional and simplified: from the province, city or road down to the number and the room."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from threadkeep.policy.redact.rule import CONTEXT, Family, Rule
from threadkeep.policy.redact.view import View

_REGIONS: Final = (
    "臺灣|台灣|台湾|北京|天津|上海|重慶|重庆|河北|山西|遼寧|辽宁|吉林|黑龍江|黑龙江|江蘇|江苏|浙江|安徽|福建|江西|山東|山东|河南|湖北|湖南"
    "|廣東|广东|海南|四川|貴州|贵州|雲南|云南|陝西|陕西|甘肅|甘肃|青海|內蒙古|内蒙古|廣西|广西|西藏|寧夏|宁夏|新疆|香港|澳門|澳门"
    "|臺北|台北|新北|桃園|臺中|台中|臺南|台南|高雄|基隆|新竹|苗栗|彰化|南投|雲林|嘉義|屏東|宜蘭|花蓮|臺東|台東|澎湖|金門|連江"
)
_HAN: Final = r"\u3400-\u9fff"
_COUNT: Final = r"(?:[ ]?(?:[0-9]{1,6}|[一二三四五六七八九十百零〇]{1,5})[ ]?)"
_DOOR: Final = (
    rf"(?:{_COUNT}段)?(?:{_COUNT}巷)?(?:{_COUNT}弄)?(?:{_COUNT}衖)?{_COUNT}(?:[之\-]{_COUNT})?[號号](?!公車|公车|[線线]|出口|球|電池|电池|選手|选手|月台|機|机)(?:之{_COUNT})?"
    rf"(?:[ ,，]?(?:[A-Za-z0-9{_HAN}]{{0,12}}?{_COUNT}?[A-Za-z]?[ ]?(?:棟|栋|座|幢|單元|单元|大樓|樓|楼|層|层|室|房|戶|户|號房|号房)|[0-9]{{1,3}}[Ff](?![A-Za-z])|[Bb][0-9](?![0-9A-Za-z])|頂樓(?:加蓋)?|顶楼)"
    rf"(?:[之\-]{_COUNT})?(?![{_HAN}]{{0,12}}[號号])){{0,5}}"
)
# A road, then the number on it.
_ROAD: Final = re.compile(
    rf"(?:大道|大街|大路|胡同|(?<![國国省縣县])[道]|[路街巷弄里村莊庄鄉乡鎮镇區区])(?:[東西南北中东][路段]?)?{_DOOR}"
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
_HAMLET: Final = re.compile(
    rf"[\u3400-\u9fff]{{1,3}}[里村]{_COUNT}[鄰邻][\u3400-\u9fff]{{0,8}}?{_COUNT}(?:之{_COUNT})?[號号](?:之{_COUNT})?"
)


def _addresses(view: View) -> Iterator[tuple[int, int]]:
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
    for pattern in (_HAMLET, _BOX):
        yield from (match.span() for match in pattern.finditer(view.text))


def _living(view: View) -> Iterator[tuple[int, int]]:
    return (_with_postcode(view.text, *match.span("address")) for match in _LIVING.finditer(view.text))


def _has_house_number(view: View) -> bool:
    return "號" in view.text or "号" in view.text


def _road(view: View) -> bool:
    return "路" in view.text or "街" in view.text or "巷" in view.text


FAMILIES: Final = (
    Family((Rule("address.zh.hamlet", "ADDRESS", _hamlets, CONTEXT - 5),), han=True, strings=("鄰", "邻", "信箱")),
    Family(
        (Rule("address.zh.block", "ADDRESS", _blocks, CONTEXT - 8),),
        han=True,
        strings=("棟", "栋", "幢", "座", "號樓", "号楼", "單元", "单元"),
    ),
    Family((Rule("address.zh", "ADDRESS", _addresses, CONTEXT - 5),), han=True, gate=_has_house_number),
    Family(
        (Rule("address.zh.living", "ADDRESS", _living, CONTEXT - 9),),
        han=True,
        strings=("住", "居", "址", "寄到", "送到", "老家"),
    ),
    Family((Rule("address.zh.road", "ADDRESS", _regions, CONTEXT - 8),), han=True, gate=_road),
)
