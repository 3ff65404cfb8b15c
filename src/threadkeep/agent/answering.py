"""Nodes 3, 4 and 5: what bears on the question, the answer with its tools, and the question whether to go on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from langgraph.runtime import Runtime

from threadkeep.agent.keeping import keep_reply
from threadkeep.agent.parts import AssistantParts, Documents
from threadkeep.agent.prompt import system_instruction
from threadkeep.agent.recalling import recalled
from threadkeep.agent.small_talk import only_tells
from threadkeep.agent.state import AgentState
from threadkeep.agent.tool_loop import answered
from threadkeep.agent.tools import ToolBench, ToolContext
from threadkeep.agent.turn import Turn
from threadkeep.agent.window import earlier_messages, from_the_user, within
from threadkeep.errors import CapabilityMissing, StoreError
from threadkeep.models.language import only_requests_a_language, requested_language
from threadkeep.ports.chat import ChatRequest, Said
from threadkeep.recall.quoting import quoted

_ASKED = ("?", "？")


class Answering:
    def __init__(self, parts: AssistantParts) -> None:
        self._parts = parts
        self._bench = ToolBench(parts.folder.tools)

    async def retrieve(self, state: AgentState, runtime: Runtime[Turn]) -> AgentState:
        """Earlier talks and the assistant's documents, each within its budget; a store that is away costs its share."""
        turn, config = runtime.context, self._parts.folder.config
        question = self._parts.redacted(turn.scope, turn.kept_text, turn.language)
        if config.recalled:
            looks = (self._recall(turn, question), self._search(turn, question))
            for found in await asyncio.gather(*(_unless_away(turn, look) for look in looks)):
                turn.found += found.snippets
                turn.fenced += [found.text] if found.text else []
        return AgentState(last_updated=self._parts.clock().isoformat())

    async def answer(self, state: AgentState, runtime: Runtime[Turn]) -> AgentState:
        """Raises `ModelTimeout` or `ModelUnavailable`: the question is stored by then, and stays without an answer."""
        turn = runtime.context
        if (polite := self._thanked(turn) or self._in_another_language(turn)) is not None:
            turn.reply = polite
            turn.say(turn.reply)
            return AgentState(last_updated=self._parts.clock().isoformat())
        await self._add_summary(turn)
        request = self._request(turn, state.get("intent"))
        say = None if turn.emit is None else turn.say
        done = await answered(self._parts.model, self._bench, request, self._context(turn), say, turn.count)
        turn.reply = turn.said = done.text.strip()
        turn.tools = done.traces
        if not turn.reply:
            turn.reply = self._greeting(turn) or self._noted(turn) or self._parts.phrases(turn.language).nothing_found
            turn.say(turn.reply)
        return AgentState(last_updated=self._parts.clock().isoformat())

    async def ask_on(self, state: AgentState, runtime: Runtime[Turn]) -> AgentState:
        """The talk is kept going, unless the answer asks something itself; then all of it is stored."""
        turn, phrases = runtime.context, self._parts.phrases(runtime.context.language)
        more = [phrases.ask_on] if phrases.ask_on and not turn.reply.endswith(_ASKED) else []
        if not self._parts.model.generates and phrases.offline and _is_first_answer(turn):
            more.append(phrases.offline)
        for piece in more:
            turn.say(f"\n{piece}")
            turn.reply += f"\n{piece}"
        entry = await keep_reply(self._parts, turn)
        return AgentState(
            chat_history=[*state.get("chat_history", []), entry],
            last_updated=self._parts.clock().isoformat(),
            clarify_attempts=0,
        )

    def _greeting(self, turn: Turn) -> str | None:
        """Back to whoever only said hello, in the language it was said in: too short to tell a talk's by."""
        tag = self._parts.heard(turn.text, "hello", turn.language)
        return self._parts.greeting(tag) if tag else None

    def _thanked(self, turn: Turn) -> str | None:
        """A model answers thanks itself."""
        tag = None if self._parts.model.generates else self._parts.heard(turn.text, "thanks", turn.language)
        return self._parts.phrases(turn.settled_language or tag).welcome or None if tag else None

    def _in_another_language(self, turn: Turn) -> str | None:
        """To one who only asks for a language; a model says so itself. There is nothing to look up in that."""
        asked = not self._parts.model.generates and only_requests_a_language(turn.text)
        tag = requested_language(turn.text, self._parts.languages(turn.scope).choice) if asked else None
        return self._parts.greeting(tag) if tag else None

    def _noted(self, turn: Turn) -> str | None:
        """To one who asks nothing, once it is kept."""
        told = turn.user_message_id is not None and only_tells(turn.text, turn.language)
        return self._parts.phrases(turn.language).noted if told else None

    async def _add_summary(self, turn: Turn) -> None:
        """Of what has left the window, where the folder wants it and there is any."""
        if turn.is_whole or not self._parts.folder.config.reflection.rolling_summary:
            return
        try:
            for rolling in await self._parts.memory.reflections(turn.scope, "rolling", 1):
                told = quoted(rolling.reflection.summary)
                turn.fenced.insert(0, f'<summary trust="none" note="Earlier in this talk.">\n{told}\n</summary>')
        except (CapabilityMissing, StoreError) as error:
            turn.errors.append(type(error).__name__)

    async def _recall(self, turn: Turn, question: str) -> Documents:
        return await recalled(self._parts, turn, question)

    async def _search(self, turn: Turn, question: str) -> Documents:
        if self._parts.documents is None or turn.asked is None:
            return Documents()
        earlier = [message.content for message in turn.prior if message.role == "user"]
        budget = self._parts.folder.config.budgets.knowledge
        return await self._parts.documents(turn.asked, question, earlier, budget)

    def _request(self, turn: Turn, intent: str | None) -> ChatRequest:
        earlier = earlier_messages(turn.prior)
        kept, _ = within(earlier, self._parts.folder.config.budgets.history, self._parts.count_tokens)
        system = system_instruction(self._parts.folder, turn.language, intent, turn.fenced)
        messages = [*from_the_user(kept), Said("user", turn.text)]
        return ChatRequest(system, messages, self._bench.specs, tuple(turn.found), turn.language)

    def _context(self, turn: Turn) -> ToolContext:
        token, request_id = (turn.asked.token, turn.asked.request_id) if turn.asked else (None, None)
        return ToolContext(turn.scope, turn.language, token, request_id, self._parts.memory.slots)


async def _unless_away(turn: Turn, look: Coroutine[Any, Any, Documents]) -> Documents:
    try:
        return await look
    except StoreError as error:
        turn.errors.append(type(error).__name__)
        return Documents()


def _is_first_answer(turn: Turn) -> bool:
    """Answers are the assistant's messages without a type."""
    return turn.is_whole and not any(one.role == "assistant" and "type" not in one.meta for one in turn.prior)
