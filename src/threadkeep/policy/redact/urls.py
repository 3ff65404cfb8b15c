"""Sensitive URLs: only the part that grants access is masked, so the host and path stay readable."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from threadkeep.policy.redact.rule import CERTAIN, CHECKED, Family, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from threadkeep.policy.redact.view import View

_URL: Final = re.compile(
    r"(?i:[a-z][a-z0-9+.\-]{1,20})://[^\s<>\"'`\x00\u3000-\u303f\uff00-\uffef\u3400-\u9fff]{1,4096}+"
)
_USERINFO: Final = re.compile(r"://([^/?#\s]{1,256})@")
_PARAMETER: Final = re.compile(r"[?&;#]([A-Za-z0-9_.\-\[\]%]{1,64}+)=([^&;#\s]{1,4096}+)")
_SENSITIVE: Final = re.compile(
    r"(?i)(?:[a-z0-9]{1,24}[_.\-\[]){0,4}(?:access_?token|id_?token|refresh_?token|auth_?token|token|auth|api_?key|apikey|key|secret|client_?secret|password|passwd|pwd|pass"
    r"|sig|signature|sign|hmac|credential|credentials|security-token|session|session_?id|sid|jsessionid|phpsessid|code|otp|pin|state|nonce|ticket|invite|reset|magic|jwt"
    r"|assertion|saml(?:request|response)|policy|key-pair-id|sv|se|sp|email|e-?mail|phone|tel|ssn|user(?:name)?|login)\]?"
)
_OFTEN_HARMLESS: Final = re.compile(r"(?i:state|code|user)")
_WORD: Final = re.compile(r"(?:[a-z]{1,15}|[A-Z][a-z]{0,14}|[A-Z]{1,8})(?:[_\-][a-z]{1,12})?[.,)\]}!?]{0,3}")
_SECRET_PATH: Final = re.compile(
    r"/(?i:reset|reset-password|password-reset|verify|confirm|activate|invite|invitation|magic|magic-link|unsubscribe|token|services/[A-Z0-9]+/[A-Z0-9]+|webhooks?/[0-9]+|bot[0-9]+:?)"
    r"/([A-Za-z0-9_\-.~=]{16,512}+)"
)


def _userinfo(view: View) -> Iterator[tuple[int, int]]:
    for url in _URL.finditer(view.text):
        userinfo = _USERINFO.search(view.text, url.start(), url.end())
        if userinfo is not None and userinfo[1] != "git":
            yield userinfo.span(1)


def _granting(view: View) -> Iterator[tuple[int, int]]:
    for url in _URL.finditer(view.text):
        for parameter in _PARAMETER.finditer(view.text, url.start(), url.end()):
            if _SENSITIVE.fullmatch(parameter[1]) and not _plain_word(parameter):
                yield parameter.start(2), _value_end(view.text, parameter.end(2))
        for path in _SECRET_PATH.finditer(view.text, url.start(), url.end()):
            yield path.span(1)


def _plain_word(parameter: re.Match[str]) -> bool:
    """`?state=open` and `?code=python` filter a list; what grants access has digits, marks or length."""
    return _OFTEN_HARMLESS.fullmatch(parameter[1]) is not None and _WORD.fullmatch(parameter[2]) is not None


def _value_end(text: str, end: int) -> int:
    """A full stop or bracket that closes the sentence is not part of the value."""
    while text[end - 1] in ".,)]}!?":
        end -= 1
    return end


FAMILIES: Final = (
    Family(
        (Rule("url.userinfo", "URL", _userinfo, CERTAIN), Rule("url.access", "URL", _granting, CHECKED + 5)),
        signs="://",
        strings=("://",),
    ),
)
