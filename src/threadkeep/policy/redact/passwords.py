# ruff: noqa: E501  (tables of words and forms)
"""Secrets that a word announces: `password=…`, "my PIN is …", "mk facebook: …", wifi密碼是…, a dense string after "token".

In prose a value must look like no word of a sentence, be quoted, or be a pass phrase: words with no grammar between them.
"""

from __future__ import annotations

import re
from math import log2
from typing import TYPE_CHECKING, Final

from threadkeep.policy.redact.gazetteer import words
from threadkeep.policy.redact.prescan import SPACE
from threadkeep.policy.redact.rule import CHECKED, CONTEXT, Family, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from threadkeep.policy.redact.view import View

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
    if not (view.runs and view.stretch(20)):
        return
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

FAMILIES: Final = (
    Family(_RULES, words=_CUES, sign=_SIGN, narrow=_NARROW),
    Family(_RULES, han=True, strings=("密", "口令", "驗證碼", "验证码", "金鑰"), sign=_SIGN, narrow=_NARROW),
)
