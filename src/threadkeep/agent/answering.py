"""Nodes 3, 4 and 5: retrieve, answer with tools, and ask whether the user wants to continue."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from langgraph.runtime import Runtime

from threadkeep.agent.dialogue_acts import complained_of, is_statement, only_introduces, without_greeting
from threadkeep.agent.folder import system_instruction
from threadkeep.agent.keeping import keep_reply
from threadkeep.agent.tools import ToolBench, ToolContext, answered
from threadkeep.agent.turn import AgentState, AssistantParts, Documents, Turn
from threadkeep.agent.window import earlier_messages, from_the_user, within
from threadkeep.errors import CapabilityMissing, StoreError
from threadkeep.model import Hit
from threadkeep.models.chat.questions import QUESTION_MARKS, is_question, names_for
from threadkeep.models.language import only_requests_a_language, requested_language
from threadkeep.ports.chat import ChatRequest, Said, Snippet
from threadkeep.ports.index import Position
from threadkeep.recall.context import Quoted, fence, quoted, room_in, writer
from threadkeep.recall.normalise import terms_of
from threadkeep.scope import ANONYMOUS, DEFAULT_USER

_ANSWERS_LOOKED_UP = 2  # the last may be no more than a polite word
_QUOTATION_PREFIX = 40  # characters: a quotation is of a document if its beginning is


class Answering:
    def __init__(self, parts: AssistantParts) -> None:
        self._parts = parts
        self._bench = ToolBench(parts.folder.tools)

    async def retrieve(self, state: AgentState, runtime: Runtime[Turn]) -> AgentState:
        """Recall earlier conversations and search the documents, each within its budget. An unavailable store adds
        nothing and is reported in the turn's errors."""
        turn, config = runtime.context, self._parts.config
        offline = not self._parts.model.generates
        needs_no_lookup = turn.small_talk is not None or turn.beyond == "who" or self._introduced(turn)
        if config.recalled and not (offline and needs_no_lookup):
            question = self._parts.redacted(turn.scope, turn.kept_text, turn.language)
            lookups = self._looked_up(turn) if offline else [question]
            looks = [recalled(self._parts, turn, question), *(self._search(turn, one) for one in lookups)]
            for found in await asyncio.gather(*(_unless_unavailable(turn, look) for look in looks)):
                known = {one.source for one in turn.found}
                turn.found += [one for one in found.snippets if one.source not in known]
                turn.fenced += [found.text] if found.text else []
            if offline:
                turn.quoted = await self._quotation(turn, self._lookup_text(turn))
                if self._is_broken(turn) and not self._answers_a_complaint(turn):
                    turn.quoted = await self._quotation(turn, self._parts.phrases(turn.language).broken)
        return AgentState(last_updated=self._parts.now())

    async def answer(self, state: AgentState, runtime: Runtime[Turn]) -> AgentState:
        """Raises `ModelTimeout` or `ModelUnavailable`: the question is stored by then, and stays without an answer."""
        turn = runtime.context
        if not self._parts.model.generates and (own := self._by_itself(turn)):
            turn.reply = own
            turn.say(turn.reply)
            return AgentState(last_updated=self._parts.now())
        await self._add_summary(turn)
        request = self._request(turn, state.get("intent"))
        say = None if turn.emit is None else turn.say
        token, request_id = (turn.question.token, turn.question.request_id) if turn.question else (None, None)
        context = ToolContext(turn.scope, turn.language, token, request_id, self._parts.memory.slots)
        done = await answered(self._parts.model, self._bench, request, context, say, turn.count)
        turn.reply = turn.said = done.text.strip()
        turn.tools = done.traces
        if not turn.reply:
            phrases = self._parts.phrases(turn.language)
            is_stored_statement = turn.user_message_id is not None and is_statement(turn.text, turn.language)
            turn.reply = (is_stored_statement and phrases.noted) or phrases.nothing_found
            turn.say(turn.reply)
        return AgentState(last_updated=self._parts.now())

    async def ask_on(self, state: AgentState, runtime: Runtime[Turn]) -> AgentState:
        """Add a closing question unless the answer ends in one, and store the reply."""
        turn, phrases = runtime.context, self._parts.phrases(runtime.context.language)
        more = [phrases.ask_on] if phrases.ask_on and not turn.reply.endswith(QUESTION_MARKS) else []
        # Answers are the assistant's messages without a type.
        answered_before = any(one.role == "assistant" and "type" not in one.meta for one in turn.prior)
        if not self._parts.model.generates and phrases.offline and turn.is_whole and not answered_before:
            more.append(phrases.offline)
        for piece in more:
            turn.say(f"\n{piece}")
            turn.reply += f"\n{piece}"
        entry = await keep_reply(self._parts, turn)
        return AgentState(
            chat_history=[*state.get("chat_history", []), entry],
            last_updated=self._parts.now(),
            clarify_attempts=0,
        )

    def _looked_up(self, turn: Turn) -> list[str]:
        """The question with what documents call its things; and what was quoted last, which a follow-up is about."""
        broken = self._parts.phrases(turn.language).broken if self._is_broken(turn) else ""
        lookup = " ".join(dict.fromkeys(filter(None, (self._lookup_text(turn), broken))))
        question = self._parts.redacted(turn.scope, lookup, turn.language)
        names = names_for(question, turn.language, self._parts.config.also_called)
        answers = [one.content for one in turn.prior if one.role == "assistant" and "type" not in one.meta]
        return [
            " ".join([question, *(name for some in names.values() for name in some)]),
            *answers[-_ANSWERS_LOOKED_UP:],
        ]

    def _lookup_text(self, turn: Turn) -> str:
        """The text to look up. A complaint of something broken looks up the folder's phrase for that."""
        looks_up_phrase = self._is_broken(turn) and not is_question(turn.text, turn.language)
        return self._parts.phrases(turn.language).broken if looks_up_phrase else turn.meant or turn.text

    def _is_broken(self, turn: Turn) -> bool:
        """Whether something is, and the folder says what bears on that."""
        is_complaint = turn.beyond == "complaint" and bool(self._parts.phrases(turn.language).broken)
        return is_complaint and bool(complained_of(turn.text))

    async def _quotation(self, turn: Turn, lookup: str) -> str:
        """Of the documents, what bears on the question; what the user said himself makes nothing clear."""
        quoted = (await self._parts.model.reply(self._request(turn, None, lookup))).text
        from_documents = any(quoted[:_QUOTATION_PREFIX] in one.text for one in turn.found if one.kind == "knowledge")
        return quoted if from_documents else ""

    def _by_itself(self, turn: Turn) -> str | None:
        """What needs no document. A model says such things in its own words."""
        phrases, greeting = self._parts.phrases(turn.language), self._parts.greeting(turn.language)
        if turn.small_talk is not None:
            return {"thanks": phrases.welcome, "hello": greeting}.get(turn.small_talk.act, phrases.understood)
        if only_requests_a_language(turn.text):
            tag = requested_language(turn.text, self._parts.languages(turn.scope).choice)
            return " ".join(filter(None, (phrases.agreed, greeting))) if tag else None
        if turn.beyond == "complaint":
            if is_question(turn.text, turn.language) and self._answers_a_complaint(turn) and not self._is_broken(turn):
                return None
            text = turn.quoted if self._is_broken(turn) else ""
            return " ".join(filter(None, (phrases.sorry, text)))
        if turn.beyond == "request":
            return " ".join(filter(None, (phrases.cannot, turn.quoted)))
        if turn.beyond == "who":
            return greeting
        if self._introduced(turn):
            return greeting if without_greeting(turn.text) != turn.text else phrases.noted
        return self._added_to(turn)

    def _introduced(self, turn: Turn) -> bool:
        return turn.small_talk is None and turn.beyond is None and only_introduces(turn.text)

    def _answers_a_complaint(self, turn: Turn) -> bool:
        """Whether the quotation is about the broken thing; its price, say, does not help the user."""
        broken = {term for part in complained_of(turn.text) for term in terms_of(part)}
        return not broken.isdisjoint(terms_of(turn.quoted))

    def _added_to(self, turn: Turn) -> str | None:
        """The reply to a follow-up that continues a complaint or a request without a question in it."""
        last = turn.prior[-1].content if turn.prior and turn.prior[-1].role == "assistant" else ""
        phrases = self._parts.phrases(turn.language)
        if is_question(turn.text, turn.language) or not phrases.sorry or not phrases.cannot:
            return None
        if turn.quoted and turn.quoted in last:
            return turn.quoted
        if last.startswith(phrases.sorry):
            return phrases.noted
        return phrases.cannot if last.startswith(phrases.cannot) else None

    async def _add_summary(self, turn: Turn) -> None:
        """Of what has left the window, where the folder wants it and there is any."""
        if turn.is_whole or not self._parts.config.reflection.rolling_summary:
            return
        try:
            for rolling in await self._parts.memory.reflections(turn.scope, "rolling", 1):
                text = quoted(rolling.reflection.summary)
                turn.fenced.insert(0, f'<summary trust="none" note="Earlier in this talk.">\n{text}\n</summary>')
        except (CapabilityMissing, StoreError) as error:
            turn.errors.append(type(error).__name__)

    async def _search(self, turn: Turn, question: str) -> Documents:
        if self._parts.documents is None or turn.question is None:
            return Documents()
        earlier = [message.content for message in turn.prior if message.role == "user"]
        budget = self._parts.config.budgets.knowledge
        return await self._parts.documents(turn.question, question, earlier, budget)

    def _request(self, turn: Turn, intent: str | None, lookup: str = "") -> ChatRequest:
        earlier = earlier_messages(turn.prior)
        kept, _ = within(earlier, self._parts.config.budgets.history, self._parts.count_tokens)
        system = system_instruction(self._parts.folder, turn.language, intent, turn.fenced)
        said = turn.text if self._parts.model.generates else lookup or self._lookup_text(turn)
        messages = [*from_the_user(kept), Said("user", said)]
        return ChatRequest(system, messages, self._bench.specs, tuple(turn.found), turn.language)


