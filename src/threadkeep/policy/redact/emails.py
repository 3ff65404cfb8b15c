# ruff: noqa: E501  (tables of words and forms)
"""E-mail addresses: found from the @ outwards, so that Chinese text on either side is never swallowed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from threadkeep.policy.redact.rule import CERTAIN, CHECKED, SPACE, Family, Rule, every

if TYPE_CHECKING:
    from collections.abc import Iterator

    from threadkeep.policy.redact.rule import View

# Letters of scripts that put spaces between words; in the others an address has no visible end.
_LETTER: Final = r"A-Za-z0-9\u00a1-\u1fff"
_CJK: Final = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_CJK_TLD: Final = "中国|中國|公司|网络|網路|台湾|台灣|香港|集团|网址|在线|한국|みんな"
_LOCAL_BACKWARDS: Final = re.compile(rf"[{_LETTER}._%+\-&']{{1,64}}")
_CJK_LOCAL: Final = re.compile(rf"[{_CJK}]{{1,24}}\Z")
_CJK_BEFORE: Final = re.compile(r"(?s:.*)(?:是|为|為|箱|址|邮件|郵件|电邮|電郵|到|给|給|至|叫|找|联系|聯繫|聯絡|联络)")
"""What Chinese prose has right in front of an address."""
_DOMAIN: Final = re.compile(
    rf"(?:[{_LETTER}_\-]{{1,63}}\.){{1,8}}(?:xn--[A-Za-z0-9\-]{{2,59}}|[A-Za-z\u00a1-\u1fff]{{2,24}})"
    rf"|(?:[{_LETTER}_\-{_CJK}]{{1,63}}\.){{1,4}}(?:{_CJK_TLD}|[A-Za-z]{{2,24}})"
)
_LETTER_BY_LETTER: Final = re.compile(
    r"(?<![A-Za-z0-9])[A-Za-z0-9](?: [A-Za-z0-9._\-]){1,40} @(?: [A-Za-z0-9\-]){1,40} \."
    r"(?: [A-Za-z.]){2,12}(?![A-Za-z0-9])"
)
_SPLIT: Final = re.compile(
    r"(?i:e-?mail(?: address)?(?: is| at| of|:|,)) ((?!(?:and|or|the|is|at|me|us|via"
    r"|to)[ ])[a-z0-9._\-]{2,30})(?= [a-z0-9._%+\-]{1,64}@)"
)
_USERINFO: Final = re.compile(r"://[^\s/?#]{0,120}\Z")
_ENCODED_AT: Final = re.compile(r"%40|&#0{0,4}64;|&#[xX]0{0,4}40;|&commat;|\\u0040|\\x40")
_CLONED: Final = re.compile(r":[A-Za-z0-9_~./\-]")
_QUOTED: Final = re.compile(r'"[^"\n]{1,62}"$')

_AT_WORD: Final = r"at|malpa|malpka|a cong|a moc|a vong|arobase|arroba"
_HAN_AT: Final = r"小老鼠|艾特|圈a"
_AT: Final = rf"(?:[\[({{<]\s?(?:{_AT_WORD}|@|{_HAN_AT})\s?[\])}}>]|,?\s(?:{_AT_WORD}),?\s|\s?(?:{_HAN_AT})\s?|(?<=[\u3400-\u9fff0-9a-z])\sat\s|_at_|\s?@\s?)"
_DOT_WORD: Final = r"dot|kropka|cham|point|punto|punkt"
_DOT: Final = rf"(?:[\[({{<]\s?(?:{_DOT_WORD}|\.|點|点)\s?[\])}}>]|\s(?:{_DOT_WORD})\s|\s?[點点]\s?|_dot_)"
_JOIN: Final = (
    rf"(?:\.|\s?{_DOT}\s?|\s(?:underscore|dash|hyphen|minus|gach duoi|gach ngang|gach noi|podkreslnik|podkreslenie|podloga|myslnik|kreska|tiret)\s"
    r"|\s?(?:底線|底线|下劃線|下划线|減號|减号|橫線|横线)\s?)"
)
_HOST: Final = r"(?:gmail|googlemail|yahoo|hotmail|outlook|icloud|proton|protonmail|onet|interia|wp|o2|pchome|qq|163|foxmail|naver)"
_SPELLED: Final = re.compile(
    rf"(?<![A-Za-z0-9._%+\-])"
    rf"(?P<local>(?:[A-Za-z0-9] ){{2,24}}[A-Za-z0-9](?=[ ])|[A-Za-z0-9_%+\-]{{1,40}}(?:{_JOIN}[A-Za-z0-9_%+\-]{{1,40}}){{0,4}})"
    rf"\s?{_AT}\s?(?P<domain>[A-Za-z0-9\-]{{1,40}}(?:{_JOIN}[A-Za-z0-9\-]{{2,30}}){{1,4}}|{_HOST})(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_COMMA: Final = re.compile(
    r"(?<![A-Za-z0-9._%+\-])[A-Za-z0-9._%+\-]{1,64}@[A-Za-z0-9\-]{2,40},(?:com|net|org|edu|gov|vn|pl|tw|cn)(?![A-Za-z0-9])",
    re.IGNORECASE,
)
"""The key beside the dot."""
_SPACED: Final = re.compile(
    r"(?<![A-Za-z0-9._%+\-])[A-Za-z0-9._%+\-]{1,64} ?@ ?(?:[A-Za-z0-9\-]{1,63} ?\. ?){1,4}"
    r"(?:com|net|org|edu|gov|vn|pl|tw|cn|io|eu)"
    r"(?![A-Za-z0-9])",
    re.IGNORECASE,
)


def _plain(view: View) -> Iterator[tuple[int, int]]:
    text = view.text
    at = text.find("@")
    while at >= 0:
        start = _local_start(text, at)
        domain = _DOMAIN.match(text, at + 1)
        if start < at and domain is not None and not _of_a_host(text, start, at, domain.end()):
            yield start, domain.end()
            at = domain.end() - 1
        at = text.find("@", at + 1)


def _of_a_host(text: str, start: int, at: int, end: int) -> bool:
    """`scheme://user@host`, and `git@host:path`."""
    cloned = text[start:at] == "git" and _CLONED.match(text, end) is not None
    return cloned or _USERINFO.search(text, max(0, start - 128), start) is not None


def _encoded(view: View) -> Iterator[tuple[int, int]]:
    """`ann%40example.org` in a URL, `&#64;` in HTML, `\\u0040` in JSON."""
    for at in _ENCODED_AT.finditer(view.text):
        start, domain = _local_start(view.text, at.start()), _DOMAIN.match(view.text, at.end())
        if start < at.start() and domain is not None:
            yield start, domain.end()


def _local_start(text: str, at: int) -> int:
    before = text[max(0, at - 64) : at]
    quoted = _QUOTED.search(before) if before.endswith('"') else None
    if quoted is not None:
        return at - len(quoted[0])
    backwards = _LOCAL_BACKWARDS.match(before[::-1])
    if backwards is None:
        return _cjk_start(text, at)
    return at - len(backwards[0].rstrip(".'&-%"))


def _cjk_start(text: str, at: int) -> int:
    """Where a name in Chinese, Japanese or Korean right before the sign begins: behind the words that announce it."""
    name = _CJK_LOCAL.search(text, max(0, at - 24), at)
    if name is None:
        return at
    announced = _CJK_BEFORE.match(name[0])
    return name.start() + (announced.end() if announced else 0)


def _spelled(view: View) -> Iterator[tuple[int, int]]:
    for match in _SPELLED.finditer(view.text):
        # A name may have an underscore of its own before a plain sign.
        bracketed = any(mark in match[0] for mark in ("[({<" if "@" in match[0] else "[({<_"))
        if (
            bracketed
            or (re.search(_DOT, match["domain"], re.IGNORECASE) and _TOP_LEVEL.search(match["domain"]))
            or _FOREIGN_AT.search(match[0])
            or " AT " in match[0]
        ):
            yield match.span()


_TOP_LEVEL: Final = re.compile(
    r"[^A-Za-z](?:com|net|org|edu|gov|info|biz|dev|app|xyz|online|shop|(?!(?:or|on|if|of|up|we|he|go)\Z)[a-z]{2})\Z"
    r"(?<!point as)(?<!point at)(?<!point by)(?<!point do)(?<!point in)(?<!point is)(?<!point it)(?<!point my)"
    r"(?<!point no)(?<!point so)(?<!point to)(?<!point us)",
    re.IGNORECASE,
)
"""Without one of these "at some point that" is no address, nor is "at which point it" with one."""
_FOREIGN_AT: Final = re.compile(rf"\s(?:malpa|malpka|a cong|a moc|a vong|arobase)\s|{_HAN_AT}", re.IGNORECASE)
"""Words for the sign that mean nothing else; "at gmail" alone may be an employer."""


def _spaced(view: View) -> Iterator[tuple[int, int]]:
    yield from (match.span() for match in _SPACED.finditer(view.text) if " " in match[0])
    yield from (match.span() for match in _LETTER_BY_LETTER.finditer(view.text))
    yield from (match.span() for match in _COMMA.finditer(view.text))


_SPELLED_AT: Final = rf"(?i:[\[({{<]{SPACE}?(?:{_AT_WORD}|@|{_HAN_AT})|{SPACE}(?:{_AT_WORD}),?{SPACE}|{_HAN_AT}|_at_|@)"
_BRACKETS: Final = ("at]", "at)", "at}", "_at_", "[@", "(@")
_ENCODED_RULES: Final = (Rule("email.encoded", "EMAIL", _encoded, CERTAIN),)
_SPELLED_RULES: Final = (Rule("email.spelled", "EMAIL", _spelled, CHECKED),)

FAMILIES: Final = (
    Family(
        (
            Rule("email.plain", "EMAIL", _plain, CERTAIN),
            Rule("email.spaced", "EMAIL", _spaced, CHECKED),
            Rule("email.split", "EMAIL", every(_SPLIT), CHECKED),
        ),
        signs="@",
        sign="@",
    ),
    Family(_ENCODED_RULES, digits=2, strings=("%40", "64;", "40;", "\\u0040", "\\x40")),
    Family(_ENCODED_RULES, words="commat"),
    Family(_SPELLED_RULES, signs=r"[\])}_@]", strings=_BRACKETS),
    Family(
        _SPELLED_RULES,
        signs=r"\.",
        strings=(" at ",),
        sign="[A-Za-z0-9] AT [A-Za-z0-9]",
        narrow="[A-Za-z0-9] AT [A-Za-z0-9]",
    ),
    Family(
        _SPELLED_RULES, words="dot kropka malpa malpka cong moc vong arobase arroba point punto", narrow=_SPELLED_AT
    ),
    Family(
        _SPELLED_RULES, signs="@", strings=("dot", "kropka", "cham", "point", "punto", "punkt", "點", "点"), sign="@"
    ),
    Family(_SPELLED_RULES, han=True, strings=("小老鼠", "艾特", "圈a")),
)
