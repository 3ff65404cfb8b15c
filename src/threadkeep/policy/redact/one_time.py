"""One-time codes: short numbers that a name announces, "verification code", "mã xác nhận", "kod SMS", 驗證碼."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from threadkeep.policy.redact.rule import CONTEXT, Family, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from threadkeep.policy.redact.view import View

_NAME: Final = (
    r"(?:verification|authentication|login|log-in|sign-in|one[- ]time|2fa|two-factor|sms) (?:pass)?code"
    r"|ma xac (?:nhan|thuc|minh)|kod(?:u|em)? (?:sms|weryfikacyjn\w{1,3}|jednorazow\w{1,3}|autoryzacyjn\w{1,3})"
    r"|驗證碼|验证码|校驗碼|校验码|動態密碼|动态密码|一次性密碼|一次性密码"
)
_WHOSE: Final = r"(?: (?:cua (?:toi|minh|em|anh|chi|ban)|for [a-z]{1,12}|do [a-z]{1,12}))?"
_IS: Final = r"(?: (?:is|was|la|to|to jest|jest|brzmi)|是|為|为)?"
_CODE: Final = r"(?:[a-z]-)?[0-9]{3}[ \-][0-9]{3}|(?:[a-z]-)?[0-9]{4,8}"
_END: Final = r"(?![0-9a-z]|[ .,:/\-][0-9]|[ ]?(?:ms|s|min|sek|giay|phut|zl|usd|vnd|元)(?![a-z]))"
_NAMED: Final = re.compile(rf"(?<![a-z])(?:{_NAME}){_WHOSE}{_IS}[ :]{{0,3}}(?P<code>{_CODE}){_END}")
_BEFORE: Final = re.compile(
    rf"(?<![0-9a-z.,:/\-])(?P<code>{_CODE})(?: (?:is|la|to)|是|為|为) (?:[a-z]{{1,12}} ){{0,3}}(?:{_NAME})(?![a-z])"
)


def _codes(view: View) -> Iterator[tuple[int, int]]:
    for pattern in (_NAMED, _BEFORE):
        yield from (match.span("code") for match in pattern.finditer(view.lower))


_RULES: Final = (Rule("secret.once", "SECRET", _codes, CONTEXT),)

FAMILIES: Final = (
    Family(_RULES, words="code passcode xac kod kodu kodem", digits=4, strings=("code", "ma xac", "kod")),
    Family(_RULES, digits=4, han=True, strings=("驗證碼", "验证码", "校驗碼", "校验码", "密碼", "密码")),
)
