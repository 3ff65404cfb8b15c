"""A turn into memory, and its history out of it. With every store away the assistant answers all the same, without."""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from threadkeep.agent.parts import AssistantParts
from threadkeep.agent.state import ChatEntry
from threadkeep.agent.turn import Turn
from threadkeep.agent.window import since_the_last_pause
from threadkeep.errors import Conflict, ModelError, NotFound, ScopeErased, StoreError, TooLarge
from threadkeep.events import Event, ModelResponse, Origin, UserMessage
from threadkeep.memory import Memory
from threadkeep.model import History, Message
from threadkeep.ports.responder import Asked
from threadkeep.scope import Scope

_log = logging.getLogger("threadkeep.assistant")
BY_ASSISTANT = Origin("model", "agent")


async def history_of(parts: AssistantParts, turn: Turn) -> History | None:
    """None where no store answers."""
    try:
        return await parts.memory.history(turn.scope)
    except StoreError as error:
        _went_on_without(turn, "the history", error)
        return None


@dataclass(frozen=True, slots=True)
class Earlier:
    """What the session holds besides the current message, in `seq` order."""

    messages: Sequence[Message]
    language: str | None  # that the session is held in
    is_whole: bool  # whether `messages` reach back to the session's beginning
    is_anew: bool = False  # whether there was a session before it


async def earlier_in_session(memory: Memory, talk: History, question: str | None) -> Earlier:
    """The newest `SESSION_MAX_MESSAGES` of the session that `talk` ends with, the current message on top of them.

    `talk` is the window as memory has it, in which the question (its id) and what came after it take up room. After a
    pause of `SESSION_TTL_MIN` the session has begun anew, unless the settings carry it over.
    """
    limits, messages, before = memory.limits, talk.messages, talk.before
    asked_at = next((one.seq for one in messages if one.id == question), None)
    taken = [one for one in messages if asked_at is not None and one.seq >= asked_at]
    if taken and messages[0].seq > 1 and (len(messages) >= limits.max_messages or limits.max_chars is not None):
        characters = None if limits.max_chars is None else limits.max_chars + sum(len(one.content) for one in taken)
        with suppress(StoreError):
            more = await memory.history(talk.scope, limits.max_messages + len(taken), max_chars=characters)
            messages, before = more.messages, more.before
    if limits.carried_over:
        return Earlier(messages, talk.language, before is None)
    alive = since_the_last_pause(messages, timedelta(seconds=limits.ttl_seconds), memory.clock())
    if len(alive) == len(messages):
        return Earlier(messages, talk.language, before is None)
    told = (one.language for one in reversed(alive) if one.role == "assistant" and one.language)
    return Earlier(alive, next(told, None), is_whole=True, is_anew=True)


def still_there(asked_in: Scope, now: Scope) -> Scope:
    """As of which generation the turn is kept: one that is erased meanwhile keeps nothing more of it.

    Raises `ScopeErased` where that has happened before the turn began.
    """
    if asked_in.generation is None:
        return now
    if now.generation is not None and now.generation > asked_in.generation:
        raise ScopeErased("what was asked was erased before it was answered")
    return asked_in


async def keep_question(parts: AssistantParts, turn: Turn, asked: Asked) -> None:
    """Before anything else is done with it: a crash must not lose what the user said."""
    if asked.message_id is not None:
        turn.user_message_id = asked.message_id
        return
    said = asked.event or UserMessage(asked.text, language=turn.settled_language)
    turn.user_message_id = await _kept(parts, turn, said)


async def keep_reply(
    parts: AssistantParts, turn: Turn, type_: Literal["clarify", "greeting"] | None = None
) -> ChatEntry:
    """The entry for the graph's state, as memory keeps it. What is only the default tells no language."""
    said = ModelResponse(
        turn.reply, language=turn.settled_language, type=type_, answers=turn.user_message_id, origin=BY_ASSISTANT
    )
    with an_answer_that_fits():
        turn.reply_id = await _kept(parts, turn, said, _key_of(turn))
    content = parts.redacted(turn.scope, turn.reply, turn.language)
    return ChatEntry(id=turn.reply_id or "", role="assistant", content=content, created_at=parts.clock().isoformat())


def _key_of(turn: Turn) -> str | None:
    """Two who begin the same talk at once greet once in it."""
    if turn.kind == "greet":
        return turn.scope.digest("greeting", str(turn.scope.generation)).hex()
    return turn.asked.answer_key if turn.asked else None


@contextmanager
def an_answer_that_fits() -> Generator[None]:
    """Raises `ModelError` for one that is too long to be kept: who asked cannot shorten it."""
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
        _went_on_without(turn, "keeping the language", error)


async def _kept(parts: AssistantParts, turn: Turn, event: Event, key: str | None = None) -> str | None:
    try:
        spoken = parts.languages(turn.scope).choice
        receipt = await parts.memory.append(turn.scope, [event], key, languages=spoken)
    except (Conflict, ScopeErased, StoreError) as error:
        _went_on_without(turn, "keeping a message", error)
        return None
    return receipt.kept[-1] if receipt.kept else None


def _went_on_without(turn: Turn, what: str, error: Exception) -> None:
    turn.errors.append(type(error).__name__)
    _log.warning("answering without %s: %s (%s)", what, error, type(error).__name__)
