"""An answer without a model: the sentences, of what was found and of what the user said, that bear on the question.

It quotes and never invents. Where nothing bears on the question the reply is empty, and its caller says so.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from threadkeep.models.chat.questions import (
    QUESTION_MARKS,
    AlsoCalled,
    amounts_in,
    attributes_in,
    first_question,
    fits,
    foreign_terms,
    is_about_user,
    is_light,
    is_near,
    is_of_another_kind,
    is_question,
    is_question_word,
    kind_wanted,
    little_terms,
    matcher_of_own_detail,
    may_be_about_user,
    names_a_model,
    names_for,
    numbers_named,
    other_names,
    points_back,
    prices_in,
    subjects_in,
    times_in,
    unit_wanted,
    wants_head_count,
    wants_price,
    without_question_words,
)
from threadkeep.models.language import closest, detect
from threadkeep.models.sentences import sentences
from threadkeep.ports.chat import ChatReply, ChatRequest, Said
from threadkeep.ports.models import CERTAIN
from threadkeep.recall.normalise import (
    document_terms,
    fold,
    is_written_without_spaces,
    joined_terms,
    query_weights,
    stem,
    terms_of,
)

_MOST_SENTENCES = 3
_ENOUGH = 0.25  # of the question's weight, or two words of it: less is chance
_ENOUGH_WITHOUT_SPACES = 0.4  # characters of one word meet those of another more often
_SHORT = 4  # characters: one word, of which most must be held
_ENOUGH_OF_A_WORD = 0.65
_WORDS = 2
_ROUNDING = 1e-9
_OTHERWISE_CALLED = 0.7
_HEADING = 0.5  # what its words count beside those of a sentence
_MARKED = re.compile(r"(?:#{1,6} .+\n)*#{1,6} (.+)")  # as chunks of documents hold them, the last one nearest
_LONGEST = 600
_CARRIED = 0.3  # what the question before lends to one that says little
_SAYS_LITTLE = 3  # terms
_OF_THE_KIND, _RIGHT_BEHIND = 1.6, 1.4
_NEAR = 32  # characters from a name to its price
_WORD = re.compile(r"\w+")
_OF_SEVERAL = re.compile(r"\b(?:and|i|oraz|va)\b|[&,、和與与]")  # a folded heading: "Basen i parking"
_HALF, _QUARTER = 0.5, 0.24


class _Sentence(NamedTuple):
    position: int
    text: str
    terms: frozenset[str]
    of_user: bool
    about: frozenset[str]  # the terms of its heading
    is_latest: bool  # whether the last answer quoted it


class _Question(NamedTuple):
    weights: dict[str, float]
    own: frozenset[str]  # of its terms those that are not from the question before
    attributes: frozenset[str]
    subjects: frozenset[str]
    telling: frozenset[str]  # of its own terms those that say something
    names: tuple[frozenset[str], ...]  # the things that it names itself, each by its terms in any name
    near: tuple[float, ...]  # amounts


@dataclass(frozen=True, slots=True)
class OfflineModel:
    """By language: `you_said` comes before a quotation of the user, `called` has other names of what he names."""

    you_said: Mapping[str, str] = field(default_factory=dict[str, str])
    called: AlsoCalled = field(default_factory=dict[str, Mapping[str, Sequence[str]]])
    name: str = "offline"
    generates = False

    async def reply(self, request: ChatRequest) -> ChatReply:
        said = [one for one in request.messages if isinstance(one, Said)]
        questions = [one.content for one in said if one.role == "user"]
        if not questions:
            return ChatReply("")
        you_said = closest(self.you_said, request.language) or "You said earlier:"
        if first := first_question(questions[-1], questions[:-1]):
            return ChatReply(f"{you_said} “{first}”")
        answers = [one.content for one in reversed(said) if one.role == "assistant"]
        question = _question(questions, request.language, self.called)
        candidates = _candidates(request, questions[:-1], answers)
        if may_be_about_user(questions[-1]) and (own := _from_user(questions[-1], candidates, question)):
            return ChatReply(_quoted(own, you_said))
        if is_about_user(questions[-1]):
            return ChatReply("")
        return ChatReply(_quoted(_answering(questions, request.language, candidates, question), you_said))

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | ChatReply]:
        reply = await self.reply(request)
        if reply.text:
            yield reply.text
        yield reply

    async def close(self) -> None:
        """Nothing is open."""


def _from_user(text: str, candidates: Sequence[_Sentence], question: _Question) -> list[_Sentence]:
    """The user's own sentence that answers: by its kind (a name, an amount), or else by its words."""
    own = [one for one in candidates if one.of_user]
    matches = matcher_of_own_detail(text)
    if matches is not None and (found := [one for one in own if matches(one.text)]):
        return found[:1]
    return _chosen(_scored(own, question))[:1]


