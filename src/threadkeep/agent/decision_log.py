"""One line of JSON for each decision about an intent. What a user may have said in it is masked."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence

from threadkeep.agent.intents import IntentDecision
from threadkeep.scope import Scope

_log = logging.getLogger("threadkeep.intent")
Redact = Callable[[str], str]


def log_decision(
    scope: Scope,
    decision: IntentDecision,
    questions: Sequence[str],
    redact: Redact,
    *,
    request_id: str | None = None,
) -> None:
    """The rationale goes to the debug log alone: a model wrote it, out of what the user said."""
    place = {"conversation_id": redact(scope.require_conversation()), "user_id": redact(scope.user)}
    place |= {"request_id": redact(request_id)} if request_id else {}
    line: dict[str, object] = {
        "intent": decision.intent,
        "confidence": decision.confidence,
        "need_retrieval": decision.need_retrieval,
        "clarify_needed": bool(questions),
    }
    if questions:
        line["first_clarify_question"] = redact(questions[0])
    _log.info("%s", json.dumps(line | place, ensure_ascii=False))
    if _log.isEnabledFor(logging.DEBUG):
        told = {"rationale": redact(decision.rationale), **place}
        _log.debug("%s", json.dumps(told, ensure_ascii=False))
