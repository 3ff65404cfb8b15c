"""Masking personal data and secrets in free text, before anything is written.

>>> redact("mail me: ann@example.org").text
'mail me: [REDACTED:EMAIL]'
"""

from threadkeep.policy.redact.custom import load as load_rules
from threadkeep.policy.redact.engine import (
    KINDS,
    Finding,
    Redaction,
    RedactionRules,
    Redactor,
    Span,
    explain,
    redact,
    shared_redactor,
    warm_up,
)
from threadkeep.policy.redact.ner import PresidioRecogniser, Recogniser
from threadkeep.policy.redact.ordinals import KeyedNumbers, Ordinals, shortest_key

__all__ = [
    "KINDS",
    "Finding",
    "KeyedNumbers",
    "Ordinals",
    "PresidioRecogniser",
    "Recogniser",
    "Redaction",
    "RedactionRules",
    "Redactor",
    "Span",
    "explain",
    "load_rules",
    "redact",
    "shared_redactor",
    "shortest_key",
    "warm_up",
]
