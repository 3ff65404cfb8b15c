"""Features to hits: one weighted sum, the same for every set, that says of each hit what it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from threadkeep.model import Hit
from threadkeep.recall.evidence import Evidence, Turn
from threadkeep.recall.features import Column, Reading
from threadkeep.recall.presets import DEFAULT
from threadkeep.recall.question import Question

_TOLD = 4  # reasons a hit gives
_ALIKE = 0.4  # a cosine that speaks for a turn by itself


def fused(question: Question, evidence: Evidence, k: int, preset: Mapping[str, float] = DEFAULT) -> tuple[Hit, ...]:
    """Best first; equal scores by newest `seq`, then id, so that the order never depends on the store.

    A turn that neither holds anything asked for nor is alike by its vector is no hit: what stands around the hits is
    given to the model beside them, and speaks for them here.
    """
    reading = Reading(question, evidence)
    columns = reading.columns()
    hits = [
        _hit(turn, row, columns, preset)
        for row, turn in enumerate(reading.turns)
        if reading.own[row] > 0 or evidence.cosines.get(turn.message.id, 0.0) >= _ALIKE
    ]
    return tuple(sorted(hits, key=lambda hit: (-hit.score, -hit.seq, hit.message_id))[:k])


def _hit(turn: Turn, row: int, columns: Mapping[str, Column], preset: Mapping[str, float]) -> Hit:
    parts = {name: weight * columns[name][row] for name, weight in preset.items() if columns[name][row]}
    message = turn.message
    why = _why(turn, parts)
    return Hit(
        message.id, turn.conversation, message.seq, message.role, message.content, message.ts, sum(parts.values()), why
    )


def _why(turn: Turn, parts: Mapping[str, float]) -> dict[str, Any]:
    """What spoke for it most, and the terms it holds."""
    most = sorted(parts, key=lambda name: -abs(parts[name]))[:_TOLD]
    return {"terms": sorted(turn.counts), "because": {name: round(parts[name], 3) for name in most}}
