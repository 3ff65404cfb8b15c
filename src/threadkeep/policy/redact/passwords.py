# ruff: noqa: E501  (tables of words and forms)
"""Passwords, PINs and one-time codes: secrets that a word announces, or that a sentence speaks of.

Announced: `password=…`, "my PIN is …", "mk facebook: …", wifi密碼是…, a dense string after "token"; "verification code",
"code from the SMS", "mã xác nhận", "kod z SMS-a", "kod do bramy", 驗證碼. In prose a value must look like no word of a
sentence, be quoted, or be a pass phrase: words with no grammar between them.

Nearby: "BIOS password? i think ThinkP4d!", "em hay xài bongda1986 làm mật khẩu", "my authenticator says 615409". A token
that mixes letters with digits or marks as no word does, or a short number that counts nothing, near a word for a
password or a one-time code: on either side, and not across a full stop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import log2
from typing import Final

from threadkeep.policy.redact.gazetteer import words
from threadkeep.policy.redact.rule import CHECKED, CONTEXT, FORM, SPACE, Family, Rule, View, every

_PASSWORD: Final = (
    r"pass(?:word|wd|phrase|code)s?|passw(?:rod|rd)?|passowrd|passord|pasword|pssword|mat[ _]khau|hasl(?:o|a|em|u)|passwort\w{0,2}|kennwort\w{0,2}|contrasena|clave|mot de passe|mdp|senha|wachtwoord"
    r"|密碼|密码|口令"
)
_SLIPS: Final = "passwrod passwrd passowrd passord pasword pssword"
_WORDS: Final = (
    rf"{_PASSWORD}|pass|pwd|pw|pin(?: ?code)?|otp|cvv2?|cvc|cookie|credentials?|secret|token"
    r"|client[_\- ]?secret|webhook[_\- ]?secret|api[_\- ]?key|access[_\- ]?key(?:[_\- ]?id)?"
    r"|secret[_\- ]?(?:access[_\- ]?)?key|(?:private|signing|encryption|master|license)[_\- ]?key"
    r"|(?:auth|access|refresh|id|bot)[_\- ]?token|(?:j|php|asp)?sess(?:ion)?[_\- ]?(?:id|token|key)"
    r"|mk|ma pin|ma otp|ma xac (?:nhan|thuc)|kod pin|kod sms|klucz api|驗證碼|验证码|金鑰|密钥|密鑰"
)
_BEGIN: Final = r"(?:(?<![A-Za-z])|(?=[密口驗验金])|(?<=[a-z])(?=[A-Z]))"
"""A Chinese word begins anywhere (wifi密碼), and so does a part of a name in code (`apiSecret`)."""
_VALUE: Final = r"[^\s\"'`“”„«»「」『』,;<>\0\u3001\u3002\uff0c\u3400-\u9fff]"
_LINK: Final = r"is|was|to|la|to jest|jest|brzmi|es|ist|lautet|est|c'est|e'|e"
_HAN_LINK: Final = r"是|為|为|改成|改為|改为|設成|設為|设为|设成|叫|用"
_OPEN: Final = r"[\"'`“„«「『]"
_ACCOUNT: Final = (
    r"wi-?fi|facebook|fb|gmail|e-?mail|mail|zalo|icloud|apple|router|modem|laptop|computer|pc|login|account|tk|nick|game|may|dien thoai|instagram|ig"
    r"|tiktok|netflix|bank|ngan hang|google|microsoft|windows|admin|root|server|shopee|lazada|steam|cua|nha|moi|cu|em|minh|toi|anh|chi|konta|banku|telefonu"
    r"|poczty|maila|komputera|do|wi|fi|telegram|discord|vpn|ssh|db|app|cua"
)
_PART: Final = r"(?:[_\-](?!(?i:hash|count|limit|type|name|field|length|policy|url|uri|file|path|expir|ttl|id|max|min|reset|manager|endpoint|column))[A-Za-z0-9]{1,20}){0,3}"
"""`password_smtp`, but neither `password_hash` nor `token_count`."""
_PAIR: Final = re.compile(
    rf"{_BEGIN}(?P<word>(?i:{_WORDS}){_PART})[\"'`]?\s{{0,3}}+(?P<mark>=>|:=|[:=])\s{{0,3}}+"
    rf"(?P<value>\"[^\"\n\0]{{1,200}}\"|'[^'\n\0]{{1,200}}'|`[^`\n\0]{{1,200}}`|「[^」\n\0]{{1,200}}」|“[^”\n\0]{{1,200}}”|[\u3400-\u9fff]{{1,20}}[0-9]{{1,12}}|{_VALUE}{{1,200}}+)"
)
_QUOTED: Final = re.compile(
    rf"{_BEGIN}(?i:{_PASSWORD}|mat ma|pass phrase|vault|bitwarden|keepass|lastpass|1password|menedzer\w{{0,3}}|密碼短語|密码短语)(?![A-Za-z])(?:[^\"“”「」『』'\n.。]{{0,20}}?(?:(?i:{_LINK}|with|cau|bang|haslem)[ ]|:[ ]?|{_HAN_LINK})|短語|短语|[ ]?)[ ]?"
    r"(?:\"(?P<a>[^\"\n\0]{3,60})\"|“(?P<b>[^”\n\0]{3,60})”|「(?P<c>[^」\n\0]{3,60})」|『(?P<d>[^』\n\0]{3,60})』|„(?P<e>[^”\"\n\0]{3,60})[”\"])"
)
_CLOSING: Final = re.compile(r"[A-Za-z0-9][\"”]")
"""A quote right behind a letter closes what was quoted before."""
_LATIN_IN_HAN: Final = re.compile(
    r"(?:密碼|密码|口令|通關密語|通关密语|密語|密语)[ :是為为]{1,2}(?!(?i:reset|error|manager|policy|hash|login|app|wifi|admin|password)(?![A-Za-z]))"
    r"(?P<value>[A-Za-z]{2,16}(?:[ \-][A-Za-z]{2,16}){1,9})(?![A-Za-z])"
)
_HAN_PHRASE: Final = re.compile(
    r"(?:密碼|密码|口令)(?:是|為|为|:)[ ]?(?P<value>[\u3400-\u9fff]{1,5}(?:[ ][\u3400-\u9fff]{1,5}){2,11})(?![ ]?[\u3400-\u9fff])"
)
_SAID: Final = re.compile(
    rf"{_BEGIN}(?i:{_WORDS})(?:(?i:\s{{1,2}}(?:{_LINK})\s?:?\s{{1,2}})|[\u3400-\u9fff]{{0,4}}?\s?(?:{_HAN_LINK})[了\s:]{{0,2}})"
    rf"(?P<quote>{_OPEN})?(?P<value>{_VALUE}{{3,128}}+)"
)
_NOT_COUNTED: Final = r"(?!(?i:limits?|counts?|size|length|budget|usage|window|lifetime|ttl|expiry|price|cost)[ :])"
_SAID_OF: Final = re.compile(
    rf"(?<![A-Za-z])(?:(?i:{_PASSWORD}|pin|token)(?:[ ]{_NOT_COUNTED}[A-Za-z\-]{{1,12}}){{1,4}}?|(?i:mk|pass|pw)(?:[ ](?i:{_ACCOUNT})){{1,4}}?)"
    rf"(?:[ ](?i:{_LINK})[ ]|[ ]?:[ ]?)(?P<quote>{_OPEN})?(?P<value>{_VALUE}{{4,128}}+)"
)
_BARE: Final = re.compile(
    rf"{_BEGIN}(?i:{_PASSWORD}|mk|pass|pw)(?:[ ](?i:{_ACCOUNT})){{0,4}}?(?:[ ]|(?<=[\u3400-\u9fff]))(?P<quote>{_OPEN})?(?P<value>(?={_VALUE}{{0,63}}[0-9]|[A-Za-z]{{2,12}}-[A-Za-z]{{1,12}}-[A-Za-z]){_VALUE}{{4,64}}+)"
)
_BELOW: Final = re.compile(
    rf"{_BEGIN}(?i:{_PASSWORD}|mk|pass|pw)[ ]?\r?\n[ ]{{0,4}}(?P<value>{_VALUE}{{4,64}}+)(?=[ ]{{0,4}}(?:\r?\n|\Z))"
)
"""Alone in the row below the word."""
_MIXED: Final = re.compile(
    r"(?=.{0,60}[0-9])(?=.{0,60}[A-Za-z@#!$%&*])[^\s]{5,}|[0-9]{6,12}|[A-Za-z]{2,}(?:-[A-Za-z]{1,}){2,}"
)
_WORDY: Final = re.compile(
    rf"(?<![a-z])(?P<whose>(?:my|our|his|her|their|wifi|wi-fi|login|email|account|the)[ ])?(?:(?:wifi|wi-fi|gmail|email|facebook|bank|account|laptop|netflix|new|old)[ ]){{0,2}}"
    rf"(?P<noun>{_PASSWORD}|pass phrase)(?:[ ][a-z\-]{{1,12}}){{0,4}}?(?:[ ](?:{_LINK})|[ ]?:|(?<=passphrase)|(?<=passphrase ssh)|(?<=passphrase gpg))[ ](?P<quote>{_OPEN})?"
    rf"(?P<value>[a-z]{{2,16}}(?:[ \-][a-z]{{1,16}}){{0,9}})(?=[\"'`”»]?(?:\s*(?:[.,;!?\n)]|\Z)))"
)
_GRAMMAR: Final = words(
    "the a an in on at to for and or not of by with from my your our their his her its is are was be been has"
    " have had will would should could can may must very too so again still now then than that this these"
    " those it he she they we you if when because as but only also just yet never always same no any all some"
    " more most other next last what which who how why where there here please jest za zbyt nie sie do na dla"
    " bardzo co ktore zeby musi od po przy bez ale bo juz tak jak czy moje twoje nasze byc ma mam gi nao khong"
    " duoc bi da se dang cua cho voi nay do thi la va hay phai rat qua em anh minh ban nha nhe a roi con ten"
    " ngay"
)
_PREDICATES: Final = words(
    "wrong incorrect correct required expired weak strong invalid valid empty blank safe secure unknown"
    " unique optional missing case sensitive long short changed reset stored saved hashed encrypted hidden"
    " protected shared lost forgotten default different important necessary needed old new good bad fine ok"
    " okay okey enough right better simple complex random temporary personal private public mandatory easy"
    " hard ready set disabled enabled everything something nothing anything yours mine working compromised"
    " leaked stolen simple case-sensitive confidential secret"
)
_ADJECTIVE: Final = re.compile(r".*(?:ed|ing|able|ible|ive|ful|less|ous|ly|ary)")
_MANY: Final = 4
# The beginnings of these two in lower case: found several times as fast, and seldom there.
_SAYS: Final = re.compile(rf"(?:{_WORDS})(?:\s{{1,2}}(?:{_LINK})[\s:]|[\u3400-\u9fff]{{0,4}}?\s?(?:{_HAN_LINK}))")
_SAYS_OF: Final = re.compile(
    rf"(?:{_PASSWORD}|pin|token|mk|pass|pw)(?:[ ][a-z\-]{{1,12}}){{1,4}}?(?:[ ](?:{_LINK})[ ]|[ ]?:)"
)
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
        "kennwort",
        "contrasena",
        "clave",
        "mdp",
        "senha",
        "wachtwoord",
    ),
    *("ma ", "mat khau", "hasl", "kod ", "klucz", "密", "口令", "碼", "码", "金鑰"),
)
"""One of them is in every word above."""
_SHORT_CODE: Final = re.compile(
    r"(?<![A-Za-z])(?i:cvv2?|cvc|pin(?: ?code)?|otp)(?:[ ][A-Za-z]{1,6}){0,4}?[ :]{1,2}(?P<value>[0-9]{3,8}|[0-9](?: [0-9]){3,7})(?! ?[0-9]|[A-Za-z])"
)
_DENSE: Final = re.compile(
    r"(?i:key|token|secret|session|cookie|credential|auth|password|mat khau|klucz|haslo|密|金鑰)[^\n0-9]{0,24}?"
    r"(?<![A-Za-z0-9+/_\-.])(?P<value>[A-Za-z0-9+/_\-=.]{20,512}+)"
)
_DENSE_BEFORE: Final = re.compile(
    r"(?<![A-Za-z0-9+/_\-=.])(?P<value>[A-Za-z0-9+/_\-=.]{32,512}+)[^\n]{0,64}?(?i:(?:access|secret|api|private)[ _]?key|token|secret|credential)"
)
_SHORT_NAME: Final = re.compile(
    r"(?:(?:^|\n)[ ]?|(?i:my|our|wi-?fi|login|user|account|email|gmail|facebook|fb) )(?:[Pp]ass|(?i:pw|pwd|mk))\Z"
)
"""`pass: letmein`; the second pass is of something else, and PASS the outcome of a test."""
_OUTCOME: Final = re.compile(r"(?:fail|test|check|case|step)\w{0,3}", re.IGNORECASE)
_OF_AN_ACCOUNT: Final = re.compile(
    r" (?:wi-?fi|facebook|fb|gmail|zalo|icloud|instagram|tiktok|netflix|telegram|discord|vpn|router\w?|modem\w?|steam): [\"'`“„«「『]?\Z"
)
_HARMLESS: Final = re.compile(
    r"none|null|nil|undefined|true|false|await|new|async|function|self|this|return|required|optional|string|str|int|bool|text|yes|no|change(?:me)?|todo"
    r"|your|the|my|and|for|not",
    re.IGNORECASE,
)
_TYPE: Final = re.compile(r"none|null|nil|undefined|true|false|string|str|int|bool|text|number", re.IGNORECASE)
_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*+(?:\.[A-Za-z_][A-Za-z0-9_]*+)*+"
_CODE: Final = re.compile(rf"{_NAME}(?:\((?:[\"'`)]|{_NAME}[,).(\[=])|\[(?:[\"'`]|{_NAME}\]))")
_ATTRIBUTE: Final = re.compile(r"[A-Za-z_]{2,40}(?:\.[A-Za-z_]{2,40}){1,5}")
"""A call or subscript, and an attribute."""
_IN_QUERY: Final = re.compile(r"[?&#][^\s]{0,64}\Z")
_REFERENCE: Final = re.compile(r"[$%{]|https?:|[~.]{0,2}/[A-Za-z0-9_.\-]+/")
_ARGUMENT: Final = re.compile(r"[(,]\s?[a-z_]+=(?P<value>[a-z]+(?:_[a-z]+)+)[,)]")
"""A call's `password=hashed_password`."""
_AMOUNT: Final = re.compile(r"[$£€][0-9]+(?:[.,][0-9]+)?|[0-9]+[.,][0-9]+%?|[0-9]+(?:%|[kKmM]i?[bB]?)")
_UNWORDLY: Final = re.compile(r"[A-Za-z]+-[A-Za-z]+-[A-Za-z]|[0-9]|[a-z][A-Z]|[^A-Za-z0-9\s'\-.\u3400-\u9fff]")
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
    """Whether the value is meant as a password: after a colon in prose a plain word may just be the next one, as in
    `the pass: absolutely worth it`."""
    value = match["value"]
    if _HARMLESS.fullmatch(value) or _AMOUNT.fullmatch(value) or _TYPE.fullmatch(value.strip("\"'`")):
        return False
    if _is_code(match, text):
        return False
    if "=" in match["mark"] or value[0] in "\"'`" or _UNWORDLY.search(value):
        return True
    if text[end : end + 1] not in ("", "\n", ",", ".", ";"):
        return False
    if re.fullmatch(_PASSWORD, match["word"], re.IGNORECASE) is not None:
        return True
    short = _SHORT_NAME.search(text, max(0, match.start() - 12), match.end("word"))
    return short is not None and _unsaid(value) and not _OUTCOME.fullmatch(value)


