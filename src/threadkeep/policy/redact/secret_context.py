# ruff: noqa: E501  (tables of cue words)
"""Secrets that nothing announces, in a sentence that speaks of one.

"BIOS password? i think ThinkP4d!", "em hay xài bongda1986 làm mật khẩu", "my authenticator says 615409". A token that mixes
letters with digits or marks as no word does, or a short number that counts nothing, near a word for a password or a
one-time code: on either side, and not across a full stop.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from threadkeep.policy.redact.rule import CONTEXT, FORM, Family, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from threadkeep.policy.redact.view import View

_PASSWORD: Final = (
    r"(?:(?<![a-z_])(?:passw?o?r?d|passwd|passwrd|pasword|pwd|passphrase|passkey|creds|credentials|psk|wpa[23]?|wifi key|wi-fi key|network key|mat khau|mat ma|mk|(?:wi-?fi|steam|gmail|email|facebook|fb|bank|my|account|login|user) pass|pass (?:wi-?fi|is|it's|cua|moi|fb|gmail|email|mail|zalo)"
    r"|hasl(?:o|a|em|u|e)|haselk\w|klucz sieciowy|klucz wifi|klucz do wifi|passwort|kennwort|contrasena|mot de passe|mdp|admin|root|login|ssh|mima|doi pass|(?:do )?la pass|pass (?:do|thanh|to)|changed it to|zmienil\w{1,2} na)(?![a-z_])"
    r"|密碼|密码|口令|金鑰|密鑰|密钥|後台|后台)"
)
_TOKEN: Final = re.compile(
    r"(?:(?<![A-Za-z0-9@/\\._\-=&?+%])|(?<=admin/)|(?<=root/)|(?<=user/))[A-Za-z0-9!@#$%^&*+_.\-:]{6,40}(?![A-Za-z0-9@/\\_=])"
)
_MIXED: Final = re.compile(r"(?=.*[A-Za-z])(?:(?=.*[0-9])|(?=.*[!#$%^&*@_].*[A-Za-z])(?=.*[A-Z])).*")
_KNOWN: Final = re.compile(
    r"(?i:(?:sha|aes|rsa|md|base|utf|oauth|http|argon|bcrypt|ed|wpa|ipv|mp|h|win|windows|iphone|ipad|android|ios|macos|galaxy|python|office|ubuntu|ps|xbox|rtx|gtx"
    r"|core|ryzen|pixel|redmi|note|web|html|css|es|log4j|pbkdf|tls|ssl|usb|wifi|room|ver|v|level|covid|top|part|pbkdf2|scrypt|sha3|x)[-_ ]?[0-9]{1,5}[a-z]{0,2}"
    r"|[0-9]+(?:[.,][0-9]+)?[a-z]{1,6}|[0-9]+(?:-[a-z]+)+|[a-z]+-[0-9]{1,2}|[0-9.,:/\-]+(?:am|pm)?|(?-i:[a-z]+(?:[-_][a-z]+)+|[A-Z]+(?:[-_][A-Z]+)+)|[0-9]{1,4}[a-z]{1,3}[-.][0-9]+.*|.*\.(?:com|net|org|io|pl|vn|tw|cn|py|js|json|txt|md|pdf|html|env|toml|yaml|yml|sh|go|rs|ts)"
    r"|[0-9a-f]{8}-[0-9a-f]{4}.*|[A-Z]{2,6}-[0-9]{2,8}|[A-Z][a-z]+-[0-9]{2})"
)
"""Names of techniques and products, counts with a unit, file names, identifiers, tickets."""
_EMPHASIS: Final = ("**", "__")
"""Of Markdown: `**Check** credentials`."""
_STOP: Final = re.compile(r"\.\s|\n|。|！")
_REACH: Final = 36


def _tokens(view: View) -> Iterator[tuple[int, int]]:
    for noun in _NOUN.finditer(view.lower):
        left = max(0, noun.start() - _REACH)
        right = min(len(view.text), noun.end() + _REACH + 24)
        for token in _TOKEN.finditer(view.text, left, right):
            value = token[0].rstrip(".:!-") if not token[0].endswith("!") or token.end() < len(view.text) else token[0]
            if value.startswith(_EMPHASIS):
                continue
            if token.start() < noun.end() and token.end() > noun.start():
                if view.text[noun.end() : noun.end() + 1] == ":" and _credential(value):
                    yield noun.end() + 1, token.end()
                continue
            gap = view.text[min(token.end(), noun.end()) : max(token.start(), noun.start())]
            if len(gap) <= _REACH and not _STOP.search(gap) and _credential(value):
                yield token.start(), token.start() + len(token[0].rstrip(".:"))


def _credential(value: str) -> bool:
    value = value.rpartition(":")[2]
    return len(value) >= 6 and _MIXED.fullmatch(value) is not None and _KNOWN.fullmatch(value) is None


_NOUN: Final = re.compile(_PASSWORD)

_WIFI: Final = re.compile(
    r"(?<![a-z])(?:(?:wpa[23]?|psk)(?: key| psk)?|(?:wifi|wi-fi|ssid|hotspot|router)[^\n]{0,40}?(?<![a-z])(?:key|klucz|pass))[ ]?[:=]?[ ](?P<value>[^\s\"'`,;]{6,40})"
)
_PARTED: Final = re.compile(r"[A-Za-z0-9]+(?:[-_:.][A-Za-z0-9]+){2,8}|(?=.*[0-9])(?=.*[A-Za-z]).*")


def _wifi(view: View) -> Iterator[tuple[int, int]]:
    """The key of a network: words joined by marks will do."""
    for match in _WIFI.finditer(view.lower):
        if _PARTED.fullmatch(match["value"].rstrip(".!?")) and not _KNOWN.fullmatch(match["value"].replace("-", "+")):
            yield match.span("value")


_ONCE: Final = re.compile(
    r"(?<![a-z])(?:authenticator|verify|verification|otp|2fa|one-time|uwierzytelni\w{1,10}|esemes\w{1,3}|sms-a|sms-em|sms-ie|weryfik\w{2,8}|potwierdzi\w{1,4}"
    r"|xac thuc|xac minh|xac nhan|ma otp|google authenticator|enter (?:the )?[0-9] digits|passcode|unlock|odblokow\w{2,8}|mo khoa|sejf\w{0,2}|safe in|ket sat|mo ket"
    r"|(?:google|whatsapp|facebook|messenger|telegram|zalo|instagram|apple|shopee|allegro|steam|ngan hang|bank)(?: [a-z]{1,10}){0,2} (?:sent|texted|asking|asks|przysla\w{0,3}|wysla\w{0,3}|nhan|gui|goi)|z banku|(?:six|6|4|four) digits|cyferki|lockbox|keypad|domofon\w{0,3}|pin)(?![a-z])|簡訊|短信|驗證|验证|解鎖|解锁|保險箱|保险箱|门禁|門禁|khoa man hinh|[0-9] so trong|[六6]位數|[六6]位数|要我輸入|叫我輸入|要我输入"
)
_ONCE_SIGN: Final = "(?i:" + re.sub(r"\(\?<?!\[a-z\]\)|\\w\{[0-9,]+\}", "", _ONCE.pattern) + ")"
"""The cues without what the prescan's engine cannot look at: what is around them, and how they end."""
_NUMBER: Final = re.compile(
    r"(?<![0-9A-Za-z.,:/\-#$€£])(?:[0-9]{2} [0-9]{2} [0-9]{2}|[0-9]{3}[ \-][0-9]{3}|[0-9]{4,8})(?![0-9A-Za-z%°]|[.,:/\-][0-9]|[ ]?(?:ms|s|min|mins|minut\w{0,2}|minutes?|sek\w{0,4}"
    r"|seconds?|hours?|days?|dni|godzin\w{0,2}|giay|phut|nguoi|people|users?|times?|lan|razy|zl|pln|usd|vnd|dong|k|tr|trieu|元|位|次|人|分|秒|年|月|日|塊|块|mah|mb|gb|kg|km|cm|mm|rok\w{0,2}"
    r"|r\.|digits?|characters?|cyfr\w{0,2}|bytes?|bits?|ky tu|requests?|items?)(?![a-z]))"
)
_LONG_NUMBER: Final = re.compile(r"(?<![0-9A-Za-z.,:/\-#$€£+])[0-9]{6,12}(?![0-9A-Za-z%°]|[.,:/\-][0-9])")


