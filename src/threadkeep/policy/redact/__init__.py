"""Masking personal data and secrets in free text, before anything is written.

>>> redact("mail me: ann@example.org").text
'mail me: [REDACTED:EMAIL]'
"""

from threadkeep.policy.redact.engine import RedactionRules, Redactor, explain, redact
from threadkeep.policy.redact.kinds import KINDS
from threadkeep.policy.redact.result import Finding, Redaction, Span

__all__ = ["KINDS", "Finding", "Redaction", "RedactionRules", "Redactor", "Span", "explain", "redact"]
