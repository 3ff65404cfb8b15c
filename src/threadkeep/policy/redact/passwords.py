"""Secrets that a word announces: `password=…`, "my PIN is …", a dense string after "token"."""

from __future__ import annotations

import re
from math import log2
from typing import TYPE_CHECKING, Final

from threadkeep.policy.redact.prescan import SPACE
from threadkeep.policy.redact.rule import CHECKED, CONTEXT, Family, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from threadkeep.policy.redact.view import View

_PASSWORD: Final = r"pass(?:word|wd|phrase|code)|passw|mat khau|haslo|hasla|haslem|密碼|密码|口令"
_WORDS: Final = (
    rf"{_PASSWORD}|pass|pwd|pw|pin(?: ?code)?|otp|cvv2?|cvc|cookie|credentials?|secret|token"
    r"|client[_\- ]?secret|webhook[_\- ]?secret|api[_\- ]?key|access[_\- ]?key(?:[_\- ]?id)?"
    r"|secret[_\- ]?(?:access[_\- ]?)?key|(?:private|signing|encryption|master|license)[_\- ]?key"
    r"|(?:auth|access|refresh|id|bot)[_\- ]?token|session[_\- ]?(?:id|token|key)"
    r"|mk|ma pin|ma otp|ma xac (?:nhan|thuc)|kod pin|kod sms|klucz api|驗證碼|验证码|金鑰|密钥|密鑰"
)
_VALUE: Final = r"[^\s\"'`,;<>\0\u3001\u3002\uff0c]"
_PAIR: Final = re.compile(
    rf"(?<![A-Za-z])(?P<word>(?i:{_WORDS}))[\"'`]?\s{{0,3}}+(?P<mark>=>|:=|[:=])\s{{0,3}}+"
    rf"(?P<value>\"[^\"\n\0]{{1,200}}\"|'[^'\n\0]{{1,200}}'|`[^`\n\0]{{1,200}}`|{_VALUE}{{1,200}}+)"
)
_SAID: Final = re.compile(
    rf"(?<![A-Za-z])(?i:{_WORDS})(?:(?i:\s{{1,2}}(?:is|was|to|la|to jest|jest|brzmi)\s{{1,2}})|\s?(?:是|為|为)\s?)"
    rf"[\"'`]?(?P<value>{_VALUE}{{3,128}}+)"
)
_NOT_COUNTED: Final = r"(?!(?i:limits?|counts?|size|length|budget|usage|window|lifetime|ttl|expiry|price|cost)[ :])"
_SAID_OF: Final = re.compile(
    rf"(?<![A-Za-z])(?i:{_PASSWORD}|pin|token)(?:[ ]{_NOT_COUNTED}[A-Za-z]{{1,10}}){{1,3}}?"
    rf"(?:[ ](?i:is|la|to|jest)[ ]|[ ]?:[ ]?)[\"'`]?(?P<value>{_VALUE}{{4,128}}+)"
)
# The beginnings of these two in lower case: found several times as fast, and seldom there.
_SAYS: Final = re.compile(rf"(?:{_WORDS})(?:\s{{1,2}}(?:is|was|to|la|jest|brzmi)\s|\s?(?:是|為|为))")
_SAYS_OF: Final = re.compile(rf"(?:{_PASSWORD}|pin|token)(?:[ ][a-z]{{1,10}}){{1,3}}?(?:[ ](?:is|la|to|jest)[ ]|[ ]?:)")
_STEMS: Final = (
    *(
        "pass",
        "pwd",
        "pw",
        "pin",
        "otp",
        "cvv",
        "cvc",
        "cookie",
        "credential",
        "secret",
        "token",
        "key",
        "session",
        "mk",
    ),
    *("ma ", "mat khau", "hasl", "kod ", "klucz", "密", "口令", "碼", "码", "金鑰"),
)
"""One of them is in every word above."""
_SHORT_CODE: Final = re.compile(
    r"(?<![A-Za-z])(?i:cvv2?|cvc|pin(?: ?code)?|otp)(?:[ ][A-Za-z]{1,6}){0,4}?[ :]{1,2}(?P<value>[0-9]{3,8})(?![0-9])"
)
_PHRASE: Final = re.compile(
    r"(?i:(?:pass|seed|recovery|backup)[ ]?phrase|mnemonic)[^\n:=]{0,12}[:=]\s{0,3}"
    r"(?P<value>[a-z]{2,12}(?:[ ][a-z]{2,12}){2,24}+)"
)
_DENSE: Final = re.compile(
    r"(?i:key|token|secret|credential|auth|password|mat khau|klucz|haslo|密|金鑰)[^\n0-9]{0,24}?"
    r"(?<![A-Za-z0-9+/_\-=.])(?P<value>[A-Za-z0-9+/_\-=.]{20,512}+)"
)
_HARMLESS: Final = re.compile(
    r"none|null|nil|undefined|true|false|required|optional|string|str|int|bool|text|yes|no|change(?:me)?|todo"
    r"|your|the|my|and|for|not",
    re.IGNORECASE,
)
_TYPE: Final = re.compile(r"none|null|nil|undefined|true|false|string|str|int|bool|text|number", re.IGNORECASE)
_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*+(?:\.[A-Za-z_][A-Za-z0-9_]*+)*+"
_CODE: Final = re.compile(rf"{_NAME}(?:\((?:[\"'`)]|{_NAME}[,).(\[])|\[(?:[\"'`]|{_NAME}\]))")
_ATTRIBUTE: Final = re.compile(r"[A-Za-z_]{2,40}(?:\.[A-Za-z_]{2,40}){1,5}")
"""A call or subscript, and an attribute."""
_IN_QUERY: Final = re.compile(r"[?&#][^\s]{0,64}\Z")
_REFERENCE: Final = re.compile(r"[$%{]|https?:|[~.]{0,2}/[A-Za-z0-9_.\-]+/")
_AMOUNT: Final = re.compile(r"[0-9]+[.,][0-9]+%?")
_UNWORDLY: Final = re.compile(r"[0-9]|[a-z][A-Z]|[^A-Za-z0-9\s'\-.\u3400-\u9fff]")
_HEX: Final = re.compile(r"[0-9a-fA-F\-]+")