def _unsaid(word: str) -> bool:
    """Whether a sentence about a password would not have this as its next word."""
    word = word.lower()
    return word not in _GRAMMAR and word not in _PREDICATES and not _ADJECTIVE.fullmatch(word)


def _is_code(match: re.Match[str], text: str) -> bool:
    """Code that fetches the secret. `DB_PASSWORD=tame.tiger` is a line of an environment file, and no code."""
    start = match.start("value")
    argument = _ARGUMENT.search(text, max(0, match.start() - 2), start + 80)
    if _CODE.match(text, start) or (argument is not None and argument.start("value") == start):
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
            # In Chinese text Latin letters are no word of the sentence.
            quoted = match["quote"] is not None or view.text[match.start("value") - 1] >= "\u3400"
            if len(value) >= 3 and (quoted or _UNWORDLY.search(value)) and not _AMOUNT.fullmatch(value):
                yield match.start("value"), match.start("value") + len(value)


def _quoted(view: View) -> Iterator[tuple[int, int]]:
    """Whatever stands in quotes behind the word, and Chinese words set apart by blanks."""
    for match in _QUOTED.finditer(view.text):
        start, end = match.span(match.lastgroup or 0)
        # `type="password" id="password"`: the quotes are those of two attributes. `"The Vault": …, "…"`: of two titles.
        if view.text[end - 1] != "=" and not _CLOSING.match(view.text, start - 2):
            yield start, end
    for pattern in (_HAN_PHRASE, _LATIN_IN_HAN):
        yield from (match.span("value") for match in pattern.finditer(view.text))


