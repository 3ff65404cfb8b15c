"""Nodes 0, 1 and 6: the greeting, receiving a message, and the end of the conversation."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from langgraph.runtime import Runtime

from threadkeep.agent.dialogue_acts import beyond_documents, is_goodbye, without_greeting
from threadkeep.agent.keeping import (
    earlier_in_session,
    history_of,
    keep_question,
    keep_reply,
    note_language,
    unerased,
)
from threadkeep.agent.tools import fill_slots
from threadkeep.agent.turn import AgentState, AssistantParts, ChatEntry, Turn, entry_of
from threadkeep.agent.window import said_before, vouched_for
from threadkeep.errors import NotFound, ScopeErased, StoreError
from threadkeep.model import Message
from threadkeep.models.language import decide
from threadkeep.ports.chat import Asked

_log = logging.getLogger("threadkeep.assistant")


class Receiving:
    def __init__(self, parts: AssistantParts) -> None:
        self._parts = parts

    async def greet(self, state: AgentState, runtime: Runtime[Turn]) -> AgentState:
        turn = runtime.context
        turn.reply = self._parts.greeting(turn.language) or ""
        turn.reply_kind = "greeting"
        turn.say(turn.reply)
        entry = await keep_reply(self._parts, turn, "greeting")
        return AgentState(chat_history=[entry], last_updated=self._parts.now(), clarify_attempts=0)

    async def receive(self, state: AgentState, runtime: Runtime[Turn]) -> AgentState:
        """The redacted message is stored, and only then is anything made of it."""
        turn = runtime.context
        question = turn.question or Asked(turn.scope, "")
        session = await self._read(turn, question)
        await self._settle_language(turn, question, session)
        await keep_question(self._parts, turn, question)
        redacted = self._parts.memory.redactor_at(turn.scope)(question.text, turn.language)
        slots, wanted = self._parts.memory.slots, self._parts.config.slots
        if slots is not None and wanted.types:
            await fill_slots(slots, turn.scope, turn.text, redacted, wanted.types, wanted.minutes * 60)
        self._take_in(turn)
        kept = redacted.text
        if question.event is not None:
            kept = self._parts.redacted(turn.scope, question.kept_text, turn.language)
        current = ChatEntry(id=turn.user_message_id or "", role="user", content=kept, created_at=self._parts.now())
        return AgentState(
            chat_history=[*map(entry_of, turn.prior), current],
            last_updated=self._parts.now(),
            preferred_language=turn.language,
            clarify_attempts=clarify_attempts(turn.prior),
            clarify_questions=None,
        )

    async def finish(self, state: AgentState, runtime: Runtime[Turn]) -> AgentState:
        """The user wants nothing more."""
        turn = runtime.context
        turn.reply = self._parts.phrases(turn.language).farewell
        turn.say(turn.reply)
        entry = await keep_reply(self._parts, turn)
        await self.end(turn)
        return AgentState(chat_history=[*state.get("chat_history", []), entry], last_updated=self._parts.now())

    async def end(self, turn: Turn) -> None:
        """Mark the conversation inactive, from when retention counts, and delete its slots and scratch state."""
        memory = self._parts.memory
        try:
            await memory.close_conversation(turn.scope)
        except (NotFound, ScopeErased, StoreError) as error:
            turn.errors.append(type(error).__name__)
            if isinstance(error, StoreError):
                _log.warning("the end of a conversation was not marked: %s", error)
        for kept in (memory.slots, memory.scratch):
            try:
                if kept is not None:
                    await kept.erase(turn.scope)
            except StoreError as error:
                turn.errors.append(type(error).__name__)

    async def _read(self, turn: Turn, question: Asked) -> str | None:
        """Put the earlier messages into the turn and return the session's language."""
        if question.history is not None:
            turn.prior = tuple(question.history)
            if question.language:
                return question.language
        history = await history_of(self._parts, turn)
        if history is None:
            return question.language
        turn.scope = unerased(turn.scope, history.scope)
        earlier = await earlier_in_session(self._parts.memory, history, question.message_id)
        if question.history is None:
            turn.prior = said_before(question.message_id, vouched_for(earlier.messages))
            turn.is_whole = earlier.is_whole
        turn.kept_language = history.language if earlier.is_anew else earlier.language
        return question.language or earlier.language

    async def _settle_language(self, turn: Turn, question: Asked, session: str | None) -> None:
        """Decide the language by the first message that shows one, then keep the session's unless the user requests
        another."""
        seen = self._parts.redacted(turn.scope, question.text, session)
        decision = await decide(seen, session, self._parts.languages(turn.scope), self._parts.detector)
        turn.settled_language = decision.settled
        settled = decision.settled or self._spoken_in(turn) or (decision.tag if decision.source == "script" else None)
        turn.language = settled or self._parts.config.default_language
        if decision.source in ("requested", "detected") and turn.kept_language not in (None, turn.language):
            await note_language(self._parts, turn, turn.language)

    def _take_in(self, turn: Turn) -> None:
        """What kind of message it is, and how it is looked up."""
        spelling = self._parts.spelling()
        turn.small_talk = self._parts.small_talk(turn.text, turn.settled_language) or self._parts.small_talk(
            spelling.meant(turn.text, turn.language), turn.settled_language
        )
        turn.beyond = None if turn.small_talk else beyond_documents(turn.text)
        turn.meant = spelling.meant(without_greeting(turn.text), turn.language)
        ends = turn.small_talk is not None and turn.small_talk.act in ("goodbye", "enough")
        # In any language of the assistant: users switch languages to say goodbye.
        every = [self._parts.phrases(tag) for tag in {turn.language, *self._parts.worded}]
        stops, thanks = ([one for said in every for one in getattr(said, name)] for name in ("stop", "thanks"))
        turn.wants_to_stop = ends or is_goodbye(turn.text, stops, thanks)

    def _spoken_in(self, turn: Turn) -> str | None:
        """The language of a hello or a goodbye, which holds until a message shows more. "OK" belongs to every one."""
        said = [turn.text, *(one.content for one in reversed(turn.prior) if one.role == "user")]
        heard = (small_talk for text in said if (small_talk := self._parts.small_talk(text)))
        return next((small_talk.language for small_talk in heard if small_talk.act != "understood"), None)


def clarify_attempts(prior: Sequence[Message]) -> int:
    """Questions back since the last answer, counted from what is marked in the history."""
    attempts = 0
    for message in reversed(prior):
        if message.role == "assistant":
            if message.meta.get("type") != "clarify":
                break
            attempts += 1
    return attempts