def entropy(value: str) -> float:
    """Bits per character."""
    shares = [value.count(char) / len(value) for char in set(value)]
    return -sum(share * log2(share) for share in shares)


def _pairs(view: View) -> Iterator[tuple[int, int]]:
    if ":" not in view.text and "=" not in view.text:
        return
    for match in _PAIR.finditer(view.text):
        value = match["value"].strip("\"'`").rstrip(".)]}?")
        if _IN_QUERY.search(view.text, max(0, match.start() - 512), match.start()):
            value = value.split("&")[0]
        start = match.start("value") + (match["value"][0] in "\"'`")
        if len(value) >= 3 and not _REFERENCE.match(value) and _meant(match, view.text, start + len(value)):
            yield start, start + len(value)


def _meant(match: re.Match[str], text: str, end: int) -> bool:
    """After a colon in prose a plain word may just go on talking: `the pass: absolutely worth it`."""
    value = match["value"]
    if _HARMLESS.fullmatch(value) or _TYPE.fullmatch(value.strip("\"'`")):
        return False
    if _is_code(match, text):
        return False
    if "=" in match["mark"] or value[0] in "\"'`" or _UNWORDLY.search(value):
        return True
    return re.fullmatch(_PASSWORD, match["word"], re.IGNORECASE) is not None and text[end : end + 1] in (
        "",
        "\n",
        ",",
        ".",
        ";",
    )