def _all_digits(view: View) -> Iterator[tuple[int, int]]:
    """A password of digits alone: near the word for it, and no count of anything."""
    for noun in _DIGITS_NOUN.finditer(view.lower):
        for number in _LONG_NUMBER.finditer(view.text, noun.end(), min(len(view.text), noun.end() + 48)):
            gap = view.text[noun.end() : number.start()]
            counted = _COUNTED.search(view.lower, max(0, number.start() - 12), number.start())
            if len(gap) <= 24 and not _STOP.search(gap) and not counted:
                yield number.span()


_DIGITS_NOUN: Final = re.compile(
    r"(?<![a-z_])(?:password|mat khau|mk|hasl(?:o|a)|passwort|contrasena)(?![a-z_])|密碼|密码"
)
_YEAR: Final = re.compile(r"(?:19[4-9]|20[0-4])[0-9]")
_COUNTED: Final = re.compile(
    r"(?:order|ticket|invoice|ref|nr|numer|number|no|line|port|error|version|page|room|phong|pokoj\w{0,2}|don|ma don|zamowien\w{1,2}|faktur\w{1,2}|訂單|订单|編號|编号|版本|年|第|rok\w{0,2}|in|of|since|w|nam|art\w{0,4}|iso|rfc"
    r"|build|model|code|limit|under|over|about|than|ponad|okolo|hon|tren)[.: #]{0,2}\Z"
)


