"""Shortens a transcript to one to three sentences, never the whole word for word.

A long text is cut to its weightiest sentences, half of them at most; a short one to what is left without its function
words. Negations and question words stay, since they change the meaning. A sentence without function words is cut short.
A text of a few words stays as it is.
"""

from __future__ import annotations

import re

from threadkeep.models.sentences import sentences as split
from threadkeep.models.summary import summarise
from threadkeep.recall.normalise import BY_LANGUAGE, fold, likely_language

MOST_SENTENCES = 3
LONGEST = 600  # characters
_A_FEW_WORDS = 24  # bytes: four words, or eight characters of Chinese
_KEPT_WORDS = """
no nor not don didn doesn isn aren wasn weren won wouldn couldn shouldn hasn haven hadn
what when where which who whom whose why how only before after under over more most
ani bez nie co czego czemu czy czyj czyja czyje dlaczego gdzie ile jak jaka jaki jakie kiedy kim kogo komu kto
ktora ktore ktory skad tylko przed pod nad
"""
# As written: folded, "cửa" (a noun) would be "của" (of).
_VIETNAMESE_WORDS = """
các của được khi là một này như những ở tại thì từ và vào với đã sẽ đang rất
"""
_VIETNAMESE_LITTLE = frozenset(_VIETNAMESE_WORDS.split())
_KEPT = frozenset(_KEPT_WORDS.split())
_LITTLE = {language: words - _KEPT for language, words in BY_LANGUAGE.items()}
_WORD = re.compile(r"[^\W\d_][\w'’]*")
_CHINESE_LITTLE = re.compile("[的了在和是個个這这那與与於于及呢吧啊呀喔請请]")
_SPACES = re.compile(r"[ \t]{2,}")
_BEFORE_A_MARK = re.compile(r"\s+([,.!?;:…])")


def shortened(text: str, language: str | None = None) -> str:
    whole = " ".join(text.split())
    if (found := len(split(whole))) > MOST_SENTENCES:
        return summarise(whole, min(MOST_SENTENCES, found // 2), language, LONGEST)
    bare = without_little_words(whole, language)
    if bare != whole or len(whole.encode()) <= _A_FEW_WORDS:
        return summarise(bare, MOST_SENTENCES, language, LONGEST)
    if found > 1:
        return summarise(whole, found - 1, language, LONGEST)
    return summarise(whole, 1, language, min(LONGEST, len(whole) * 2 // 3))


def without_little_words(text: str, language: str | None) -> str:
    """The text itself where nothing else is left."""
    likely = likely_language([fold(word) for word in _WORD.findall(text)], language)

    def kept(found: re.Match[str]) -> str:
        word = found[0].lower()
        little = word in _VIETNAMESE_LITTLE if likely == "vi" else fold(word) in _LITTLE[likely]
        return "" if little else found[0]

    bare = _CHINESE_LITTLE.sub("", _WORD.sub(kept, text))
    bare = _BEFORE_A_MARK.sub(r"\1", _SPACES.sub(" ", bare)).strip(" ,;:")
    return bare if any(character.isalnum() for character in bare) else text