def _is_code(match: re.Match[str], text: str) -> bool:
    """Code that fetches the secret. `DB_PASSWORD=tame.tiger` is a line of an environment file, and no code."""
    start = match.start("value")
    if _CODE.match(text, start):
        return True
    assigned = "=" in match["mark"] and not (match["word"].isupper() and match.end("mark") == start)
    return assigned and _ATTRIBUTE.fullmatch(match["value"].rstrip(")]}")) is not None


def _said(view: View) -> Iterator[tuple[int, int]]:
    """In prose only a value that no sentence would hold: `my password is required` stays."""
    windows = list(view.around(_STEMS, before=28, after=64))
    signs = ((_SAID, _SAYS), (_SAID_OF, _SAYS_OF))
    for pattern in [pattern for pattern, sign in signs if any(sign.search(view.lower, *window) for window in windows)]:
        for match in pattern.finditer(view.text):
            value = match["value"].rstrip(".)]}?:*")
            if len(value) >= 3 and _UNWORDLY.search(value) and not _AMOUNT.fullmatch(value):
                yield match.start("value"), match.start("value") + len(value)


def _codes(view: View) -> Iterator[tuple[int, int]]:
    if view.runs and any(word in view.lower for word in ("pin", "otp", "cvv", "cvc")):
        yield from (match.span("value") for match in _SHORT_CODE.finditer(view.text))
    if "phrase" in view.lower or "mnemonic" in view.lower:
        yield from (match.span("value") for match in _PHRASE.finditer(view.text))


def _dense(view: View) -> Iterator[tuple[int, int]]:
    if not (view.runs and view.stretch(20)):
        return
    for match in _DENSE.finditer(view.text):
        value = match["value"]
        mixed = re.search(r"[0-9]", value) and re.search(r"[A-Za-z]", value)
        if mixed and entropy(value) >= (3.0 if _HEX.fullmatch(value) else 3.6):
            yield match.span("value")


_RULES: Final = (
    Rule("secret.pair", "SECRET", _pairs, CHECKED),
    Rule("secret.said", "SECRET", _said, CONTEXT),
    Rule("secret.code", "SECRET", _codes, CONTEXT),
    Rule("secret.dense", "SECRET", _dense, CONTEXT),
)
_CUES: Final = (
    "pass password passwd passphrase passcode passw pwd pw phrase mnemonic seedphrase pin pincode otp cvv cvc"
    " cookie credential credentials secret"
    " token key apikey accesskey secretkey privatekey clientsecret authtoken accesstoken refreshtoken idtoken sessionid"
    " sessiontoken sessionkey session auth khau mk xac haslo hasla haslem kod klucz"
)
_BEGINNING: Final = (
    rf"(?i:{_WORDS})(?:[\"'`]?{SPACE}{{0,3}}[:=]|{SPACE}{{1,2}}(?i:is|was|to|la|jest|brzmi){SPACE}|{SPACE}?[是為为])"
    r"|(?i:phrase|mnemonic)[^\n:=]{0,12}[:=]"
    rf"|(?i:{_PASSWORD}|pin|token)(?:[ ][A-Za-z]{{1,10}}){{1,3}}(?:[ ](?i:is|la|to|jest)[ ]|[ ]?:)"
)
"""Of a pair, or of one of the ways of saying it."""
_SIGN: Final = f"[0-9]|{_BEGINNING}"
_NARROW: Final = (
    r"(?i:cvv|cvc|pin|otp)(?: ?(?i:code)|2)?(?:[ ][A-Za-z]{1,6}){0,4}[ :]{1,2}[0-9]{3}|[A-Za-z0-9+/_\-=.]{20}"
    f"|{_BEGINNING}"
)
"""The same, but that a digit must be part of a short code, or beside it a string that may be dense."""

FAMILIES: Final = (
    Family(_RULES, words=_CUES, sign=_SIGN, narrow=_NARROW),
    Family(_RULES, han=True, strings=("密", "口令", "驗證碼", "验证码", "金鑰"), sign=_SIGN, narrow=_NARROW),
)