def _answering(
    questions: Sequence[str], language: str | None, candidates: Sequence[_Sentence], question: _Question
) -> list[_Sentence]:
    if people := wants_head_count(questions[-1]):
        candidates = [one for one in candidates if people.search(fold(one.text))]
    scored = _of_the_kind(_scored(candidates, question), questions[-1], question)
    quoted = " ".join(one.text for one in candidates if one.is_latest)
    if fits(questions[-1], "", quoted) is not None:
        return _chosen(_bounded(questions[-1], language, candidates, question, quoted))
    if near := [(1.0, one) for one in candidates if not one.of_user and is_near(question.near, one.text)]:
        return _chosen(_in_its_language(near, language))
    if named := numbers_named(questions[-1], (one.text for one in candidates)):
        return _of_the_numbered(named, language, candidates, scored, question, kind_wanted(questions[-1]))
    if wants_price(questions[-1]):
        known = frozenset[str]().union(*(one.terms | one.about for one in candidates if not one.of_user))
        if is_of_another_kind(questions[-1], language, question.subjects & known, known):
            return []
    latest = _of_the_latest(questions[-1], language, candidates, scored, question)
    return latest or _chosen(_in_its_language(_on_its_own_words(questions[-1], scored, question), language))


def _bounded(
    text: str, language: str | None, candidates: Sequence[_Sentence], question: _Question, quoted: str
) -> list[tuple[float, _Sentence]]:
    """What costs less or more than a price, of what the question names; otherwise of the kind that was quoted."""
    priced = [(1.0, one) for one in candidates if not one.of_user and prices_in(one.text)]
    shared = {one.position: len(question.own & (one.terms | one.about)) for _, one in priced}
    if not question.near:
        kinds = [one.about for _, one in priced if one.is_latest]
        priced = [(score, one) for score, one in priced if one.about in kinds and not one.is_latest]
        shared = dict.fromkeys(shared, 0)
    of_it = [(score, one) for score, one in priced if shared[one.position] == max(shared.values())]
    return [(score, one) for score, one in _in_its_language(of_it, language) if fits(text, one.text, quoted)]


def _of_the_numbered(
    named: frozenset[str],
    language: str | None,
    candidates: Sequence[_Sentence],
    scored: Sequence[tuple[float, _Sentence]],
    question: _Question,
    kind: re.Pattern[str] | None,
) -> list[_Sentence]:
    """Sentences on the models that the question names by number, or on all of their kind under another heading."""
    all_of_them = [one for one in candidates if one.terms & named and not one.of_user]
    about = {one.about for one in all_of_them}
    held = frozenset[str]().union(*(one.terms | one.about for one in all_of_them))
    beyond = {term for term in question.subjects - held if not any(map(str.isdigit, term))}
    elsewhere = [
        (score, one)
        for score, one in scored
        if one.about not in about and one.terms & beyond and not names_a_model(one.text)
        if kind is None or kind.search(fold(one.text))
    ]
    if all_of_them and elsewhere:
        return _chosen(_in_its_language(elsewhere, language))
    scored = [(score, one) for score, one in scored if one.terms & named]
    if len(named) > 1:  # each of the things that are compared
        found = [*scored, *((0.0, one) for one in all_of_them)]
        of_each = [_in_its_language([row for row in found if number in row[1].terms], language) for number in named]
        if all(of_each):
            return sorted({rows[0][1].position: rows[0][1] for rows in of_each}.values(), key=lambda one: one.position)
    return _chosen(_in_its_language(scored, language))


