# ruff: noqa: E501  (tables of words and forms)
"""Secrets known by their form or their place: vendor tokens, JWTs, keys, headers, connection strings, URLs, commands.

The rule's name says which. A new vendor is one entry in `_VENDORS`. Of a URL only the part that grants access is masked,
so the host and path stay readable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from threadkeep.policy.redact.rule import CERTAIN, CHECKED, Family, Finder, Rule, Spans, View, every

_JWT: Final = r"eyJ[A-Za-z0-9_\-]{5,}+(?:\.[A-Za-z0-9_\-]{3,}+){1,4}"
_VENDORS: Final[tuple[tuple[str, tuple[str, ...], str], ...]] = (
    (
        "aws",  # the secret too, where it stands right behind its id, as in a console's list
        ("akia", "asia", "aroa", "aida", "abia", "acca"),
        r"(?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA)[A-Z0-9]{16}(?:[\s:,;/|\"']{1,6}[A-Za-z0-9/+]{40,}+)?",
    ),
    ("google", ("aiza",), r"AIza[A-Za-z0-9_\-]{30,}+"),
    ("google.oauth", ("ya29.", "gocspx-"), r"(?:ya29\.[A-Za-z0-9_\-.]{20,}+|GOCSPX-[A-Za-z0-9_\-]{20,}+)"),
    ("github", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{16,}+"),
    ("github.fine", ("github_pat_",), r"github_pat_[A-Za-z0-9_]{20,}+"),
    ("gitlab", ("glpat-", "gldt-", "glrt-", "glptt-", "glcbt-"), r"gl(?:pat|dt|rt|ptt|cbt)-[A-Za-z0-9_\-.]{16,}+"),
    ("slack", ("xox", "xapp-"), r"(?:xox[abeoprs]|xapp)-[A-Za-z0-9\-]{10,}+"),
    ("stripe", ("k_live_", "k_test_"), r"[spr]k_(?:live|test)_[A-Za-z0-9]{10,}+"),
    ("stripe.webhook", ("whsec_",), r"whsec_[A-Za-z0-9+/=]{16,}+"),
    ("anthropic", ("sk-ant-",), r"sk-ant-[A-Za-z0-9_\-]{10,}+"),
    ("openai", ("sk-",), r"sk-(?:proj-|svcacct-|admin-|or-v1-)?[A-Za-z0-9_\-]{18,}+"),
    ("huggingface", ("hf_",), r"hf_[A-Za-z0-9]{20,}+"),
    ("threadkeep", ("tk_",), r"tk_[a-z2-7]{12}_[A-Za-z0-9_\-]{43}"),
    ("npm", ("npm_",), r"npm_[A-Za-z0-9]{30,}+"),
    ("pypi", ("pypi-",), r"pypi-[A-Za-z0-9_\-]{30,}+"),
    ("sendgrid", ("sg.",), r"SG\.[A-Za-z0-9_\-]{16,}+\.[A-Za-z0-9_\-]{16,}+"),
    ("twilio", ("ac", "sk"), r"(?:AC|SK)[0-9a-f]{32}"),
    ("digitalocean", ("dop_v1_", "doo_v1_", "dor_v1_"), r"do[opr]_v1_[a-f0-9]{40,}+"),
    ("telegram", (":aa",), r"[0-9]{8,10}:AA[A-Za-z0-9_\-]{32,}+"),
    ("azure", ("accountkey=", "sharedaccesskey="), r"(?<=Key=)[A-Za-z0-9+/]{40,}+={0,2}"),
)

_HEADER: Final = (
    r"(?i:authorization)[\"']?\s{0,3}+[:=]\s{0,3}+[\"']?(?i:(?:bearer|basic|token|digest|apikey)\s{1,3}+)?+"
    r"([A-Za-z0-9+/=_\-.~:]{6,}+)"
)
_BEARER: Final = r"(?<![A-Za-z])(?i:bearer|basic)\s{1,3}((?=[A-Za-z_\-.~+/]{0,128}[0-9=])[A-Za-z0-9+/=_\-.~]{12,}+)"
_CONNECTION: Final = (
    r"(?<![A-Za-z0-9+.\-])[A-Za-z][A-Za-z0-9+.\-]{1,20}://[^\s:/@\"'<>\0]{0,128}:"
    r"((?![0-9]{1,5}[?#])[^\s/\"'<>\0]{1,256})@"
)
_USERINFO: Final = (
    r"(?<![^\s\"'`(=,\0])(?!(?i:mailto|e-?mail|mail|contact|from|to|cc|bcc):)[A-Za-z0-9._\-]{1,64}:([^\s@/\"'<>\0]{3,128})@"
    r"(?=(?:localhost|[0-9]{1,3}(?:\.[0-9]{1,3}){3})(?![A-Za-z0-9.])"
    r"|[A-Za-z0-9\-]{1,63}(?:\.[A-Za-z0-9\-]{1,63}){0,6}(?::[0-9]{2,5}(?![0-9])|/[A-Za-z0-9]))"
)
"""`user:password@host` without a scheme: a port, a path, or a number for a host shows that it is no mail address."""
_PEM: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}(?:PRIVATE KEY|CERTIFICATE|PGP MESSAGE)(?: BLOCK)?-----")
_PEM_END: Final = re.compile(r"-----END [A-Z0-9 ]{0,60}-----")
_PEM_BODY: Final = re.compile(r"[A-Za-z0-9+/=\s\\:,\-]*+")


def _pem(view: View) -> Iterator[tuple[int, int]]:
    """From the header to the footer, or, cut short, for as long as it looks like a key."""
    position = 0
    while (opening := _PEM.search(view.text, position)) is not None:
        body = _PEM_BODY.match(view.text, opening.end())
        position = body.end() if body else opening.end()
        closing = _PEM_END.search(view.text, opening.end(), position + 80)
        position = closing.end() if closing else position
        yield opening.start(), position


def _prefixed(cues: tuple[str, ...], pattern: str) -> Finder:
    """The pattern, run only where one of its literal prefixes stands; a letter in front of it rules it out only if it
    was an ASCII letter before it was folded."""
    find = every(rf"(?<![A-Za-z0-9_\-])(?:{pattern})(?![A-Za-z0-9_\-])")
    # Tried at many positions of one word, so it must not read far at each.
    bare = re.compile(rf"(?:{pattern.replace(',}+', ',4096}+')})(?![A-Za-z0-9_\-])")

    def find_if_present(view: View) -> Spans:
        if not any(cue in view.lower for cue in cues):
            return ()
        return (*find(view), *_behind_folded(view, bare)) if view.behind_folded else find(view)

    return find_if_present


def _behind_folded(view: View, pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    position = 0
    for start in view.behind_folded:
        match = pattern.match(view.text, start) if start >= position else None
        if match is not None:
            position = match.end()
            yield match.span()


_ANY_VENDOR: Final = "|".join(form.replace("}+", "}").replace("(?<=Key=)", "Key=") for _, _, form in _VENDORS)
"""All the forms, in an automaton's words: it reads everything once and needs no possessive marks."""

