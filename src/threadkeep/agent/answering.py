"""Nodes 3, 4 and 5: what bears on the question, the answer with its tools, and the question whether to go on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from langgraph.runtime import Runtime

from threadkeep.agent.beyond_documents import complained_of
from threadkeep.agent.keeping import keep_reply
from threadkeep.agent.parts import AssistantParts, Documents
from threadkeep.agent.prompt import system_instruction
from threadkeep.agent.small_talk import only_introduces, only_tells, without_greeting
from threadkeep.agent.state import AgentState
from threadkeep.agent.tool_loop import answered
from threadkeep.agent.tools import ToolBench, ToolContext
from threadkeep.agent.turn import Turn
from threadkeep.agent.window import earlier_messages, from_the_user, within
from threadkeep.errors import CapabilityMissing, StoreError
from threadkeep.model import Hit
from threadkeep.models.chat.question_forms import asks
from threadkeep.models.chat.question_words import names_for
from threadkeep.models.language import only_requests_a_language, requested_language
from threadkeep.ports.chat import ChatRequest, Said, Snippet
from threadkeep.ports.evidence import Place
from threadkeep.recall.normalise import terms_of
from threadkeep.recall.quoting import quoted
from threadkeep.recall.render import Quoted, fence, room_in, writer
from threadkeep.scope import ANONYMOUS, DEFAULT_USER

_ASKED = ("?", "？")
_ANSWERS_LOOKED_UP = 2  # the last may be no more than a polite word
_TOLD_BY = 40  # characters: a quotation is of a document if its beginning is


class Answering:
    def __init__(self, parts: AssistantParts) -> None:
        self._parts = parts
        self._bench = ToolBench(parts.folder.tools)

    async def retrieve(self, state: AgentState, runtime: Runtime[Turn]) -> AgentState:
        """Earlier talks and the assistant's documents, each within its budget; a store that is away costs its share."""
        turn, config = runtime.context, self._parts.folder.config
        offline = not self._parts.model.generates
        if config.recalled and not (offline and self._needs_no_lookup(turn)):
            question = self._parts.redacted(turn.scope, turn.kept_text, turn.language)
            asked = self._looked_up(turn) if offline else [question]
            looks = [self._recall(turn, question), *(self._search(turn, one) for one in asked)]
            for found in await asyncio.gather(*(_unless_away(turn, look) for look in looks)):
                known = {one.source for one in turn.found}
                turn.found += [one for one in found.snippets if one.source not in known]
                turn.fenced += [found.text] if found.text else []
            if offline:
                turn.quoted = await self._quotation(turn, self._asked(turn))
                if self._is_broken(turn) and not self._answers_a_complaint(turn):
                    turn.quoted = await self._quotation(turn, self._parts.phrases(turn.language).broken)
        return AgentState(last_updated=self._parts.clock().isoformat())

    async def answer(self, state: AgentState, runtime: Runtime[Turn]) -> AgentState:
        """Raises `ModelTimeout` or `ModelUnavailable`: the question is stored by then, and stays without an answer."""
        turn = runtime.context
        if not self._parts.model.generates and (own := self._by_itself(turn)):
            turn.reply = own
            turn.say(turn.reply)
            return AgentState(last_updated=self._parts.clock().isoformat())
        await self._add_summary(turn)
        request = self._request(turn, state.get("intent"))
        say = None if turn.emit is None else turn.say
        done = await answered(self._parts.model, self._bench, request, self._context(turn), say, turn.count)
        turn.reply = turn.said = done.text.strip()
        turn.tools = done.traces
        if not turn.reply:
            turn.reply = self._noted(turn) or self._parts.phrases(turn.language).nothing_found
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

    def _looked_up(self, turn: Turn) -> list[str]:
        """The question with what documents call its things; and what was quoted last, which a follow-up is about."""
        broken = self._parts.phrases(turn.language).broken if self._is_broken(turn) else ""
        asked = " ".join(dict.fromkeys(filter(None, (self._asked(turn), broken))))
        question = self._parts.redacted(turn.scope, asked, turn.language)
        names = names_for(question, turn.language, self._parts.folder.config.also_called)
        answers = [one.content for one in turn.prior if one.role == "assistant" and "type" not in one.meta]
        return [
            " ".join([question, *(name for some in names.values() for name in some)]),
            *answers[-_ANSWERS_LOOKED_UP:],
        ]

    def _asked(self, turn: Turn) -> str:
        """What somebody who complains of something broken would have to ask."""
        asks_it = asks(turn.text, turn.language)
        is_told = self._is_broken(turn) and not asks_it
        return self._parts.phrases(turn.language).broken if is_told else turn.meant or turn.text

    def _is_broken(self, turn: Turn) -> bool:
        """Whether something is, and the folder says what bears on that."""
        is_complaint = turn.beyond == "complaint" and bool(self._parts.phrases(turn.language).broken)
        return is_complaint and bool(complained_of(turn.text))

    async def _quotation(self, turn: Turn, asked: str) -> str:
        """Of the documents, what bears on the question; what the user said himself makes nothing clear."""
        quoted = (await self._parts.model.reply(self._request(turn, None, asked))).text
        told = any(quoted[:_TOLD_BY] in one.text for one in turn.found if one.kind == "knowledge")
        return quoted if told else ""

    def _needs_no_lookup(self, turn: Turn) -> bool:
        return turn.talk is not None or turn.beyond == "who" or self._introduced(turn)

    def _by_itself(self, turn: Turn) -> str | None:
        """What needs no document. A model says such things in its own words."""
        phrases, greeting = self._parts.phrases(turn.language), self._parts.greeting(turn.language)
        if turn.talk is not None:
            return {"thanks": phrases.welcome, "hello": greeting}.get(turn.talk.act, phrases.understood)
        if only_requests_a_language(turn.text):
            tag = requested_language(turn.text, self._parts.languages(turn.scope).choice)
            return " ".join(filter(None, (phrases.agreed, greeting))) if tag else None
        if turn.beyond == "complaint":
            if asks(turn.text, turn.language) and self._answers_a_complaint(turn) and not self._is_broken(turn):
                return None
            told = turn.quoted if self._is_broken(turn) else ""
            return " ".join(filter(None, (phrases.sorry, told)))
        if turn.beyond == "request":
            return " ".join(filter(None, (phrases.cannot, turn.quoted)))
        if turn.beyond == "who":
            return greeting
        if self._introduced(turn):
            return greeting if without_greeting(turn.text) != turn.text else phrases.noted
        return self._added_to(turn)

    def _introduced(self, turn: Turn) -> bool:
        return turn.talk is None and turn.beyond is None and only_introduces(turn.text)

    def _answers_a_complaint(self, turn: Turn) -> bool:
        """Only what is about that it is broken; a price of the same thing consoles nobody."""
        broken = {term for part in complained_of(turn.text) for term in terms_of(part)}
        return not broken.isdisjoint(terms_of(turn.quoted))

    def _added_to(self, turn: Turn) -> str | None:
        """To a complaint, or to a request: what comes next and asks nothing belongs to it."""
        last = turn.prior[-1].content if turn.prior and turn.prior[-1].role == "assistant" else ""
        phrases = self._parts.phrases(turn.language)
        if asks(turn.text, turn.language) or not phrases.sorry or not phrases.cannot:
            return None
        if turn.quoted and turn.quoted in last:
            return turn.quoted
        return (
            phrases.noted
            if last.startswith(phrases.sorry)
            else phrases.cannot
            if last.startswith(phrases.cannot)
            else None
        )

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

    def _request(self, turn: Turn, intent: str | None, asked: str = "") -> ChatRequest:
        earlier = earlier_messages(turn.prior)
        kept, _ = within(earlier, self._parts.folder.config.budgets.history, self._parts.count_tokens)
        system = system_instruction(self._parts.folder, turn.language, intent, turn.fenced)
        said = turn.text if self._parts.model.generates else asked or self._asked(turn)
        messages = [*from_the_user(kept), Said("user", said)]
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


