"""Node 2: what the user wants; and the question back where that is not clear."""

from __future__ import annotations

from collections.abc import Sequence

from langgraph.runtime import Runtime

from threadkeep.agent.decision_log import log_decision
from threadkeep.agent.intent_model import ModelIntents
from threadkeep.agent.intents import RECENT_MESSAGES, IntentDecision, IntentInput, KeywordIntents
from threadkeep.agent.keeping import keep_reply, note_intent
from threadkeep.agent.parts import AssistantParts
from threadkeep.agent.prompt import address_of
from threadkeep.agent.state import AgentState
from threadkeep.agent.turn import Turn
from threadkeep.errors import ModelError

_MOST_QUESTIONS = 2


class Understanding:
    def __init__(self, parts: AssistantParts) -> None:
        self._parts = parts
        config = parts.folder.config
        self._keywords = KeywordIntents(config.intents)
        address = address_of(parts.folder, config.default_language)
        self._model = ModelIntents(parts.model, config.intents, address) if parts.model.generates else None

    async def intent(self, state: AgentState, runtime: Runtime[Turn]) -> AgentState:
        """A folder without intents has nothing to ask back about: everything is looked up and answered."""
        turn = runtime.context
        if not self._parts.folder.config.intents:
            return AgentState(intent=None, intent_confidence=None, need_retrieval_hint=True, clarify_questions=None)
        decision, asked_by_model = await self._decided(turn)
        clear = decision.is_clear(self._parts.folder.threshold)
        thanked = self._parts.heard(turn.text, "thanks", turn.language) is not None
        attempts = state.get("clarify_attempts") or 0
        questions = [] if clear or thanked else self._questions(turn.language, attempts, asked_by_model)
        log_decision(
            turn.scope,
            decision,
            questions,
            lambda text: self._parts.redacted(turn.scope, text),
            clarify_needed=not clear,
            request_id=turn.asked.request_id if turn.asked else None,
        )
        if clear:
            await note_intent(self._parts, turn, decision.intent)
        redacted = [self._parts.redacted(turn.scope, question, turn.language) for question in questions]
        return AgentState(
            intent=decision.intent,
            intent_confidence=decision.confidence,
            need_retrieval_hint=decision.need_retrieval,
            clarify_questions=redacted or None,
        )

    async def clarify(self, state: AgentState, runtime: Runtime[Turn]) -> AgentState:
        """The first question is the reply, and the turn is over; how often does not matter."""
        turn = runtime.context
        questions = state.get("clarify_questions") or []
        turn.reply, turn.reply_kind = questions[0], "clarify"
        turn.say(turn.reply)
        entry = await keep_reply(self._parts, turn, "clarify")
        return AgentState(
            chat_history=[*state.get("chat_history", []), entry],
            clarify_attempts=(state.get("clarify_attempts") or 0) + 1,
            last_updated=self._parts.clock().isoformat(),
        )

    async def _decided(self, turn: Turn) -> tuple[IntentDecision, Sequence[str]]:
        earlier = [message.content for message in turn.prior if message.role == "user"][1 - RECENT_MESSAGES :]
        asked = IntentInput(turn.text, earlier, turn.scope.conversation or "", turn.scope.user)
        if self._model is not None:
            try:
                decision, questions, reply = await self._model.decide(asked, turn.language)
            except ModelError as error:
                turn.errors.append(type(error).__name__)
            else:
                turn.count(reply.usage)
                if decision is not None:
                    return decision, questions
        return self._keywords.decide(asked), ()

    def _questions(self, language: str, attempts: int, by_model: Sequence[str]) -> list[str]:
        """The folder's own, another one first each time."""
        own = self._parts.phrases(language).clarify
        turned = [*own[attempts % len(own) :], *own[: attempts % len(own)]] if own else []
        return list(by_model or turned)[:_MOST_QUESTIONS]