async def _unless_unavailable(turn: Turn, look: Coroutine[Any, Any, Documents]) -> Documents:
    try:
        return await look
    except StoreError as error:
        turn.errors.append(type(error).__name__)
        return Documents()


# Unnamed users share these names, so recall for them must not cross conversations.
_SHARED = frozenset((DEFAULT_USER, ANONYMOUS))


async def recalled(parts: AssistantParts, turn: Turn, question: str) -> Documents:
    """Recall ranks by freshness and by conversation; the messages of the window would only stand there twice."""
    config = parts.config
    seen = {turn.user_message_id, *(one.id for one in turn.prior)}
    if not question.strip():
        return Documents()
    of_all = config.recall_scope == "user" and turn.scope.user not in _SHARED
    found = await parts.memory.recall(
        turn.scope.whole_user,
        question,
        k=config.recalled + len(turn.prior) + 1,
        conversation=None if of_all else turn.scope.conversation,
    )
    hits = [hit for hit in found.hits if hit.message_id not in seen][: config.recalled]
    room = room_in(config.budgets.memory, parts.count_tokens)
    kept = [hit for hit in hits if room.takes(_quoted(hit, turn))]
    text = fence([_quoted(hit, turn) for hit in kept], len(hits) - len(kept)) if kept else ""
    # The user's own messages and notes about them: an old answer is never quoted as a fact.
    of_user = [hit for hit in kept if hit.role == "user" or (hit.origin is not None and hit.origin.is_note)]
    snippets = [Snippet(hit.content, f"message:{hit.message_id}", "memory") for hit in of_user]
    return Documents(text, snippets)


def _quoted(hit: Hit, turn: Turn) -> Quoted:
    place = Position(hit.conversation, hit.seq)
    return Quoted(hit.ts, place, writer(hit.role, hit.origin), hit.content, hit.conversation == turn.scope.conversation)
