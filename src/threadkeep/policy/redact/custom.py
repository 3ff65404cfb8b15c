"""The operator's own rules and allow-list, as TOML that carries its own tests.

    allow = ["help@shop.example"]
    names = "rules"

    [[rule]]
    name = "ticket"
    type = "INTERNAL_ID"
    pattern = "TCK-[0-9]{6}"
    finds = ["see TCK-123456"]
    spares = ["TCK-12"]

A file whose examples do not hold, or whose pattern could be slow on a hostile text, is refused when it is read.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from threadkeep.errors import InvalidSetting
from threadkeep.policy.redact.engine import Names, RedactionRules, Redactor
from threadkeep.policy.redact.kinds import KINDS
from threadkeep.policy.redact.patterns import why_slow
from threadkeep.policy.redact.rule import CERTAIN, Rule, every
from threadkeep.unknown_keys import fix_for, keys_beside

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
        """A file that lists `NAME` among its types asks for names without saying so twice."""
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
