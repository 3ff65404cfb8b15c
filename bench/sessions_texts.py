"""The same talk for everyone: a fixed generator of turns in plain English words, some numbers, nothing personal.

Words of a real language, because a store that looks at what it is given (its language, its numbers) must meet here what
it meets in service. Numbers come as they do in LongMemEval's messages of these lengths: one of seven from users holds
any, one of three from assistants, and then about two and six of them.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

Message = tuple[str, str]  # role, text
Turn = tuple[Message, Message]

_USER_CHARACTERS = 200
_USER_NUMBERS = (0, 0, 0, 0, 0, 0, 2)  # one of these, at random
_ASSISTANT_CHARACTERS = 600
_ASSISTANT_NUMBERS = (0, 0, 6)
_COMMON = """
the to and of a in is it you that for on with this are be as have was but not they we can or an will if more about
there when so all what would up out like one time just also how some than into could them other then only its two been
over new after may use make good well should because any these most people first very way even want need know see take
give keep find think look come help start work day week month year morning evening night home house room table door
window kitchen garden street city country river mountain forest beach sea summer winter spring autumn weather rain
snow wind sun water coffee tea bread rice soup salad fruit cake dinner lunch breakfast recipe dish taste fresh warm
cold hot sweet bitter family friend sister brother mother father child dog cat bird horse book page story letter word
song music film game sport team match race bike train bus car road trip travel hotel ticket plan idea question answer
reason problem choice chance change part piece place side end point line list note name number color light sound
picture paper pen phone screen key market shop price cost money bank card offer order box bag shoe coat shirt dress
glass bottle plate knife paint wood stone metal paper cloth wool leather small large big little long short high low
early late young old easy hard simple quick slow quiet loud clean dirty dry wet full empty open closed ready busy free
happy sad kind proud calm brave strong weak rich poor learn teach read write speak listen watch play run walk sit
stand sleep wake cook eat drink buy sell pay send bring carry build fix break cut draw paint sing dance swim climb
drive ride fly wait stay leave return visit meet call ask tell show explain remember forget hope wish try decide agree
finish begin stop continue follow lead join share save spend grow plant
"""
_RARE_STEMS = """
absor accom adapt balan calcu captur combin compar concen contain contrib conven corres cultiv declar defin deliver
depend describ determin develop direct discover distrib educ elabor employ encour enhanc establish evalu examin expand
explor express gener illustr imagin implement improv indic influenc inform inspir instruct integr interpret invest
maintain manag measur motiv observ oper organ perform prepar present preserv process produc project promot protect
provid record reduc reflect regul relat repair replac report represent research resolv respond restor select separ
simpl solv stimul structur suggest support surviv sustain transform translat transport understand valu
"""
_ENDINGS = ("ing", "ed", "er", "ers", "ation", "ations", "ive", "ively", "able", "ably", "ment", "ments", "al", "ally")
_PREFIXES = ("", "re", "un", "over", "under", "inter", "pre", "non", "mis", "out")


def turns(seed: int = 7) -> Iterator[Turn]:
    """Without end. Common words come often and rare ones seldom, as in real talk: an index feels the difference."""
    rng = random.Random(seed)
    words = _vocabulary()
    weights = list(itertools.accumulate(1 / (rank + 1) for rank in range(len(words))))
    while True:
        yield (
            ("user", _text(rng, words, weights, _USER_CHARACTERS, rng.choice(_USER_NUMBERS))),
            ("assistant", _text(rng, words, weights, _ASSISTANT_CHARACTERS, rng.choice(_ASSISTANT_NUMBERS))),
        )


def _vocabulary() -> list[str]:
    rare = (
        f"{prefix}{stem}{ending}"
        for prefix, ending, stem in itertools.product(_PREFIXES, _ENDINGS, _RARE_STEMS.split())
    )
    return list(dict.fromkeys([*_COMMON.split(), *itertools.islice(rare, 5_000)]))


def _text(rng: random.Random, words: list[str], weights: list[float], length: int, numbers: int) -> str:
    chosen = rng.choices(words, cum_weights=weights, k=length // 3)
    for place in rng.sample(range(length // 8), numbers):  # early enough to be within the length
        chosen[place] = str(rng.randint(2, 250))
    return " ".join(chosen)[:length].strip() + "."
