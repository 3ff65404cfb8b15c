"""Secrets that a word announces: `password=…`, "my PIN is …", a dense string after "token"."""

from __future__ import annotations

import re
from math import log2
from typing import TYPE_CHECKING, Final

from threadkeep.policy.redact.rule import CHECKED, CONTEXT, Family, Rule, contains

if TYPE_CHECKING:
    from collections.abc import Iterator

    from threadkeep.policy.redact.view import View

_WORDS: Final = (
    r"pass(?:word|wd|phrase|code)?|pwd|passw|pin(?: ?code)?|otp|cvv2?|cvc|cookie|credentials?|secret|token"
    r"|client[_\- ]?secret|webhook[_\- ]?secret|api[_\- ]?key|access[_\- ]?key(?:[_\- ]?id)?"
    r"|secret[_\- ]?(?:access[_\- ]?)?key|(?:private|signing|encryption|master|license)[_\- ]?key"
    r"|(?:auth|access|refresh|id|bot)[_\- ]?token|session[_\- ]?(?:id|token|key)"
    r"|mat khau|mk|ma pin|ma otp|ma xac (?:nhan|thuc)|haslo|hasla|haslem|kod pin|kod sms|klucz api"
    r"|密碼|密码|口令|驗證碼|验证码|金鑰|密钥|密鑰"
)
_VALUE: Final = r"[^\s\"'`,;<>\0\u3001\u3002\uff0c]"
_PAIR: Final = re.compile(
    rf"(?<![A-Za-z])(?i:{_WORDS})[\"'`]?\s{{0,3}}+(?:=>|:=|[:=])\s{{0,3}}+"
    rf"(?P<value>\"[^\"\n\0]{{1,200}}\"|'[^'\n\0]{{1,200}}'|`[^`\n\0]{{1,200}}`|{_VALUE}{{1,200}}+)"
)
_SAID: Final = re.compile(
    rf"(?<![A-Za-z])(?i:{_WORDS})(?:[ ][A-Za-z]{{1,10}}){{0,3}}?(?i:\s{{1,2}}(?:is|was|to|la|to jest"
    rf"|jest|brzmi)\s{{1,2}}|\s?(?:是|為|为|:)\s?)"
    rf"[\"'`]?(?P<value>{_VALUE}{{3,128}}+)"
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
_UNWORDLY: Final = re.compile(r"[0-9]|[a-z][A-Z]|[^A-Za-z0-9\s'\-.\u3400-\u9fff]")
_HEX: Final = re.compile(r"[0-9a-fA-F\-]+")


def entropy(value: str) -> float:
    """Bits per character."""
    shares = [value.count(char) / len(value) for char in set(value)]
    return -sum(share * log2(share) for share in shares)


def _pairs(view: View) -> Iterator[tuple[int, int]]:
    for match in _PAIR.finditer(view.text):
        value = match["value"].strip("\"'`").rstrip(".)]}!?")
        if view.text[match.start() - 1 : match.start()] in ("?", "&", "#"):
            value = value.split("&")[0]  # a query string whose URL has no scheme
        if len(value) >= 3 and not _HARMLESS.fullmatch(value) and not value.startswith(("$", "{", "%(", "http")):
            start = match.start("value") + (match["value"][0] in "\"'`")
            yield start, start + len(value)


def _said(view: View) -> Iterator[tuple[int, int]]:
    """In prose only a value that no sentence would hold: `my password is required` stays."""
    for match in _SAID.finditer(view.text):
        value = match["value"].rstrip(".)]}!?")
        if len(value) >= 3 and _UNWORDLY.search(value):
            yield match.start("value"), match.start("value") + len(value)


def _dense(view: View) -> Iterator[tuple[int, int]]:
    for match in _DENSE.finditer(view.text):
        value = match["value"]
        mixed = re.search(r"[0-9]", value) and re.search(r"[A-Za-z]", value)
        if mixed and entropy(value) >= (3.0 if _HEX.fullmatch(value) else 3.6):
            yield match.span("value")


_CUES: Final = (
    *("pass", "pwd", "secret", "key", "token", "credential", "otp", "cvv", "cvc", "cookie", "session", "auth"),
    *(" pin", "mat khau", "mk", "ma xac", "hasl", "kod ", "klucz", "密", "口令", "驗證碼", "验证码", "金鑰"),
)

FAMILIES: Final = (
    Family(
        contains(*_CUES),
        (
            Rule("secret.pair", "SECRET", _pairs, CHECKED),
            Rule("secret.said", "SECRET", _said, CONTEXT),
            Rule("secret.dense", "SECRET", _dense, CONTEXT),
        ),
    ),
)
