"""What an index keeps of a message: every term as often as it stands there."""

from __future__ import annotations

from threadkeep.recall.normalise import terms_of


def every_term(text: str) -> str:
    """Separated by spaces. How often one is repeated, and how many there are, is part of what ranking weighs."""
    return " ".join(terms_of(text))