def _bare(view: View) -> Iterator[tuple[int, int]]:
    """Right behind the word, without "is" or a colon: `mk wifi hoa2024xy`."""
    for match in (*_BARE.finditer(view.text), *_BELOW.finditer(view.text)):
        value = match["value"].rstrip(".)]}?:*!")
        if _MIXED.fullmatch(value) and "=" not in value and ":" not in value:
            yield match.start("value"), match.start("value") + len(value)


def _words(view: View) -> Iterator[tuple[int, int]]:
    """A pass phrase, or a single word that ends its clause and is no predicate: `my password is sunshine`."""
    for match in _WORDY.finditer(view.lower):
        words = re.split(r"[ \-]", match["value"])
        spelled_out = re.search(r"(?:brzmi|lautet) \Z", match[0][: match.start("value") - match.start()]) is not None
        alone = len(words) == 1 and match["whose"] is not None and " is " in match[0]
        if (
            match["quote"] is not None
            or (spelled_out and len(words) > 1)
            or (len(words) >= _MANY and _GRAMMAR.isdisjoint(words))
            or (alone and _unsaid(words[0]))
            or (
                len(words) == 1
                and _OF_AN_ACCOUNT.search(match[0], 0, match.start("value") - match.start()) is not None
                and _unsaid(words[0])
            )
        ):
            yield match.span("value")


