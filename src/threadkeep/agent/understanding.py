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
from threadkeep.agent.small_talk import only_introduces
from threadkeep.agent.state import AgentState
from threadkeep.agent.turn import Turn
from threadkeep.errors import ModelError
from threadkeep.models.chat.question_forms import asks

_MOST_QUESTIONS = 2
_ASKED = ("?", "？")
_FEW_WORDS = 4


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
            wanted = self._questions(turn.language, 0, ()) if self._is_vague(turn) else None
            return AgentState(intent=None, intent_confidence=None, need_retrieval_hint=True, clarify_questions=wanted)
        decision, asked_by_model = await self._decided(turn)
        clear = decision.is_clear(self._parts.folder.threshold)
        attempts = state.get("clarify_attempts") or 0
        settled = (clear and not self._names_nothing(turn)) or self._needs_no_intent(turn)
        questions = [] if settled else self._questions(turn.language, attempts, asked_by_model)
        if questions and not self._parts.model.generates and turn.talk is None and turn.text.rstrip().endswith(_ASKED):
            questions = [f"{self._parts.phrases(turn.language).nothing_found} {one}".strip() for one in questions]
        log_decision(
            turn.scope,
            decision,
            questions,
            lambda text: self._parts.redacted(turn.scope, text),
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
        turn.found = []  # nothing of it is answered with
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
        said = turn.text if self._parts.model.generates else turn.meant or turn.text
        asked = IntentInput(said, earlier, turn.scope.conversation or "", turn.scope.user)
        if self._model is not None:
            try:
                decision, questions, reply = await self._model.decide(asked, turn.language)
            except ModelError as error:
                turn.errors.append(type(error).__name__)
            else:
                turn.count(reply.usage)
                if decision is not None:
                    return decision, questions
        decision = self._keywords.decide(asked)
        if turn.quoted and not decision.is_clear(self._parts.folder.threshold) and self._is_asked(turn, decision):
            decision = self._by_what_answers(turn.quoted)
        return decision, ()

    def _is_asked(self, turn: Turn, by_keywords: IntentDecision) -> bool:
        """Somebody who tells something at length, and names no intent, may not have asked for what was found."""
        few = len(turn.meant.split()) <= _FEW_WORDS
        return few or by_keywords.confidence > 0 or asks(turn.text, turn.language)

    def _by_what_answers(self, quoted: str) -> IntentDecision:
        """A question that the documents answer is clear: what is wanted stands in the answer."""
        found = self._keywords.decide(IntentInput(quoted))
        confidence = max(found.confidence, self._parts.folder.threshold)
        return IntentDecision(found.intent, confidence, need_retrieval=True, rationale="the documents answer it")

    def _needs_no_intent(self, turn: Turn) -> bool:
        """Nothing is unclear about thanks. Where a model answers, it may have to ask back about all else."""
        if self._parts.model.generates or turn.talk is not None:
            return turn.talk is not None and turn.talk.act in ("thanks", "understood", "never_mind")
        return turn.beyond is not None or bool(turn.quoted) or only_introduces(turn.text)

    def _names_nothing(self, turn: Turn) -> bool:
        """A wish for something of an intent, and not a word about what: "I want to buy something"."""
        is_asked = turn.quoted or turn.talk or turn.beyond or asks(turn.text, turn.language)
        return not self._parts.model.generates and not is_asked and self._keywords.are_all_of(turn.meant)

    def _is_vague(self, turn: Turn) -> bool:
        """A call for help, and what follows a question back without telling more. A model sees to that itself."""
        if self._parts.model.generates:
            return False
        asked_back = bool(turn.prior) and turn.prior[-1].meta.get("type") == "clarify"
        tells_nothing = turn.talk is None and turn.beyond is None and not turn.quoted and not asks(turn.text)
        return (turn.talk is not None and turn.talk.act == "help") or (asked_back and tells_nothing)

    def _questions(self, language: str, attempts: int, by_model: Sequence[str]) -> list[str]:
        """The folder's own, another one first each time."""
        own = self._parts.phrases(language).clarify
        turned = [*own[attempts % len(own) :], *own[: attempts % len(own)]] if own else []
        return list(by_model or turned)[:_MOST_QUESTIONS]
