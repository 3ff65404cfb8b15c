"""Secrets in shell commands: `curl -u user:pass`, `--password X`, `mysql -pX`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from threadkeep.policy.redact.rule import CHECKED, Family, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from threadkeep.policy.redact.view import View

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

FAMILIES: Final = (
    Family(
        (Rule("secret.command", "SECRET", _short, CHECKED),),
        words=_COMMANDS,
        signs="-",
        strings=(" -u", " -p", " -a", "user"),
    ),
    Family((Rule("secret.option", "SECRET", _long, CHECKED),), signs="--", strings=("passw", "passphrase", "pwd")),
)