def _codes(view: View) -> Iterator[tuple[int, int]]:
    if view.runs and any(word in view.lower for word in ("pin", "otp", "cvv", "cvc")):
        yield from (match.span("value") for match in _SHORT_CODE.finditer(view.text))


def _dense(view: View) -> Iterator[tuple[int, int]]:
    for match in (*_DENSE.finditer(view.text), *_DENSE_BEFORE.finditer(view.text)):
        value = match["value"]
        mixed = re.search(r"[0-9]", value) and re.search(r"[A-Za-z]", value)
        if mixed and entropy(value) >= (3.0 if _HEX.fullmatch(value) else 3.6):
            yield match.span("value")


_RULES: Final = (
    Rule("secret.pair", "SECRET", _pairs, CHECKED),
    Rule("secret.said", "SECRET", _said, CONTEXT),
    Rule("secret.quoted", "SECRET", _quoted, CONTEXT),
    Rule("secret.bare", "SECRET", _bare, CONTEXT - 2),
    Rule("secret.words", "SECRET", _words, CONTEXT - 2),
    Rule("secret.code", "SECRET", _codes, CONTEXT),
    Rule("secret.dense", "SECRET", _dense, CONTEXT),
)
_CUES: Final = (
    f"{_SLIPS} vault bitwarden keepass lastpass menedzer menedzera pass password passwords passwd passphrase passcode passw pwd pw passwort passworter kennwort contrasena clave mot mdp senha wachtwoord pin pincode otp cvv cvc"
    " cookie credential credentials secret"
    " token key apikey accesskey secretkey privatekey clientsecret authtoken accesstoken refreshtoken idtoken sessionid"
    " sessiontoken sessionkey session apisecret appsecret dbpassword userpassword adminpassword apitoken usertoken auth khau mk xac haslo hasla haslem haslu kod klucz"
)
_BEGINNING: Final = (
    rf"(?i:{_WORDS})(?:[_\-][A-Za-z0-9]{{1,20}}){{0,3}}(?:[\"'`]?{SPACE}{{0,3}}[:=]|{SPACE}{{1,2}}(?i:{_LINK})[{SPACE[1:-1]}:]|[\x{{3400}}-\x{{9FFF}}]{{0,4}}{SPACE}?(?:{_HAN_LINK}))"
    rf"|(?i:{_PASSWORD}|pin|token|mk|pass|pw)(?:[ ][A-Za-z\-]{{1,12}}){{1,4}}(?:[ ](?i:{_LINK})[ ]|[ ]?:)"
)
"""Of a pair, or of one of the ways of saying it."""
_QUOTE: Final = (
    rf"(?i:{_PASSWORD}|mat ma|phrase|vault|bitwarden|keepass|lastpass|1password|menedzer)[^\"“”「」『』'\n.。]{{0,28}}[\"“「『„]"
).replace(r"\w", "[^ ]")
_SIGN: Final = (
    rf"[0-9]|(?i:{_PASSWORD}|mat ma)[^A-Za-z]|密碼|密码|口令|(?i:pass phrase|vault|bitwarden|keepass|lastpass|1password|menedzer)"
    rf"|(?i:{_WORDS})(?:[\"'`]?{SPACE}{{0,3}}[:=]|[_\-]|{SPACE}{{1,2}}(?i:{_LINK})[{SPACE[1:-1]}:]|{SPACE}?[\x{{3400}}-\x{{9FFF}}])"
    rf"|(?i:pin|token)(?:[ ][A-Za-z\-]{{1,12}}){{1,4}}(?:[ ](?i:{_LINK})[ ]|[ ]?:)|(?i:mk|pass|pw)[ ]{_OPEN}?(?i:{_ACCOUNT}|[a-z]{{2,12}}-[a-z]{{1,12}}-)"
).replace(r"\w", "[^ ]")
"""What all of them begin with, in as few words as an automaton is fast with."""
_NARROW: Final = (
    r"(?i:cvv|cvc|pin|otp)(?: ?(?i:code)|2)?(?:[ ][A-Za-z]{1,6}){0,4}[ :]{1,2}[0-9](?:[0-9]{2}| [0-9] [0-9])|[A-Za-z0-9+/_\-=.]{20}"
    rf"|(?i:{_PASSWORD}|mk|pass|pw)(?:[ ](?i:{_ACCOUNT})){{0,4}}[ ]?[\"'`]?(?:[^ ]{{0,60}}[0-9]|[A-Za-z]+-[A-Za-z]+-[A-Za-z])"
    rf"|(?i:{_PASSWORD}|mk|pass|pw)[ ]?\r?\n|{_QUOTE}|(?i:passphrase)[ ]"
    r"|(?:密碼|密码|口令)(?:是|為|为|:)[ ]?[\x{3400}-\x{9FFF}]|(?:密碼|密码|口令|密語|密语)[ :是為为]{1,2}[A-Za-z]"
    f"|{_BEGINNING}"
).replace(r"\w", "[^ ]")
"""The same, but that a digit must be part of a short code, or beside it a string that may be dense."""

