"""`detect`: which language a text is in. Offline, deterministic, no state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from threadkeep.models.language.cld2 import named_by_cld2
from threadkeep.models.language.han import script_of
from threadkeep.models.language.latin import COLUMNS, LANGUAGES, OTHER, likelihoods, scores
from threadkeep.models.language.little_words import told_by_little_words
from threadkeep.models.language.scripts import LANGUAGES_OF, Pieces, pieces_of
from threadkeep.models.language.tags import SUPPORTED, Allowed, allowed_tags
from threadkeep.ports.language import CERTAIN, UNDETERMINED, Detection

_ANY = allowed_tags((*SUPPORTED, *(language for those in LANGUAGES_OF.values() for language in those)))
_HAN_ALONE = 0.98
_BY_LITTLE_WORDS = 0.85
_GUESS = 0.5  # the first of several languages that share a script


class _Candidate(NamedTuple):
    confidence: float  # that the text is in this language
    weight: float  # of its writing system in the text
    tag: str


def detect(text: str, allowed: Iterable[str] | None = None) -> Detection:
    """The language of `text` among `allowed` (BCP 47), in the form it has there: `pl-PL` if that is what is allowed.

    Without `allowed`: the supported ones, and those that a script or pycld2 names. A text with nothing to read in
    it (digits, emoji), or with no letter of an allowed language's script, is `und` with confidence 0. The writing
    system that most of a mixed text is in decides. Raises `InvalidInput` on an allowed tag that is none.
    """
    choice = _ANY if allowed is None else allowed_tags(allowed)
    pieces = pieces_of(text)
    found = [*_latin(pieces, choice), *_han(pieces, choice), *_by_script(pieces, choice)]
    if not found:
        return Detection(UNDETERMINED, 0.0)
    best = max(found, key=lambda candidate: candidate.weight)
    return Detection(best.tag, round(best.confidence * best.weight, 4))


def _latin(pieces: Pieces, choice: Allowed) -> list[_Candidate]:
    if not pieces.words:
        return []
    scored = scores(pieces.words)
    certainty = likelihoods(scored, COLUMNS)
    foreign = _foreign_tag(pieces, choice, certainty[OTHER])
    columns = [column for column, language in enumerate(LANGUAGES) if language in choice.languages()]
    columns += [OTHER] if foreign else []
    if not columns:
        return []
    restricted = likelihoods(scored, columns)
    best, sure = _told(pieces, columns[restricted.index(max(restricted))], columns, certainty)
    tag = foreign if best == OTHER else choice.first(LANGUAGES[best])
    assert tag is not None  # its column would not be there
    return [_Candidate(sure, pieces.share("latin"), tag)]


def _told(pieces: Pieces, best: int, columns: Sequence[int], certainty: Sequence[float]) -> tuple[int, float]:
    """By the letters; where those leave it open, by the little words."""
    if certainty[best] < CERTAIN:
        told = told_by_little_words(pieces.words, certainty)
        if told is not None and told in columns:
            return told, max(certainty[told], _BY_LITTLE_WORDS)
    return best, certainty[best]


def _foreign_tag(pieces: Pieces, choice: Allowed, certainty: float) -> str | None:
    """The allowed tag that stands for "none of ours", if there is any."""
    others = [tag for tag in choice.tags if tag.language not in _NOT_LATIN and tag.language not in LANGUAGES]
    if choice is not _ANY and len(others) < 2:
        return others[0].text if others else None
    if certainty < _GUESS:
        return None if choice is _ANY else others[0].text
    named = named_by_cld2(pieces.text)
    if choice is _ANY:
        return named if named and named.split("-")[0] not in (*_NOT_LATIN, *LANGUAGES) else None
    return (choice.first(named) if named else None) or others[0].text


def _han(pieces: Pieces, choice: Allowed) -> list[_Candidate]:
    if not pieces.amounts["han"] or (pieces.japanese and "ja" in choice.languages()):
        return []
    script, certainty = script_of(pieces.text)
    tag = choice.chinese(script)
    if tag is None:
        return []
    sure = _HAN_ALONE * (certainty if choice.tells_scripts_apart() else 1)
    sure *= pieces.amounts["han"] / (pieces.amounts["han"] + pieces.amounts["kana"])
    return [_Candidate(sure, pieces.share("han", "kana"), tag)]


def _by_script(pieces: Pieces, choice: Allowed) -> list[_Candidate]:
    return [
        _Candidate(certainty, pieces.share(*(("kana", "han") if script == "kana" else (script,))), tag)
        for script, languages in LANGUAGES_OF.items()
        if pieces.amounts[script] and (script != "kana" or pieces.japanese)
        for tag, certainty in _one_of(pieces, choice, languages)
    ]


def _one_of(pieces: Pieces, choice: Allowed, languages: Sequence[str]) -> list[tuple[str, float]]:
    possible = [tag for tag in choice.tags if tag.language in languages]
    if len(possible) < 2:
        return [(tag.text, _HAN_ALONE) for tag in possible]
    named = choice.first(named_by_cld2(pieces.text) or UNDETERMINED)
    return [(named, _HAN_ALONE)] if named else [(possible[0].text, _GUESS)]


_NOT_LATIN = frozenset(("zh", *(language for those in LANGUAGES_OF.values() for language in those)))