def _numbers(view: View) -> Iterator[tuple[int, int]]:
    for cue in _ONCE.finditer(view.lower):
        left, right = max(0, cue.start() - _REACH), min(len(view.text), cue.end() + _REACH)
        for number in _NUMBER.finditer(view.lower, left, right + 8):
            if (
                number.end() > right
                or _YEAR.fullmatch(number[0])
                or _COUNTED.search(view.lower, max(0, number.start() - 12), number.start())
            ):
                continue
            gap = view.text[min(number.end(), cue.end()) : max(number.start(), cue.start())]
            if not _STOP.search(gap):
                yield number.span()


_BACKUP: Final = re.compile(
    r"(?:(?:backup|recovery|rescue|emergency) codes?|kod\w{0,3} (?:zapasow\w{1,3}|odzyskiwania|awaryjn\w{1,3}|ratunkow\w{1,3})|ma (?:du phong|khoi phuc)|備用碼|备用码|備用代碼|恢復碼|恢复码|備援碼)"
    r"[^0-9\n]{0,24}?(?P<codes>(?=[a-z\-]{0,27}[0-9])[a-z0-9]{3,8}(?:-[a-z0-9]{3,8}){1,7}|(?=[a-z]{0,6}[0-9])[a-z0-9]{3,8}[\- ][a-z0-9]{3,8}(?:[ ,;、和跟及]{1,4}(?:(?:and|or|i|va|oraz)[ ])?(?=[a-z]{0,6}[0-9])[a-z0-9]{3,8}[\- ][a-z0-9]{3,8}){0,12}"
    r"|[0-9]{6,10}(?:[ ,;、]{1,3}[0-9]{6,10}){0,12})(?![a-z0-9])"
)


def _backup(view: View) -> Iterator[tuple[int, int]]:
    """A list of codes, each of which opens the account once."""
    return (match.span("codes") for match in _BACKUP.finditer(view.lower))


