# ruff: noqa: E501  (tables of words and forms)
"""Where a machine or a person is: IP and hardware addresses, and coordinates precise enough to find a house."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import AddressValueError, IPv6Address, IPv6Network
from typing import Final

from threadkeep.policy.redact.rule import CERTAIN, CHECKED, Family, Rule, View

_OCTET: Final = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_V4: Final = re.compile(
    rf"(?<![0-9A-Za-z.])(?<![0-9][-,]){_OCTET}(?:\.{_OCTET}){{3}}(?:/(?:3[0-2]|[12]?[0-9])(?![0-9]))?(?!\.?[0-9])"
)
_VERSION: Final = re.compile(
    r"(?:version|release|firmware|build|ver|phien ban|wersj\w|版本|韌體|韧体|固件|v)[\s:.=]{0,3}$|(?<=[a-z0-9_\]])[=~<>!]=[ ]?$"
)
_NOBODYS: Final = re.compile(r"127\.|10\.|192\.168\.|172\.(?:1[6-9]|2[0-9]|3[01])\.|169\.254\.|0\.0\.0\.0(?![0-9])")
"""The machine itself, any at all, and the private networks that every household numbers alike (RFC 1918, RFC 3927)."""
_PRIVATE_V6: Final = IPv6Network("fc00::/7")
_V6: Final = re.compile(
    r"(?<![0-9A-Za-z:.])(?:[0-9A-Fa-f]{0,4}:){2,7}(?:(?:[0-9]{1,3}\.){3}[0-9]{1,3}|[0-9A-Fa-f]{0,4})"
    r"(?:%[0-9A-Za-z]{1,15})?(?:/[0-9]{1,3})?(?![0-9A-Za-z:])"
)
_MAC: Final = re.compile(
    r"(?<![0-9A-Za-z:.\-])(?:[0-9A-Fa-f]{2}([:\-])(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}|(?:[0-9A-Fa-f]{4}\.){2}[0-9A-Fa-f]{4})"
    r"(?![0-9A-Za-z]|[:\-.][0-9A-Fa-f])"
)


def _v4(view: View) -> Iterator[tuple[int, int]]:
    for match in _V4.finditer(view.text):
        version = _VERSION.search(view.lower[max(0, match.start() - 16) : match.start()])
        if version is None and _NOBODYS.match(match[0]) is None:
            yield match.span()


def _v6(view: View) -> Iterator[tuple[int, int]]:
    for match in _V6.finditer(view.text):
        address = match[0].split("/")[0].split("%")[0]
        # Three hex digits at the least: `::`, `a::b` and C++ scopes are not worth the false alarms.
        if sum(char not in ":." for char in address) >= 3 and _is_v6(address):
            yield match.span()


def _is_v6(address: str) -> bool:
    """Of some machine in the world: every machine is `::1` to itself, and private networks share their numbers."""
    try:
        parsed = IPv6Address(address)
    except AddressValueError:
        return False
    return not (parsed.is_loopback or parsed.is_unspecified or parsed.is_link_local or parsed in _PRIVATE_V6)


def _mac(view: View) -> Iterator[tuple[int, int]]:
    return (match.span() for match in _MAC.finditer(view.text) if len(set(match[0]) - set(":-.")) > 1)


_MACS: Final = (Rule("mac", "MAC", _mac, CERTAIN),)
_MAC_PART: Final = r"[:\-][0-9A-Fa-f]{2}[:\-]|\.[0-9A-Fa-f]{4}\."
_MAC_WHOLE: Final = (
    r"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}|(?:[0-9A-Fa-f]{2}-){5}[0-9A-Fa-f]{2}|(?:[0-9A-Fa-f]{4}\.){2}[0-9A-Fa-f]{4}"
)

_NETWORK_FAMILIES: Final = (
    Family(
        (Rule("ip.v4", "IP", _v4, CERTAIN),),
        digits=4,
        signs=r"0\.0{1,3}\.0{1,3}\.0",
        narrow=r"(?:[0-9]{1,3}\.){3}[0-9]",
    ),
    Family((Rule("ip.v6", "IP", _v6, CHECKED),), signs=":0{0,4}:", sign=":[0-9A-Fa-f]{0,4}:"),
    Family(_MACS, signs="(?::0{0,2}){5}|(?:-0{0,2}){5}", sign=_MAC_PART, narrow=_MAC_WHOLE),
    Family(_MACS, digits=1, signs=r"\.0{0,4}\.", sign=_MAC_PART, narrow=_MAC_WHOLE),
    # Three words of letters alone pass for one only where the text is full of such marks.
    Family(_MACS, signs=r"\A(?:[^:]*:){5}|\A(?:[^-]*-){5}", sign=_MAC_PART, narrow=_MAC_WHOLE),
)


_DECIMAL: Final = re.compile(
    r"(?<![0-9A-Za-z.])[-+]?(?:90|[0-8]?[0-9])\.[0-9]{4,15}\s?[°o]?\s?[NS]?\s?[,;/ ]\s?[-+]?(?:180"
    r"|1[0-7][0-9]|[0-9]{1,2})\.[0-9]{4,15}\s?[°o]?\s?[EW]?(?![0-9A-Za-z.])"
)
_CUE: Final = re.compile(
    r"(?<![a-z])(?:lat|lon|lng|gps|coord|my location|location:|i am at|i'm at|pinned|toa do|vi tri"
    r"|wspolrzedn|lokalizacj)"
    r"|座標|坐标|定位|經緯|经纬|我的位置"
)
_MINUTES: Final = re.compile(
    r"(?<![0-9])[0-9]{1,2}\s?°\s?[0-9]{1,2}\s?['′]\s?[0-9]{1,2}(?:\.[0-9]{1,6})?\s?(?:\"|″|'')\s?[NS][,;\s]{0,3}"
    r"[0-9]{1,3}\s?°\s?[0-9]{1,2}\s?['′]\s?[0-9]{1,2}(?:\.[0-9]{1,6})?\s?(?:\"|″|'')\s?[EW]"
)


def _decimal(view: View) -> Iterator[tuple[int, int]]:
    """Five decimals are a metre and speak for themselves; four need a word in front."""
    for match in _DECIMAL.finditer(view.text):
        exact = all(len(part) >= 5 for part in re.findall(r"\.([0-9]+)", match[0]))
        if exact or _CUE.search(view.lower, max(0, match.start() - 40), match.start()):
            yield match.span()


def _minutes(view: View) -> Iterator[tuple[int, int]]:
    """Degrees and minutes, behind a word that says a location is shared: encyclopaedias are full of them."""
    for match in _MINUTES.finditer(view.text):
        if _CUE.search(view.lower, max(0, match.start() - 40), match.start()):
            yield match.span()


_PLACE_FAMILIES: Final = (
    Family(
        (Rule("coordinates.decimal", "COORDINATES", _decimal, CHECKED + 8),),
        digits=10,
        narrow=r"[0-9]\.[0-9]{4}",
    ),
    Family((Rule("coordinates.minutes", "COORDINATES", _minutes, CHECKED + 8),), digits=6, narrow="°"),
)

FAMILIES: Final = (*_NETWORK_FAMILIES, *_PLACE_FAMILIES)