def _of_the_kind(
    scored: Sequence[tuple[float, _Sentence]], text: str, question: _Question
) -> list[tuple[float, _Sentence]]:
    """Where the question wants a price, say: raise the sentences that have one, most where it follows its subject."""
    kind = kind_wanted(text)
    if kind is None:
        return list(scored)
    behind = {one.position: _right_behind(kind, one, question) for _, one in scored}
    priced = frozenset[str]().union(*behind.values())
    weighed: list[tuple[float, _Sentence]] = []
    for score, one in scored:
        if not kind.search(fold(one.text)):
            weighed.append((score, one))
        elif behind[one.position]:
            weighed.append((score * (_OF_THE_KIND * _RIGHT_BEHIND), one))
        # Where other sentences hold the prices of all its subjects, its own price is of something else.
        elif not (wants_price(text) and priced and one.terms & question.subjects <= priced):
            weighed.append((score * _OF_THE_KIND, one))
    return sorted(weighed, key=lambda row: (-row[0], row[1].position))


def _right_behind(kind: re.Pattern[str], one: _Sentence, question: _Question) -> frozenset[str]:
    """The terms of the subject that a figure of this kind stands right behind."""
    folded = fold(one.text)
    named = ((stem(word[0]), word.end()) for word in _WORD.finditer(folded))
    return frozenset(term for term, end in named if term in question.subjects and kind.search(folded, end, end + _NEAR))


def _on_its_own_words(
    text: str, scored: Sequence[tuple[float, _Sentence]], question: _Question
) -> list[tuple[float, _Sentence]]:
    """What only the question before it names answers a follow-up that names nothing itself, or points back."""
    own = [(score, one) for score, one in scored if _share(question, one)]
    return own if own or (question.names and not points_back(text)) else list(scored)


def _of_the_latest(
    text: str,
    language: str | None,
    candidates: Sequence[_Sentence],
    scored: Sequence[tuple[float, _Sentence]],
    question: _Question,
) -> list[_Sentence]:
    """Of the last answer, what holds as much of the question's own words as any other sentence does.

    A question that names nothing wants something of a kind.
    """
    if unit := unit_wanted(text):
        measured = [(1.0, one) for one in candidates if one.is_latest and unit.search(fold(one.text))]
        return _chosen(_in_its_language(measured, language))
    kind = kind_wanted(text)
    latest = [one for one in candidates if one.is_latest and (kind is None or kind.search(fold(one.text)))]
    if not question.names:
        if kind is None:
            return latest if question.attributes else []  # whether there is any, of what was quoted
        return latest if not scored or len(latest) == 1 else []
    held = {one.position: _share(question, one) for one in latest}
    elsewhere = max((_share(question, one) for _, one in scored if not one.is_latest), default=0.0)
    most = max(held.values(), default=0.0)
    least = _HALF if is_written_without_spaces(text) else _QUARTER  # one character of two is half a word
    if most <= least or most < elsewhere:
        return []
    best = [(1.0, one) for one in latest if held[one.position] == most]
    return _chosen(_in_its_language(best, language))


def _share(question: _Question, one: _Sentence) -> float:
    """Of the things it names, by whatever name."""
    return sum(not name.isdisjoint(one.terms | one.about) for name in question.names) / (len(question.names) or 1)


def _quoted(chosen: Sequence[_Sentence], you_said: str) -> str:
    documents = " ".join(one.text for one in chosen if not one.of_user)
    own = " ".join(one.text for one in chosen if one.of_user)
    return documents or (f"{you_said} “{own}”" if own else "")