_PASSWORD_WORDS: Final = (
    "password passord passwd passwrd pasword pwd passphrase passkey creds credentials psk wpa key khau ma mk pass haslo hasla haslem haslu hasle haselko haselka klucz passwort"
    " kennwort contrasena passe mdp admin root login ssh mima changed zmienilem zmienilam"
)
_ONCE_WORDS: Final = (
    "authenticator verify verification otp fa time uwierzytelniajaca uwierzytelniajacy uwierzytelniajacej uwierzytelnianie uwierzytelnienia esemes esemesa esemesem esemesie sms"
    " weryfikacja weryfikacji weryfikacje weryfikacyjny weryfikuj potwierdzic potwierdzil xac digits passcode unlock odblokowanie odblokowac odblokowania odblokuj mo ket sejf sejfu safe google whatsapp facebook messenger telegram zalo instagram apple shopee allegro steam hang bank banku digits cyferki so lockbox keypad domofon domofonu pin khoa"
)
_MIXED_TOKEN: Final = (
    r"[A-Za-z!@#$%^&*_][A-Za-z!@#$%^&*+_.\-:]{0,30}[0-9!#$%^&*@_]|[0-9][0-9!@#$%^&*+_.\-:]{0,30}[A-Za-z]"
)
_NOUN_SIGN: Final = (
    r"(?i-u:passw|pasword|pwd|passphrase|passkey|creds|credential|psk|wpa|fi key|network key|mat khau|mat ma|[ .,:;!?]mk[ .,:;!?]|pass (?:is|it's|wi|cua|moi|fb|gm|em|ma|za)"
    r"|(?:fi|steam|mail|book|fb|bank|my|account|login|user) pass[ :]|haslo|hasla|haslem|haslu|hasle|haselk|klucz |kennwort|contrasena|mot de passe|mdp|mima|doi pass|la pass|pass (?:do|thanh|to)|changed it|zmienil|(?:admin|login)[ :/]|root[:/]|ssh )"
)
_PASSWORD_RULES: Final = (Rule("secret.near", "SECRET", _tokens, FORM + 2),)
_DIGIT_RULES: Final = (Rule("secret.digits", "SECRET", _all_digits, FORM - 1),)
_ONCE_RULES: Final = (Rule("secret.once.near", "SECRET", _numbers, FORM + 2),)

FAMILIES: Final = (
    Family(_PASSWORD_RULES, words=_PASSWORD_WORDS, sign=_NOUN_SIGN, narrow=_MIXED_TOKEN),
    Family(
        _PASSWORD_RULES,
        han=True,
        strings=("密碼", "密码", "口令", "金鑰", "密鑰", "密钥", "後台", "后台"),
        narrow=_MIXED_TOKEN,
    ),
    Family((Rule("secret.wifi", "SECRET", _wifi, CONTEXT),), words="wpa psk wifi fi ssid hotspot router"),
    Family(_DIGIT_RULES, words="password khau mk haslo hasla passwort contrasena", digits=6),
    Family(_DIGIT_RULES, han=True, digits=6, strings=("密碼", "密码")),
    Family(_ONCE_RULES, words=_ONCE_WORDS, digits=4, narrow=_ONCE_SIGN),
    Family(
        _ONCE_RULES,
        han=True,
        digits=4,
        strings=(
            "簡訊",
            "短信",
            "驗證",
            "验证",
            "解",
            "保險箱",
            "保险箱",
            "門禁",
            "门禁",
            "輸入",
            "输入",
            "位數",
            "位数",
        ),
    ),
    Family(
        (Rule("secret.backup", "SECRET", _backup, CONTEXT),),
        words="codes code kody kodow zapasowe phong phuc",
        digits=2,
    ),
    Family(
        (Rule("secret.backup", "SECRET", _backup, CONTEXT),),
        han=True,
        digits=2,
        strings=("備用", "备用", "恢復碼", "恢复码", "備援碼"),
    ),
)