_SHARED = frozenset((DEFAULT_USER, ANONYMOUS))  # by all whom nobody named: what one of them said is nobody else's


@dataclass(frozen=True, slots=True)
class _Seen:
    ids: frozenset[str]

    def holds(self, hit: Hit) -> bool:
        return hit.message_id in self.ids


async def recalled(parts: AssistantParts, turn: Turn, question: str) -> Documents:
    """Recall ranks by freshness and by conversation; the messages of the window would only stand there twice."""
    config = parts.folder.config
    seen = _Seen(frozenset([*(one.id for one in turn.prior), turn.user_message_id or ""]))
    if not question.strip():
        return Documents()
    of_all = config.recall_scope == "user" and turn.scope.user not in _SHARED
    found = await parts.memory.recall(
        turn.scope.whole_user,
        question,
        k=config.recalled + len(turn.prior) + 1,
        conversation=None if of_all else turn.scope.conversation,
    )
    hits = [hit for hit in found.hits if not seen.holds(hit)][: config.recalled]
    room = room_in(config.budgets.memory, parts.count_tokens)
    kept = [hit for hit in hits if room.takes(_quoted(hit, turn))]
    text = fence([_quoted(hit, turn) for hit in kept], len(hits) - len(kept)) if kept else ""
    snippets = [Snippet(hit.content, f"message:{hit.message_id}", "memory") for hit in kept if _tells_of_the_user(hit)]
    return Documents(text, snippets)


def _tells_of_the_user(hit: Hit) -> bool:
    """Their own words, or a note about them; what an assistant once answered is quoted to nobody as a fact."""
    return hit.role == "user" or (hit.origin is not None and hit.origin.is_note)


def _quoted(hit: Hit, turn: Turn) -> Quoted:
    place = Place(hit.conversation, hit.seq)
    return Quoted(hit.ts, place, writer(hit.role, hit.origin), hit.content, hit.conversation == turn.scope.conversation)
