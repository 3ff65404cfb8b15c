# ruff: noqa: E501  (tables of words and forms)
"""One-time codes and the codes of doors: short numbers that a name announces.

"verification code", "code from the SMS", "mã xác nhận", "kod z SMS-a", "kod do bramy", 驗證碼.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from threadkeep.policy.redact.rule import CONTEXT, Family, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from threadkeep.policy.redact.view import View

_NAME: Final = (
    r"(?:verification|verif|authentication|authenticator|auth|login|log-in|sign-in|one[- ]time|2fa|mfa|two[- ]factor|sms|security|access|confirmation"
    r"|activation|unlock|reset|door|gate|alarm|entry|lockbox|keypad|building|garage|safe|otp|pin) (?:pass)?code|(?<![a-z])(?:2fa|otp|passcode|mfa)"
    r"|code (?:from|in|on) (?:the |my |your )?(?:sms|text|app|authenticator|e-?mail|phone|message)"
    r"|code (?:i|they|we|you|he|she)(?: just)? (?:got|received|sent|texted|gave)|code for (?:the |my )?(?:door|gate|alarm|safe|lock|building|garage)"
    r"|ma (?:xac (?:nhan|thuc|minh)|otp|kich hoat|bao mat|dang nhap|mo khoa|mo cua|cua|cong|khoa|pin|sms|tin nhan|giao dich)|ma (?:vua |moi )?gui ve"
    r"|code (?:ve|gui|dang nhap)|kod\w{0,2} (?:z |ze |od )?(?:sms\w{0,3}(?:-\w{1,2})?|esemes\w{1,2}|wiadomosci|aplikacji|maila|e-maila|banku|weryfikacyjn\w{1,3}"
    r"|jednorazow\w{1,3}|autoryzacyjn\w{1,3}|aktywacyjn\w{1,3}|potwierdz\w{2,8}|dostepu|bezpieczenstwa|logowania|blik\w{0,2})|(?<![a-z])blik"
    r"|kod\w{0,2} do (?:bramy|drzwi|domofonu|sejfu|furtki|klatki|alarmu|logowania|wejscia|garazu|budynku)"
    r"|jednorazowe haslo|haslo jednorazowe|末三碼|末三码|後三碼|后三码|背面三碼|提款卡密碼|提款密碼|取款密码|驗證碼|验证码|校驗碼|校验码|認證碼|认证码|動態密碼|动态密码|動態碼|动态码|一次性密碼|一次性密码|授權碼|授权码|確認碼|确认码|簡訊碼|短信码|安全碼|安全码"
    r"|解鎖碼|解锁码|登入碼|登录码|取件碼|取件码|門禁碼|门禁码"
)
_OF: Final = r"(?: (?:cua|do|z|for|of|w|dla) [a-z][a-z'\-]{0,13}| (?:toi|em|anh|chi|minh))?"
_IS: Final = r"(?:(?: [a-z][a-z'\-]{0,13}){0,4}?(?: (?:is|was|la|ra|to|to jest|jest|brzmi)| ?[:=]| -)|[^0-9\n。，,;；a-z]{0,8}?(?:是|為|为|跳|到|了))?"
_CODE: Final = r"(?:[a-z]-)?[0-9]{3}[ \-][0-9]{3}|[0-9]{2}(?:[ \-][0-9]{2}){2,3}|[0-9]{1,6}[#*][0-9]{1,6}|(?:[a-z]-)?[0-9]{3,8}#?|(?=[a-z]{0,4}-?[a-z]{0,3}[0-9])[a-z0-9]{2,4}-[a-z0-9]{3,6}"
_END: Final = (
    r"(?![0-9a-z]|[ .,:/\-][0-9]|[ ]?(?:ms|s|min|mins|minut\w{0,2}|minutes?|sek\w{0,4}|seconds?|sec|hours?|days?|dni|godzin\w{0,2}|giay|phut|gio|ngay"
    r"|digits?|characters?|cyfr\w{0,2}|znak\w{0,3}|so|ky tu|times?|razy|lan|zl|pln|usd|vnd|元|位|分鐘|分钟|秒|次|%)(?![a-z]))"
)
_NAMED: Final = re.compile(rf"(?<![a-z])(?:{_NAME}){_OF}{_IS}[ :=\-\"']{{0,4}}(?P<code>{_CODE}){_END}")
_BEFORE: Final = re.compile(
    rf"(?<![0-9a-z.,:/\-])(?P<code>{_CODE})(?: (?:is|la|to)|是|為|为)[ ]?(?:[a-z]{{1,12}} ){{0,3}}[^0-9\n。，,a-z]{{0,6}}?(?:{_NAME}|kod|code)(?![a-z])"
)
_RECEIVED: Final = re.compile(
    r"(?<![a-z])(?:(?:dostal\w{0,3}|otrzymal\w{0,3}|przyszedl|przyslal\w{0,2}|wyslal\w{0,2})(?: (?:mi|ci|nam))? kod|(?:got|received|sent me|texted me) (?:a|the|this) code"
    rf"|nhan (?:duoc|dc) ma)(?: (?:to|is|la)|:)? (?P<code>[0-9]{{3}}[ \-][0-9]{{3}}|[0-9]{{5,8}}){_END}"
)
"""A shorter number may be the code of an error."""


_GOOGLE: Final = re.compile(r"(?<![a-z0-9])g-(?P<code>[0-9]{6})(?![0-9a-z\-])")
"""The one form of its own that a code has."""
_KEYPAD: Final = re.compile(
    r"(?<![a-z])(?:bam|nhan|press|type|enter|wcisnij|wpisz|kod|code|ma|pin|door|gate|cua|cong|brama)(?![a-z])[^0-9\n.]{0,16}?(?P<code>[0-9]{3,8}[#*])(?![0-9a-z])"
    r"|[按輸输][入]?[ ]?(?P<han>[0-9]{3,8}[#*])"
)
"""Only codes for keypads end with a hash."""


def _codes(view: View) -> Iterator[tuple[int, int]]:
    for pattern in (_NAMED, _BEFORE, _RECEIVED):
        yield from (match.span("code") for match in pattern.finditer(view.lower))


def _formed(view: View) -> Iterator[tuple[int, int]]:
    yield from (match.span() for match in _GOOGLE.finditer(view.lower))
    yield from (match.span(match.lastgroup or 0) for match in _KEYPAD.finditer(view.lower))


_RULES: Final = (Rule("secret.once", "SECRET", _codes, CONTEXT),)

FAMILIES: Final = (
    Family(
        _RULES,
        words="code passcode xac ma haslo jednorazowe kod kodu kodem otp fa mfa blik",
        digits=3,
        strings=("code", "ma ", "kod", "otp", "fa", "blik", "haslo"),
    ),
    Family(_RULES, digits=3, han=True, strings=("碼", "码")),
    Family((Rule("secret.once.form", "SECRET", _formed, CONTEXT),), digits=3, narrow="[0-9]{3}[#*]|(?i-u:g)-[0-9]{6}"),
)
