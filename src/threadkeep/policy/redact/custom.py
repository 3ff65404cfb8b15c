"""The operator's own rules and allow-list, as TOML that carries its own tests.

    allow = ["help@shop.example"]
    names = "rules"

    [[rule]]
    name = "ticket"
    type = "INTERNAL_ID"
    pattern = "TCK-[0-9]{6}"
    finds = ["see TCK-123456"]
    spares = ["TCK-12"]

A file whose examples do not hold, or whose pattern is not sure to cost linear time on any text, is refused when it is
read: bounded repetitions that are not nested try a bounded number of ways at each position, whatever the text.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field, replace
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from threadkeep.errors import InvalidSetting, fix_for, keys_beside
from threadkeep.policy.redact.engine import KINDS, Names, RedactionRules, Redactor
from threadkeep.policy.redact.rule import CERTAIN, Rule, every

_TOKEN: Final = re.compile(
    r"(?P<escape>\\.)|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<open>\((?:\?(?:[:=!>]|<[=!]|P?<\w+>|[a-z\-]+:?))?)"
    r"|(?P<close>\))|(?P<or>\|)|(?P<repeat>[*+?]|\{[0-9]*,?[0-9]*\})[?+]?",
    re.DOTALL,
)
_LITERAL: Final = re.compile(r"[^\\\[\](){}.^$*+?|#\s](?![*?{])|\\[^A-Za-z0-9\s](?![*?{])")
_MOST_WAYS: Final = 10_000


@dataclass(slots=True)
class _Group:
    """An open group: does it hold a repetition of varying length, in how many ways can what it holds match one text,
    and how does each of its branches begin (None: in more than one way)?"""

    varying: bool = False
    ways: int = 1
    starts: list[str | None] = field(default_factory=list[str | None])

    def branch(self, pattern: str, position: int) -> None:
        literal = _LITERAL.match(pattern, position)
        self.starts.append(literal[0].casefold() if literal else None)

    def all_ways(self) -> int:
        """Branches that begin with different characters never match the same text."""
        apart = None not in self.starts and len(set(self.starts)) == len(self.starts)
        return self.ways if apart else self.ways * len(self.starts)


def why_slow(pattern: str) -> str | None:
    """What makes this pattern risky, or None."""
    groups = [_Group()]
    groups[0].branch(pattern, 0)
    closed, closed_at = _Group(), -1
    for token in _TOKEN.finditer(pattern):
        if token["open"]:
            groups.append(_Group())
        if token["open"] or token["or"]:
            groups[-1].branch(pattern, token.end())
        elif token["close"] and len(groups) > 1:
            closed, closed_at = groups.pop(), token.end()
            groups[-1].varying |= closed.varying
            groups[-1].ways = _capped(groups[-1].ways * closed.all_ways())
        elif token["repeat"]:
            fault = _repeat(token["repeat"], closed if token.start() == closed_at else _Group(starts=[""]), groups[-1])
            if fault:
                return fault
    ways = groups[0].all_ways()
    return f"can match in more than {_MOST_WAYS:,} ways at one position" if ways > _MOST_WAYS else None


def _repeat(repeat: str, repeated: _Group, outer: _Group) -> str | None:
    least, most = _bounds(repeat)
    if most is None:
        return "has a repetition without an upper bound"
    if most > 1 and most > least and repeated.varying:
        return "repeats a group that itself repeats"
    outer.varying |= most > least
    again = repeated.all_ways() ** min(max(most - 1, 0), 32)
    outer.ways = _capped(outer.ways * again * (most - least + 1))
    return None


def _capped(ways: int) -> int:
    return min(ways, _MOST_WAYS + 1)


def _bounds(repeat: str) -> tuple[int, int | None]:
    if repeat in "*+":
        return 0, None
    if repeat == "?":
        return 0, 1
    least, comma, most = repeat[1:-1].partition(",")
    if not comma:
        return int(least or 1), int(least or 1)
    return int(least or 0), int(most) if most else None


_Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.\-]{0,40}$")]
_Type = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]{0,40}$")]
_SURE: Final = CERTAIN + 10
"""An operator's rule outweighs ours on the same text."""


class _Rule(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: _Name
    pattern: str
    finds: list[str] = Field(min_length=1)
    spares: list[str] = []
    type: _Type = "INTERNAL_ID"


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    placeholder: Literal["typed", "plain"] = "typed"
    types: frozenset[str] = frozenset(KINDS)
    regions: tuple[Annotated[str, StringConstraints(pattern=r"^[A-Z]{2}$")], ...] = ()
    allow: frozenset[str] = frozenset()
    rule: tuple[_Rule, ...] = ()
    names: Names | None = None

    def names_to_mask(self) -> Names:
        """The setting for names: a file that lists `NAME` among its types turns the rules on."""
        listed = "types" in self.model_fields_set and "NAME" in self.types
        return self.names or ("rules" if listed else "off")


def load(toml: str) -> RedactionRules:
    """Raises `InvalidSetting` that names the rule and what is wrong with it."""
    try:
        file = _File.model_validate(tomllib.loads(toml))
    except tomllib.TOMLDecodeError as error:
        raise InvalidSetting("redaction", f"is not TOML ({error})", "correct the file") from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(("redaction", *map(str, first["loc"])))
        if first["type"] == "extra_forbidden":
            fix = fix_for(str(first["loc"][-1]), keys_beside(_File, first["loc"]))
            raise InvalidSetting(field, "is not known", fix) from error
        raise InvalidSetting(field, first["msg"], "see the reference page on redaction") from error
    unknown = file.types - KINDS.keys()
    if unknown:
        raise InvalidSetting("redaction.types", f"has no type {min(unknown)}", "use the types the reference lists")
    custom, names = tuple(map(_compiled, file.rule)), file.names_to_mask()
    rules = RedactionRules(file.placeholder, file.types, file.regions, file.allow, custom, names)
    for rule in file.rule:
        _try_out(rule, rules)
    return rules


def _compiled(rule: _Rule) -> Rule:
    field = f"redaction.rule.{rule.name}.pattern"
    try:
        re.compile(rule.pattern)
    except re.error as error:
        raise InvalidSetting(field, f"is not a regular expression ({error})", "correct it") from error
    slow = why_slow(rule.pattern)
    if slow:
        raise InvalidSetting(field, slow, "give every repetition an upper bound, as in {1,64}, and nest none")
    return Rule(f"custom.{rule.name}", rule.type, every(rule.pattern), _SURE)


def _try_out(rule: _Rule, rules: RedactionRules) -> None:
    redactor = Redactor(replace(rules, names="off"))  # no example needs the model, which may not be installed
    for example in (*rule.finds, *rule.spares):
        found = any(finding.rule == f"custom.{rule.name}" for finding in redactor.explain(example))
        if found != (example in rule.finds):
            what = "does not find" if example in rule.finds else "finds"
            raise InvalidSetting(f"redaction.rule.{rule.name}", f"{what} its example {example!r}", "correct either")
