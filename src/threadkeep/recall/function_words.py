"""The little words of a question that say nothing about what is asked: which of them a text holds, by its language.

Folded, as `normalise` leaves them. One language is chosen per text before any word is called small: Polish "to" and
English "so" are Vietnamese words of substance once their marks are gone.
"""

from __future__ import annotations

from collections.abc import Collection

_ENGLISH = """
a about after again all also am an and any are aren as at be because been before being between both but by can could
couldn d did didn do does doesn doing don down during each few for from further had hadn has hasn have haven having he
her here hers herself him himself his how i if in into is isn it its itself just ll m me more most much must my myself
no nor not now of off on once only or other our ours ourselves out over own re s same shall she should shouldn so some
such t than that the their theirs them themselves then there these they this those through to too under until up upon
us ve very was wasn we were weren what when where which while who whom whose why will with won would wouldn you your
yours yourself yourselves many
"""
_POLISH = """
a aby albo ale ani az bardzo bez bo byc byl byla byli bylo byly bym byt by bys bedzie beda chce ci cie co cos czego
czemu czy czyj czyja czyje czym dla dlaczego do gdy gdyz gdzie go i ich ile im ja jak jaka jaki jakie jakich jakiego
jakiej jakim jakimi jako je jednak jego jej jemu jest jestem jestes jesli jeszcze juz kazdy kiedy kim kogo komu kto
ktora ktore ktorego ktorej ktory ktorych ktorym ktorymi lecz lub ma mam masz mi mial miala mna mnie moj moja moje moze
mozna mu my na nad nam nas nasz nawet nia nich nie niego niej nim niz no o od on ona one oni ono oraz pan pana pani po
pod poniewaz przed przez przy roku sa sie skad soba sobie ta tak taka taki takie tam te tego tej temu ten teraz tez to
toba tobie tu twoj twoja twoje ty tych tylko tym u w we wam was wasz wiec wszystko wtedy z za ze zeby
"""
# Few, since one folded syllable is many words: "da" is already, skin and stone.
_VIETNAMESE = """
bao bi cac cua dau duoc gi khi khong la mot nao nay nhieu nhu nhung o tai thi tu va vao voi
"""
_CHINESE = frozenset("的是了在和有一不個个這这那為为什麼么嗎吗哪誰谁何與与於于及")  # as single characters; pairs tell

BY_LANGUAGE: dict[str, frozenset[str]] = {
    "en": frozenset(_ENGLISH.split()) | _CHINESE,
    "pl": frozenset(_POLISH.split()) | _CHINESE,
    "vi": frozenset(_VIETNAMESE.split()) | _CHINESE,
}


def function_words(words: Collection[str], language: str | None = None) -> frozenset[str]:
    """Of the language named (`vi`, `pl-PL`), or of the one whose little words the text holds most."""
    return BY_LANGUAGE[likely_language(words, language)]


def likely_language(words: Collection[str], language: str | None = None) -> str:
    """The one named if it is known here, or the one whose little words the text holds most; English if none."""
    named = (language or "").split("-")[0].lower()
    if named in BY_LANGUAGE:
        return named
    return max(BY_LANGUAGE, key=lambda tag: sum(word in BY_LANGUAGE[tag] for word in words))