_PASSWORD_FAMILIES: Final = (
    Family(_RULES, words=_CUES, sign=_SIGN, narrow=_NARROW),
    Family(_RULES, han=True, strings=("密", "口令", "驗證碼", "验证码", "金鑰"), sign=_SIGN, narrow=_NARROW),
)


_CODE_NAME: Final = (
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
_ONE_TIME_CODE: Final = r"(?:[a-z]-)?[0-9]{3}[ \-][0-9]{3}|[0-9]{2}(?:[ \-][0-9]{2}){2,3}|[0-9]{1,6}[#*][0-9]{1,6}|(?:[a-z]-)?[0-9]{3,8}#?|(?=[a-z]{0,4}-?[a-z]{0,3}[0-9])[a-z0-9]{2,4}-[a-z0-9]{3,6}"
_END: Final = (
    r"(?![0-9a-z]|[ .,:/\-][0-9]|[ ]?(?:ms|s|min|mins|minut\w{0,2}|minutes?|sek\w{0,4}|seconds?|sec|hours?|days?|dni|godzin\w{0,2}|giay|phut|gio|ngay"
    r"|digits?|characters?|cyfr\w{0,2}|znak\w{0,3}|so|ky tu|times?|razy|lan|zl|pln|usd|vnd|元|位|分鐘|分钟|秒|次|%)(?![a-z]))"
)
_NAMED: Final = re.compile(rf"(?<![a-z])(?:{_CODE_NAME}){_OF}{_IS}[ :=\-\"']{{0,4}}(?P<code>{_ONE_TIME_CODE}){_END}")
_BEFORE: Final = re.compile(
    rf"(?<![0-9a-z.,:/\-])(?P<code>{_ONE_TIME_CODE})(?: (?:is|la|to)|是|為|为)[ ]?(?:[a-z]{{1,12}} ){{0,3}}[^0-9\n。，,a-z]{{0,6}}?(?:{_CODE_NAME}|kod|code)(?![a-z])"
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


def _one_time_codes(view: View) -> Iterator[tuple[int, int]]:
    for pattern in (_NAMED, _BEFORE, _RECEIVED):
        yield from (match.span("code") for match in pattern.finditer(view.lower))


def _formed(view: View) -> Iterator[tuple[int, int]]:
    yield from (match.span() for match in _GOOGLE.finditer(view.lower))
    yield from (match.span(match.lastgroup or 0) for match in _KEYPAD.finditer(view.lower))


_CODE_RULES: Final = (Rule("secret.once", "SECRET", _one_time_codes, CONTEXT),)

_CODE_FAMILIES: Final = (
    Family(
        _CODE_RULES,
        words="code passcode xac ma haslo jednorazowe kod kodu kodem otp fa mfa blik",
        digits=3,
        strings=("code", "ma ", "kod", "otp", "fa", "blik", "haslo"),
    ),
    Family(_CODE_RULES, digits=3, han=True, strings=("碼", "码")),
    Family((Rule("secret.once.form", "SECRET", _formed, CONTEXT),), digits=3, narrow="[0-9]{3}[#*]|(?i-u:g)-[0-9]{6}"),
)


_PASSWORD_NEARBY: Final = (
    r"(?:(?<![a-z_])(?:passw?o?r?d|passwd|passwrd|pasword|pwd|passphrase|passkey|creds|credentials|psk|wpa[23]?|wifi key|wi-fi key|network key|mat khau|mat ma|mk|(?:wi-?fi|steam|gmail|email|facebook|fb|bank|my|account|login|user) pass|pass (?:wi-?fi|is|it's|cua|moi|fb|gmail|email|mail|zalo)"
    r"|hasl(?:o|a|em|u|e)|haselk\w|klucz sieciowy|klucz wifi|klucz do wifi|passwort|kennwort|contrasena|mot de passe|mdp|admin|root|login|ssh|mima|doi pass|(?:do )?la pass|pass (?:do|thanh|to)|changed it to|zmienil\w{1,2} na)(?![a-z_])"
    r"|密碼|密码|口令|金鑰|密鑰|密钥|後台|后台)"
)
_TOKEN: Final = re.compile(
    r"(?:(?<![A-Za-z0-9@/\\._\-=&?+%])|(?<=admin/)|(?<=root/)|(?<=user/))[A-Za-z0-9!@#$%^&*+_.\-:]{6,40}(?![A-Za-z0-9@/\\_=])"
)
_MIXED_NEARBY: Final = re.compile(r"(?=.*[A-Za-z])(?:(?=.*[0-9])|(?=.*[!#$%^&*@_].*[A-Za-z])(?=.*[A-Z])).*")
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
    return len(value) >= 6 and _MIXED_NEARBY.fullmatch(value) is not None and _KNOWN.fullmatch(value) is None


_NOUN: Final = re.compile(_PASSWORD_NEARBY)

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

_NEARBY_FAMILIES: Final = (
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
        (Rule("secret.backup", "SECRET", every(_BACKUP, in_lower=True), CONTEXT),),
        words="codes code kody kodow zapasowe phong phuc",
        digits=2,
    ),
    Family(
        (Rule("secret.backup", "SECRET", every(_BACKUP, in_lower=True), CONTEXT),),
        han=True,
        digits=2,
        strings=("備用", "备用", "恢復碼", "恢复码", "備援碼"),
    ),
)

FAMILIES: Final = (*_PASSWORD_FAMILIES, *_CODE_FAMILIES, *_NEARBY_FAMILIES)
