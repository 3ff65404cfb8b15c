"""Turns for the tests of ranking: each text said in order, in one conversation unless told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from threadkeep.model import Message, Role
from threadkeep.ports.index import Evidence, Shape, Statistics, Turn
from threadkeep.recall.normalise import terms_of
from threadkeep.recall.question import Question

_WHEN = datetime(2026, 1, 1, tzinfo=UTC)


def evidence_of(
    question: Question,
    texts: Sequence[str | tuple[str, str]],
    *,
    roles: Sequence[Role] = (),
    when: Sequence[datetime] = (),
    cosines: dict[str, float] | None = None,
) -> Evidence:
    """Ids are `0`, `1`, … in order; a text may name its conversation: `("c2", "…")`."""
    placed = [one if isinstance(one, tuple) else ("c1", one) for one in texts]
    seqs: Counter[str] = Counter()
    terms: Counter[str] = Counter()
    turns: list[Turn] = []
    holding: Counter[str] = Counter()
    for number, (conversation, text) in enumerate(placed):
        seqs[conversation] += 1
        counts = Counter(terms_of(text))
        terms[conversation] += counts.total()
        held = {term: counts[term] for term in question.weights if term in counts}
        holding.update(held.keys())
        role: Role = roles[number] if roles else "user"
        message = Message(
            id=str(number),
            seq=seqs[conversation],
            role=role,
            content=text,
            ts=when[number] if when else _WHEN,
            language=None,
        )
        turns.append(Turn(message, conversation, counts.total(), held))
    mean = sum(turn.length for turn in turns) / max(1, len(turns))
    shapes = {name: Shape(seqs[name], terms[name]) for name in seqs}
    return Evidence(Statistics(len(turns), mean, holding), turns, shapes, cosines or {})
