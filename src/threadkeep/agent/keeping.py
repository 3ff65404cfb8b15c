"""Storing a turn and reading its history; with every store unavailable the assistant answers without memory."""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from threadkeep.agent.turn import AssistantParts, ChatEntry, Turn
from threadkeep.agent.window import since_the_last_pause
from threadkeep.errors import Conflict, ModelError, NotFound, ScopeErased, StoreError, TooLarge
from threadkeep.events import Event, ModelResponse, Origin, UserMessage
from threadkeep.memory import Memory
from threadkeep.model import History, Message
from threadkeep.ports.chat import Asked
from threadkeep.scope import Scope

_log = logging.getLogger("threadkeep.assistant")
BY_ASSISTANT = Origin("model", "agent")


async def history_of(parts: AssistantParts, turn: Turn) -> History | None:
    """None where no store answers."""
    try:
        return await parts.memory.history(turn.scope)
    except StoreError as error:
        _note_missing(turn, "the history", error)
        return None


@dataclass(frozen=True, slots=True)
class Earlier:
    """What the session holds besides the current message, in `seq` order."""

    messages: Sequence[Message]
    language: str | None  # that the session is held in
    is_whole: bool  # whether `messages` reach back to the session's beginning
    is_anew: bool = False  # whether there was a session before it


async def earlier_in_session(memory: Memory, history: History, question: str | None) -> Earlier:
    """The newest `SESSION_MAX_MESSAGES` of the session that `history` ends with, the current message on top of them.

    `history` is the window as memory has it, in which the question (its id) and what came after it take up room. After
    a pause of `SESSION_TTL_MIN` the session has begun anew, unless the settings carry it over.
    """
    limits, messages, before = memory.limits, history.messages, history.before
    question_seq = next((one.seq for one in messages if one.id == question), None)
    taken = [one for one in messages if question_seq is not None and one.seq >= question_seq]
    if taken and messages[0].seq > 1 and (len(messages) >= limits.max_messages or limits.max_chars is not None):
        characters = None if limits.max_chars is None else limits.max_chars + sum(len(one.content) for one in taken)
        with suppress(StoreError):
            more = await memory.history(history.scope, limits.max_messages + len(taken), max_chars=characters)
            messages, before = more.messages, more.before
    if limits.carried_over:
        return Earlier(messages, history.language, before is None)
    alive = since_the_last_pause(messages, timedelta(seconds=limits.ttl_seconds), memory.clock())
    if len(alive) == len(messages):
        return Earlier(messages, history.language, before is None)
    answered_in = (one.language for one in reversed(alive) if one.role == "assistant" and one.language)
    return Earlier(alive, next(answered_in, None), is_whole=True, is_anew=True)


def unerased(received_in: Scope, now: Scope) -> Scope:
    """The scope, with its generation, in which the turn is stored: an erase during the turn drops the rest of it.

    Raises `ScopeErased` where the scope was erased after the question was received.
    """
    if received_in.generation is None:
        return now
    if now.generation is not None and now.generation > received_in.generation:
        raise ScopeErased("the question was erased before it was answered")
    return received_in


async def keep_question(parts: AssistantParts, turn: Turn, question: Asked) -> None:
    """Store the question before anything else is done with it: a crash must not lose it."""
    if question.message_id is not None:
        turn.user_message_id = question.message_id
        return
    said = question.event or UserMessage(question.text, language=turn.settled_language)
    turn.user_message_id = await _kept(parts, turn, said)


async def keep_reply(
    parts: AssistantParts, turn: Turn, type_: Literal["clarify", "greeting"] | None = None
) -> ChatEntry:
    """Store the reply and return its entry for the graph's state, as memory keeps it. A default language is not
    recorded: only a settled one is."""
    said = ModelResponse(
        turn.reply, language=turn.settled_language, type=type_, answers=turn.user_message_id, origin=BY_ASSISTANT
    )
    with an_answer_that_fits():
        turn.reply_id = await _kept(parts, turn, said, _key_of(turn))
    content = parts.redacted(turn.scope, turn.reply, turn.language)
    return ChatEntry(id=turn.reply_id or "", role="assistant", content=content, created_at=parts.now())


def _key_of(turn: Turn) -> str | None:
    """The idempotency key: two requests that begin one conversation at once store one greeting."""
    if turn.kind == "greet":
        return turn.scope.digest("greeting", str(turn.scope.generation)).hex()
    return turn.question.answer_key if turn.question else None


@contextmanager
def an_answer_that_fits() -> Generator[None]:
    """Raise `ModelError` instead of `TooLarge`: the user cannot shorten an answer."""
    try:
        yield
    except TooLarge:
        raise ModelError("the answer is longer than a message may be (THREADKEEP_MAX_MESSAGE_BYTES)") from None


async def note_intent(parts: AssistantParts, turn: Turn, intent: str) -> None:
    try:
        await parts.memory.set_intent(turn.scope, intent)
    except (NotFound, ScopeErased, StoreError) as error:
        turn.errors.append(type(error).__name__)


async def note_language(parts: AssistantParts, turn: Turn, language: str) -> None:
    try:
        await parts.memory.set_language(turn.scope, language)
    except (ScopeErased, StoreError) as error:
        _note_missing(turn, "keeping the language", error)


async def _kept(parts: AssistantParts, turn: Turn, event: Event, key: str | None = None) -> str | None:
    try:
        spoken = parts.languages(turn.scope).choice
        receipt = await parts.memory.append(turn.scope, [event], key, languages=spoken)
    except (Conflict, ScopeErased, StoreError) as error:
        _note_missing(turn, "keeping a message", error)
        return None
    return receipt.kept[-1] if receipt.kept else None


def _note_missing(turn: Turn, what: str, error: Exception) -> None:
    turn.errors.append(type(error).__name__)
    _log.warning("answering without %s: %s (%s)", what, error, type(error).__name__)
