"""An extractive summary of a session: the user's statements, and the answers.

Of a long one the weightiest sentences, of a short one what is left without function words: never the whole session.
A message of one word ("Noted.") adds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from threadkeep.models.media.briefly import without_little_words
from threadkeep.models.sentences import sentences
from threadkeep.models.summary import summarise
from threadkeep.recall.normalise import query_terms

LONGEST = 1_200  # characters
_OF_USER, _OF_ANSWERS = 5, 3  # sentences
_USERS_SHARE = 800  # characters


def summarise_session(user: Sequence[str], answers: Sequence[str], language: str | None = None) -> str:
    """Empty for a session without anything to summarise."""
    stated = _shortened(user, _OF_USER, _USERS_SHARE, language)
    answered = _shortened(answers, _OF_ANSWERS, LONGEST - _USERS_SHARE - 1, language)
    return "\n".join(filter(None, (stated, answered)))


def _shortened(texts: Sequence[str], most: int, longest: int, language: str | None) -> str:
    telling = [text for text in texts if len(query_terms(text, language)) > 1]
    whole = "\n".join(telling)
    if len(sentences(whole)) > most:
        return summarise(whole, most, language, longest)
    return summarise("\n".join(without_little_words(text, language) for text in telling), most, language, longest)
