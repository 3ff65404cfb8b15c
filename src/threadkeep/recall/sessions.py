"""Summaries of sessions that bear on a question: they stand for turns that are kept no longer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest

from threadkeep.model import Hit, Message
from threadkeep.ports.index import Evidence, Shape, Statistics
from threadkeep.recall.candidates import turn_of
from threadkeep.recall.question import Question
from threadkeep.recall.score import fused
from threadkeep.record import StoredReflection


def text_of(summary: StoredReflection) -> str:
    """With what the session was about."""
    return "\n".join(filter(None, (*summary.reflection.causes, summary.reflection.summary)))


def sessions_on(question: Question, summaries: Sequence[StoredReflection]) -> list[StoredReflection]:
    """Those that hold a term of the question, best first."""
    wanted = frozenset(question.weights)
    turns = [
        turn_of(Message(1, str(place), "assistant", text_of(one), one.at), str(place), wanted)
        for place, one in enumerate(summaries)
    ]
    if not turns:
        return []
    holding = Counter(term for turn in turns for term in turn.counts)
    statistics = Statistics(len(turns), sum(turn.length for turn in turns) / len(turns), holding)
    shapes = {turn.conversation: Shape(1, turn.length) for turn in turns}
    hits = fused(question, Evidence(statistics, turns, shapes), len(turns))
    return [summaries[int(hit.conversation)] for hit in hits]


def in_turns(hits: Sequence[Hit], summaries: Sequence[Hit]) -> Iterator[Hit]:
    """By their ranks, since their scores are of two kinds; messages come first."""
    return (one for one in chain.from_iterable(zip_longest(hits, summaries)) if one is not None)


def as_hit(summary: StoredReflection) -> Hit:
    """Under the id of the last message it was made from: what is erased of it takes the summary along."""
    conversation = summary.conversation or ""
    why = {"session": True, "made_of": summary.evidence}
    return Hit(summary.evidence[-1], conversation, 0, "assistant", text_of(summary), summary.at, 0.0, why)