def _is_word(term: str) -> bool:
    return "_" not in term


def _question(questions: Sequence[str], language: str | None, called: AlsoCalled) -> _Question:
    own = _weights(questions[-1], language, called)
    carried: dict[str, float] = {}
    telling = {term: own[term] for term in own.keys() - little_terms(questions[-1], language)}
    if sum(map(_is_word, telling)) <= _SAYS_LITTLE and len(questions) > 1:
        before = _weights(questions[-2], language, called)
        answered = frozenset[str]() if telling else attributes_in(before, language)  # this one asks for another
        carried = {term: _CARRIED * weight for term, weight in before.items() if term not in answered}
    weights = carried | telling if carried else own
    kept = {term: weight for term, weight in weights.items() if not is_question_word(term, language)} or weights
    attributes = attributes_in(kept, language, is_carried=bool(carried))
    says = frozenset(term for term in telling if not is_question_word(term, language))
    times = times_in(kept, language)
    if names := _names(questions[-1], language, called, says - attributes - times):
        attributes |= times
    foreign = foreign_terms(" ".join(questions[-2:]))
    subjects = subjects_in(kept, attributes, language, foreign)
    names = names or _names(questions[-1], language, called, says - attributes)
    return _Question(kept, frozenset(own), attributes, subjects, says, names, tuple(amounts_in(questions[-1])))


def _names(text: str, language: str | None, called: AlsoCalled, terms: frozenset[str]) -> tuple[frozenset[str], ...]:
    together = [
        frozenset((*terms_of(word), *_called_so(others, language)))
        for word, others in names_for(text, language, called).items()
    ]
    rest = {term for term in terms.difference(*together) if _is_word(term)}  # a pair repeats what its two say
    return (*together, *(frozenset((term,)) for term in sorted(rest) if not is_light(term, language)))


def _weights(question: str, language: str | None, called: AlsoCalled) -> dict[str, float]:
    called_so = [name for names in names_for(question, language, called).values() for name in names]
    others = dict.fromkeys(_called_so(called_so, language), _OTHERWISE_CALLED)
    question = without_question_words(question)
    said = dict.fromkeys(joined_terms(question), 1.0) | query_weights(question, language)
    if language is not None and _base(language) != "vi":  # short English words look like syllables of Vietnamese
        said = {term: weight for term, weight in said.items() if _is_word(term)}
    return others | dict.fromkeys(other_names(said, language), _OTHERWISE_CALLED) | said


def _called_so(names: Sequence[str], language: str | None) -> list[str]:
    """Their terms; of a name of several syllables the pairs, as one alone may be half of another word."""
    in_pairs = _base(language or "") == "vi"
    terms = [(name, list(query_weights(name, language)) if in_pairs else []) for name in names]
    return [term for name, some in terms for term in ([one for one in some if "_" in one] or terms_of(name))]


def _candidates(request: ChatRequest, earlier: Sequence[str], answers: Sequence[str]) -> list[_Sentence]:
    texts = [(one.text, one.kind == "memory", one.heading) for one in request.found]
    texts += [(text, True, "") for text in reversed(earlier)]
    split: list[tuple[str, bool, str]] = []
    for text, of_user, under in texts:
        if of_user:  # without earlier questions, as they answer none
            split += [(part, True, "") for part in sentences(text) if not is_question(part)]
        else:
            split += [(part, False, about) for part, about in _under(text, under)]
    quoted = (one for one in answers if any(part in one for part, of_user, _ in split if not of_user))
    last = next(quoted, "")
    headings = {about for _, _, about in split}
    lent = {about: _lent(about, [part for part, _, its in split if its == about]) for about in headings}
    return [
        _Sentence(
            position,
            part,
            frozenset(document_terms(part)),
            of_user,
            lent[about],
            not of_user and part in last,
        )
        for position, (part, of_user, about) in enumerate(split)
    ]