_TOKEN_FAMILIES: Final = (
    Family(
        tuple(Rule(f"secret.{name}", "SECRET", _prefixed(cues, form), CERTAIN) for name, cues, form in _VENDORS),
        digits=1,
        narrow=_ANY_VENDOR,
    ),
    Family(
        (Rule("secret.jwt", "SECRET", _prefixed(("eyj",), _JWT), CERTAIN),),
        signs=r"\.",
        strings=("eyj",),
    ),
    Family((Rule("secret.pem", "SECRET", _pem, CERTAIN),), words="begin", strings=("-----begin",), sign="-----BEGIN "),
    Family((Rule("secret.header", "SECRET", every(_HEADER), CERTAIN),), words="authorization"),
    Family((Rule("secret.bearer", "SECRET", every(_BEARER), CHECKED),), words="bearer basic"),
    Family((Rule("secret.connection", "SECRET", every(_CONNECTION), CERTAIN + 5),), signs="://", strings=("://",)),
    Family((Rule("secret.userinfo", "SECRET", every(_USERINFO), CERTAIN + 5),), signs=":[^@]{0,200}@", sign="@"),
)


_URL: Final = re.compile(
    r"(?i:[a-z][a-z0-9+.\-]{1,20})://[^\s<>\"'`\x00\u3000-\u303f\uff00-\uffef\u3400-\u9fff]{1,4096}+"
)
_URL_USERINFO: Final = re.compile(r"://([^/?#\s]{1,256})@")
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
        userinfo = _URL_USERINFO.search(view.text, url.start(), url.end())
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


