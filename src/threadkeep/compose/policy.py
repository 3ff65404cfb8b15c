"""Settings to the rules of admission: what is masked, how, and for whom it differs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from threadkeep.errors import InvalidSetting
from threadkeep.policy.admit import Rules
from threadkeep.policy.redact import (
    KeyedNumbers,
    RedactionRules,
    Redactor,
    load_rules,
    shared_redactor,
    shortest_key,
)
from threadkeep.ports.redactor import Redacted
from threadkeep.ports.redactor import Redactor as RedactorPort
from threadkeep.scope import Scope, length_prefixed
from threadkeep.settings import Settings


def admission_rules(settings: Settings) -> Rules:
    """Raises `InvalidSetting`, and `MissingExtra` where names are to be recognised and nothing is there to do it."""
    rules = redaction_rules(settings)
    everyone = shared_redactor(rules)
    key = None if settings.redaction_key is None else shortest_key(settings.redaction_key.encode())
    own = _own_redactors(settings, rules)
    if not own and key is None:
        return Rules(everyone, settings.max_message_bytes)

    def redactor_for(scope: Scope) -> RedactorPort:
        redactor = own.get(scope.tenant, everyone)
        return redactor if key is None else _Numbering(redactor, KeyedNumbers(key, _key(scope)))

    return Rules(everyone, settings.max_message_bytes, redactor_for=redactor_for)


def _own_redactors(settings: Settings, rules: RedactionRules) -> dict[str, Redactor]:
    """Of the tenants whose phone numbers are of other countries; tenants of the same countries share one."""
    return {
        tenant: shared_redactor(replace(rules, regions=regions)) for tenant, regions in settings.tenant_regions.items()
    }


def _key(scope: Scope) -> bytes:
    return length_prefixed((scope.tenant, scope.user, scope.conversation or ""))


class _Numbering:
    """A redactor for one conversation."""

    __slots__ = ("_numbers", "_redactor")

    def __init__(self, redactor: Redactor, numbers: KeyedNumbers) -> None:
        self._redactor = redactor
        self._numbers = numbers

    def __call__(self, text: str, language: str | None = None) -> Redacted:
        return self._redactor(text, language, self._numbers)


def redaction_rules(settings: Settings) -> RedactionRules:
    """Return the built-in rules with those of the operator's file. A setting that is not left at its default wins over
    the file. Raise `InvalidSetting`."""
    rules = RedactionRules()
    if settings.redaction_rules is not None:
        try:
            rules = load_rules(Path(settings.redaction_rules).read_text("utf-8-sig"))
        except (OSError, UnicodeDecodeError):
            problem = ("cannot be read", "name a TOML file that exists, in UTF-8")
            raise InvalidSetting("THREADKEEP_REDACTION_RULES", *problem) from None
    if settings.redaction_style == "plain":
        rules = replace(rules, placeholder="plain")
    if settings.redaction_names != "off":
        rules = replace(rules, names=settings.redaction_names)
    return replace(rules, regions=settings.redaction_regions) if settings.redaction_regions else rules