def _lent(heading: str, under: Sequence[str]) -> frozenset[str]:
    """What a heading says of its sentences: of several things those that no sentence under it names itself."""
    about = frozenset(document_terms(heading))
    return about.difference(*map(document_terms, under)) if _OF_SEVERAL.search(fold(heading)) else about


def _under(text: str, heading: str) -> list[tuple[str, str]]:
    """Each sentence with the heading right above its paragraph. A heading is quoted only if nothing stands under it."""
    nearest = heading.rpartition("›")[2].strip()
    parts: list[tuple[str, str]] = []
    for paragraph in text.split("\n\n"):
        headings = _MARKED.fullmatch(paragraph)
        if headings:
            parts += [(nearest, "")] if nearest else []
            nearest = headings[1]
        else:
            parts += [(part, nearest) for part in sentences(paragraph)]
            nearest = ""
    return [*parts, (nearest, "")] if nearest else parts


def _scored(candidates: Sequence[_Sentence], question: _Question) -> list[tuple[float, _Sentence]]:
    """Those that bear on the question, best first by the share of it that they hold."""
    weights = question.weights
    holding = {term: sum(term in one.terms or term in one.about for one in candidates) for term in weights}
    worth = {term: weight / (1 + holding[term]) ** 0.5 for term, weight in weights.items() if holding[term]}
    scored = [
        (_worth(one.terms, worth) + _HEADING * _worth(one.about - one.terms, worth), one)
        for one in candidates
        if _bears_on(one, question) and not one.text.endswith(QUESTION_MARKS)
    ]
    return sorted(scored, key=lambda row: (-row[0], row[1].position))


def _worth(terms: Set[str], worth: Mapping[str, float]) -> float:
    return sum(worth[term] for term in terms & worth.keys())


def _bears_on(one: _Sentence, question: _Question) -> bool:
    """It holds something of the subject, and enough of what is said about it.

    What the user said before is no answer by being what the question carries on.
    """
    said = one.terms | one.about
    if (question.subjects and not said & question.subjects) or (one.of_user and not said & question.own):
        return False
    weights = question.weights
    counted = frozenset(weights.keys() - question.attributes if question.subjects else weights.keys())
    held = said & counted
    words = sum(_is_word(term) and (len(term) > 1 or not is_written_without_spaces(term)) for term in held)
    # What it also calls so.
    words += sum(_WORDS for name in question.names for term in name & said if not _is_word(term))
    share = max(
        sum(weights[term] for term in held & some) / (sum(weights[term] for term in some) or 1.0)
        for some in (counted, counted & question.telling)
    )
    characters = sum(len(term) == 1 and is_written_without_spaces(term) for term in counted)
    enough = _ENOUGH_OF_A_WORD if characters else _ENOUGH
    if characters > _SHORT:
        enough = _ENOUGH_WITHOUT_SPACES
    return words >= _WORDS or share + _ROUNDING >= enough


def _in_its_language(scored: Sequence[tuple[float, _Sentence]], language: str | None) -> list[tuple[float, _Sentence]]:
    """Documents often say the same in several languages. Others are quoted only where there is nothing else."""
    own: list[tuple[float, _Sentence]] = []
    for score, one in scored:
        found = detect(one.text)
        if not language or found.confidence < CERTAIN or _base(found.tag) == _base(language):
            own.append((score, one))
    return own or list(scored)


def _base(tag: str) -> str:
    return tag.split("-")[0].lower()


def _chosen(scored: Sequence[tuple[float, _Sentence]]) -> list[_Sentence]:
    """The best and what comes near it, in the order they stand in."""
    best = scored[0][0] if scored else 0.0
    kept: list[_Sentence] = []
    room = _LONGEST
    for score, one in scored:
        if score < best * 0.6 or len(kept) == _MOST_SENTENCES or one.text in [other.text for other in kept]:
            continue
        if kept and len(one.text) > room:
            continue
        kept.append(one)
        room -= len(one.text)
    return sorted(kept, key=lambda one: one.position)