_URL_FAMILIES: Final = (
    Family(
        (Rule("url.userinfo", "URL", _userinfo, CERTAIN), Rule("url.access", "URL", _granting, CHECKED + 5)),
        signs="://",
        strings=("://",),
    ),
)


_VALUE: Final = r"[^\s\"'`,;|<>\0]"


def _given(before: str, plain: str) -> str:
    """A value, quoted or not; `before` is inside the quotes too."""
    quoted = rf"\"{before}(?P<double>[^\"\n\0]{{1,128}})\"|'{before}(?P<single>[^'\n\0]{{1,128}})'"
    return rf"(?:{quoted}|[\"']?{before}(?P<value>{plain}))"


_USER: Final = re.compile(
    r"(?<=\s)(?:-u|--user|--proxy-user)(?:[ \t]{1,2}|=)?" + _given(r"[^\s:\"'\0]{1,64}:", rf"{_VALUE}{{1,128}}+")
)
_SHORT: Final = re.compile(r"(?<=\s)-p" + _given("", rf"(?![0-9]{{1,5}}(?:\s|\Z)){_VALUE}{{2,128}}+"))
_OPTION: Final = re.compile(
    r"(?<![A-Za-z0-9\-])--(?:[a-z]{1,12}-)?(?:password|passwd|passphrase|pwd)[ \t]{1,2}"
    + _given("", rf"(?![\-$%{{]){_VALUE}{{3,128}}+")
)
_REDIS: Final = re.compile(r"(?<=\s)-a[ \t]{1,2}" + _given("", rf"(?![\-$%{{]){_VALUE}{{3,128}}+"))
_GOES_ON: Final = re.compile(r"[\"'`)]?\s*(?:\Z|\n|[|;&]|-{1,2}[A-Za-z])")
_PROSE: Final = re.compile(
    r"(?:to|is|and|or|the|for|with|in|on|as|from|if|when|was|are|not|you|can|will|should|must|does|instead|because"
    r"|option|flag|argument|parameter|switch|prompts?|value|file|stdin)(?![A-Za-z0-9])"
)
_UNWORDLY: Final = re.compile(r"[^A-Za-z.]")
_REACH: Final = 200
_CURL: Final = re.compile(r"(?<![a-z])(?:curl|wget|http|https|xh)(?![a-z:])")
_REDIS_CLI: Final = re.compile(r"(?<![a-z])redis-cli\s")
_DATABASE: Final = re.compile(
    r"(?<![a-z])(?:mysql[a-z]{0,8}|mariadb|psql|pg_dump|pg_restore|sshpass|mongo[a-z]{0,8})\s"
)


def _of(view: View, start: int, command: re.Pattern[str]) -> bool:
    """Whether this command is in front of it, without a newline between."""
    left = max(0, start - _REACH, view.lower.rfind("\n", max(0, start - _REACH), start))
    return command.search(view.lower, left, start) is not None


def _short(view: View) -> Iterator[tuple[int, int]]:
    for option, command in ((_USER, _CURL), (_SHORT, _DATABASE), (_REDIS, _REDIS_CLI)):
        for match in option.finditer(view.text):
            start, end = match.span(match.lastgroup or 0)
            if view.text[start] != "$" and _of(view, match.start(), command):
                yield start, end


def _long(view: View) -> Iterator[tuple[int, int]]:
    """A plain word counts only where a command visibly follows or ends: "use --password to log in" is prose."""
    for match in _OPTION.finditer(view.text):
        start, end = match.span(match.lastgroup or 0)
        talk = _PROSE.match(view.text, start, end) or _GOES_ON.match(view.text, end) is None
        if view.text[start] != "$" and (_UNWORDLY.search(view.text, start, end) or not talk):
            yield start, end


_COMMANDS: Final = (
    "curl wget http https xh mysql mysqldump mysqladmin mysqlimport mysqlsh mariadb psql pg sshpass mongo mongosh"
    " mongodump mongorestore redis"
)

_COMMAND_FAMILIES: Final = (
    Family(
        (Rule("secret.command", "SECRET", _short, CHECKED),),
        words=_COMMANDS,
        signs="-",
        strings=(" -u", " -p", " -a", "user"),
    ),
    Family((Rule("secret.option", "SECRET", _long, CHECKED),), signs="--", strings=("passw", "passphrase", "pwd")),
)

FAMILIES: Final = (*_TOKEN_FAMILIES, *_URL_FAMILIES, *_COMMAND_FAMILIES)
