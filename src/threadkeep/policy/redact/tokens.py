"""Secrets with a form of their own: vendor tokens, JWTs, private keys, authorisation headers, connection strings.

The rule's name says which; the type is SECRET for all of them. A new vendor is one entry in `_VENDORS`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from threadkeep.policy.redact.rule import CERTAIN, CHECKED, Family, Finder, Rule, Spans, every

if TYPE_CHECKING:
    from collections.abc import Iterator

    from threadkeep.policy.redact.view import View

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


def _long_word(view: View) -> bool:
    return view.stretch(16)


_ANY_VENDOR: Final = "|".join(form.replace("}+", "}").replace("(?<=Key=)", "Key=") for _, _, form in _VENDORS)
"""All the forms, in an automaton's words: it reads everything once and needs no possessive marks."""

FAMILIES: Final = (
    Family(
        tuple(Rule(f"secret.{name}", "SECRET", _prefixed(cues, form), CERTAIN) for name, cues, form in _VENDORS),
        digits=1,
        narrow=_ANY_VENDOR,
    ),
    Family(
        (Rule("secret.jwt", "SECRET", _prefixed(("eyj",), _JWT), CERTAIN),),
        signs=r"\.",
        strings=("eyj",),
        gate=_long_word,
    ),
    Family((Rule("secret.pem", "SECRET", _pem, CERTAIN),), words="begin", strings=("-----begin",), sign="-----BEGIN "),
    Family((Rule("secret.header", "SECRET", every(_HEADER), CERTAIN),), words="authorization"),
    Family((Rule("secret.bearer", "SECRET", every(_BEARER), CHECKED),), words="bearer basic"),
    Family((Rule("secret.connection", "SECRET", every(_CONNECTION), CERTAIN + 5),), signs="://", strings=("://",)),
    Family((Rule("secret.userinfo", "SECRET", every(_USERINFO), CERTAIN + 5),), signs=":[^@]{0,200}@", sign="@"),
)
