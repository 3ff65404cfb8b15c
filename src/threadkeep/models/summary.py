"""Extractive summaries of a text, a transcript, a session and a turn: no model, and no word that was not there.

Each sentence is weighed by how near it is to what all of them speak of (the centroid of their terms, rare terms
counting more), a little more when it comes early or gives a number. Then they are chosen one by one so that no two say
the same (maximal marginal relevance), and come in the order of the text. A text too short for that loses its function
words, except negations and question words, since they change the meaning.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from threadkeep.model import Reflection
from threadkeep.models.sentences import sentences as split
from threadkeep.recall.normalise import BY_LANGUAGE, fold, likely_language, query_terms

Vector = Mapping[str, float]
Embed = Callable[[Sequence[str]], Sequence[Sequence[float]]]

_MOST_WEIGHED = 400  # sentences; of a longer text every n-th, so that a megabyte costs what a page does
_LONGEST_SENTENCE = 2_000  # characters read of one
_RELEVANCE = 0.5  # against diversity
_EARLY = 0.15  # for the beginning of a text, falling to nothing at its end
_OPENS = 0.1
_GIVES_A_NUMBER = 0.15
_TOO_SHORT = 20  # bytes: "Hi there!" and 你好！ stand for nothing
_DIGIT = re.compile(r"\d")
_WRITTEN_WITHOUT_SPACES = re.compile("[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]")


def summarise(
    text: str,
    sentences: int = 3,
    language: str | None = None,
    longest: int = 600,
    embed: Embed | None = None,
) -> str:
    """At most `sentences` of the text's own and at most `longest` characters; a text within both comes back as it is.

    A sentence longer than that is cut at a word and ends in an ellipsis, the one character that may be added. `embed`,
    where there is one, compares sentences by meaning instead of by terms.
    """
    whole = text.strip()
    found = split(whole)
    if len(found) <= max(1, sentences) and len(whole) <= longest:
        return whole
    found = list(dict.fromkeys(" ".join(part.split()) for part in found[:: -(-len(found) // _MOST_WEIGHED)]))
    if embed:
        vectors = [_unit({str(i): value for i, value in enumerate(vector)}) for vector in embed(found)]
    else:
        terms = [query_terms(part[:_LONGEST_SENTENCE], language) for part in found]
        holding = Counter(term for its in terms for term in its)
        vectors = [_unit({term: math.log(1 + len(terms) / holding[term]) for term in its}) for its in terms]
    summary = ""
    for i in _chosen(found, vectors, max(1, sentences), longest):
        apart = summary and not _WRITTEN_WITHOUT_SPACES.match(summary[-1])
        summary += (" " if apart else "") + found[i]
    return summary if len(summary) <= longest else _cut(summary, longest)


def _unit(vector: dict[str, float]) -> Vector:
    length = math.sqrt(sum(value * value for value in vector.values()))
    return {key: value / length for key, value in vector.items()} if length else {}


def _likeness(one: Vector, other: Vector) -> float:
    if len(one) > len(other):
        one, other = other, one
    return sum(value * other.get(key, 0.0) for key, value in one.items())


def _chosen(found: Sequence[str], vectors: Sequence[Vector], most: int, longest: int) -> list[int]:
    """The best first, then what adds most to those chosen and still fits; one at least, even where none fits."""
    worth = _worth(found, vectors)
    said = [0.0] * len(found)
    chosen: list[int] = []
    room = longest
    while len(chosen) < most:
        fitting = [i for i in range(len(found)) if i not in chosen and len(found[i]) + 1 <= room]
        if not fitting and chosen:
            break
        best = max(fitting or range(len(found)), key=lambda i: _RELEVANCE * worth[i] - (1 - _RELEVANCE) * said[i])
        chosen.append(best)
        room -= len(found[best]) + 1
        said = [max(before, _likeness(vectors[best], vector)) for before, vector in zip(said, vectors, strict=True)]
    return sorted(chosen)


def _worth(found: Sequence[str], vectors: Sequence[Vector]) -> list[float]:
    total: dict[str, float] = {}
    for vector in vectors:
        for key, value in vector.items():
            total[key] = total.get(key, 0.0) + value
    centre = _unit(total)
    worth = [_likeness(vector, centre) for vector in vectors]
    for i, sentence in enumerate(found):
        worth[i] += _EARLY * (1 - i / len(found)) + (_OPENS if i == 0 else 0.0)
        worth[i] += _GIVES_A_NUMBER if _DIGIT.search(sentence) else 0.0
        worth[i] *= 0.5 if len(sentence.encode("utf-8", "replace")) < _TOO_SHORT else 1.0
    return worth


def _cut(sentence: str, longest: int) -> str:
    kept = sentence[: max(0, longest - 1)]
    at_a_word = kept.rsplit(" ", 1)[0]
    return (at_a_word if len(at_a_word) > longest // 2 else kept).rstrip() + "…"


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


LONGEST_OF_SESSION = 1_200  # characters
_OF_USER, _OF_ANSWERS = 5, 3  # sentences
_USERS_SHARE = 800  # characters


def summarise_session(user: Sequence[str], answers: Sequence[str], language: str | None = None) -> str:
    """Empty for a session without anything to summarise."""
    stated = _share_of_session(user, _OF_USER, _USERS_SHARE, language)
    answered = _share_of_session(answers, _OF_ANSWERS, LONGEST_OF_SESSION - _USERS_SHARE - 1, language)
    return "\n".join(filter(None, (stated, answered)))


def _share_of_session(texts: Sequence[str], most: int, longest: int, language: str | None) -> str:
    telling = [text for text in texts if len(query_terms(text, language)) > 1]
    whole = "\n".join(telling)
    if len(split(whole)) > most:
        return summarise(whole, most, language, longest)
    return summarise("\n".join(without_little_words(text, language) for text in telling), most, language, longest)


_LONGEST_REFLECTION = 300  # characters
_MOST_CAUSES = 3
# What comes after these words is a reason, in English, Vietnamese, Polish and Chinese.
_BEFORE_A_CAUSE = re.compile(
    r"(?:\b(?:because(?: of)?|due to|since|as a result of)\b|(?<!\w)(?:bởi vì|vì|do|tại vì|bởi)(?!\w)"
    r"|\b(?:ponieważ|bo|gdyż|z powodu|dlatego że|przez to,? że)\b|因為|因为|由於|由于)\s*",
    re.IGNORECASE,
)
_ENDS_A_CAUSE = re.compile(r"[,;，；。.!?！？]|\s+(?:so|therefore|więc|nên)\s+|所以", re.IGNORECASE)
_SHORTEST_CAUSE = 3


def reflect_extractively(user: str, assistant: str, language: str | None = None) -> Reflection:
    """Nothing in it was not said."""
    together = "\n".join(text.strip() for text in (user, assistant) if text.strip())
    return Reflection(summarise(together, 2, language, _LONGEST_REFLECTION), tuple(causes_in(user, assistant)))


def causes_in(*texts: str) -> list[str]:
    found: list[str] = []
    for text in texts:
        for sentence in split(text):
            match = _BEFORE_A_CAUSE.search(sentence)
            if match is not None:
                cause = _ENDS_A_CAUSE.split(sentence[match.end() :], maxsplit=1)[0].strip()
                if len(cause) >= _SHORTEST_CAUSE and cause not in found:
                    found.append(cause)
    return found[:_MOST_CAUSES]
