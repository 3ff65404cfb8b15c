"""The concierge's service under its router's name for it, and an application's own agent behind `/agent/chat`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import dropwhile
from pathlib import Path
from typing import Any, Protocol, cast

from threadkeep.agent.folder import AssistantFolder, load_folder, system_instruction
from threadkeep.agent.keeping import BY_ASSISTANT, Earlier, an_answer_that_fits, earlier_in_session, unerased
from threadkeep.agent.tools import ToolBench, ToolContext, answered, fill_slots
from threadkeep.agent.window import earlier_messages, from_the_user, said_before, vouched_for, within
from threadkeep.errors import (
    Conflict,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    NotFound,
    ScopeErased,
    StoreError,
)
from threadkeep.events import ModelResponse, UserMessage
from threadkeep.memory import Memory
from threadkeep.model import History, Session
from threadkeep.models.chat import Patience
from threadkeep.models.chat.choice import gemini_name
from threadkeep.models.chat.gemini import GeminiModel, gemini_client
from threadkeep.models.language import Decision, OfflineDetector, decide, spoken_as
from threadkeep.models.language.detection import model_detector
from threadkeep.models.tokens import tokenizer
from threadkeep.ports.chat import Answer, Asked, ChatModel, ChatRequest, Said, ToolTrace
from threadkeep.ports.models import UNDETERMINED, LanguageDetector, LanguageRules
from threadkeep.scope import Scope
from threadkeep.settings import Settings, load_settings

_CALLER = Scope(user="agent", conversation="agent")


@dataclass(frozen=True, slots=True)
class ChatCall:
    """The conversation that `chat` is called in: its tools may read masked values that the user gave earlier in it."""

    memory: Memory
    scope: Scope
    request_id: str | None = None


_CALL: ContextVar[ChatCall | None] = ContextVar("threadkeep_talk", default=None)


@contextmanager
def calls_within(call: ChatCall) -> Generator[None]:
    """`chat` has no argument for it, and an application may have wrapped the service in an agent of its own."""
    token = _CALL.set(call)
    try:
        yield
    finally:
        _CALL.reset(token)


class AgentService:
    """One message and its history in, a reply out. It keeps no turn: the router reads the session, calls `chat`, and
    stores it.

    `client` is a `google.genai.Client`, and `model` replaces it. Without either it is the model that
    `THREADKEEP_CHAT_MODEL` or the folder names, or else Gemini, with a client that is made from `GOOGLE_API_KEY`.
    """

    def __init__(
        self,
        folder: str | Path | AssistantFolder,
        client: Any = None,
        model: ChatModel | None = None,
        settings: Settings | None = None,
    ) -> None:
        settings = settings or load_settings()
        loaded = folder if isinstance(folder, AssistantFolder) else load_folder(Path(folder), settings)
        self._folder = loaded
        self._count_tokens = tokenizer(settings.tokenizer_name).count
        self._bench = ToolBench(loaded.tools)
        self.detector: LanguageDetector | None = None
        chosen = settings.chat_model or loaded.config.model
        if model is None and client is None and chosen and gemini_name(chosen) is None:
            from threadkeep.compose.assistant import chat_model  # needs more extras than a concierge on Gemini

            model = chat_model(loaded, settings)
        if model is None:
            client = client or gemini_client()
            patience = Patience(settings.chat_timeout_seconds, settings.chat_retries)
            self.detector = model_detector(GeminiModel(client, settings.gemini_model_lang, patience))
            model = GeminiModel(client, gemini_name(chosen) or settings.gemini_model, patience)
        self._model = model
        self.languages = LanguageRules(loaded.config.languages, loaded.config.default_language)
        self.system_prompt = loaded.prompt

    async def chat(
        self,
        user_message: str,
        jwt: str | None = None,
        language_code: str | None = None,
        history: list[dict[str, Any]] | None = None,
    ) -> tuple[str, list[ToolTrace]]:
        """The current message is the last one the model sees; `jwt` is handed on to the tools.

        The answer is in `language_code`, any BCP-47 tag, unless the folder lists the languages it answers in and that
        is none of them: then, and without one, in the folder's default language.

        Entries of `history` with an unexpected role, or without content, are passed over, and so are the assistant's
        own at its beginning: the model gets a conversation that the user begins.
        """
        language = spoken_as(language_code, self.languages.allowed) or self._folder.config.default_language
        request = ChatRequest(
            system_instruction(self._folder, language),
            [*self._earlier(history or ()), Said("user", user_message)],
            self._bench.specs,
            language=language,
        )
        context = await self._context(user_message, jwt, language)
        done = await answered(self._model, self._bench, request, context)
        return done.text, done.traces

    async def _context(self, user_message: str, jwt: str | None, language: str) -> ToolContext:
        """What the folder's slots take from the message is kept for later turns, where it is known whose they are."""
        call = _CALL.get()
        if call is None:
            return ToolContext(_CALLER, language, jwt)
        slots, wanted = call.memory.slots, self._folder.config.slots
        if slots is not None and wanted.types:
            redacted = call.memory.redactor_at(call.scope)(user_message, language)
            await fill_slots(slots, call.scope, user_message, redacted, wanted.types, wanted.minutes * 60)
        return ToolContext(call.scope, language, jwt, call.request_id, slots)

    def _earlier(self, history: Sequence[Mapping[str, Any]]) -> list[Said]:
        kept, _ = within(earlier_messages(history), self._folder.config.budgets.history, self._count_tokens)
        return from_the_user(kept)


_log = logging.getLogger("threadkeep.assistant")
_FAILED = ("error", "failed", "failure")
_LONGEST = 1e12  # milliseconds: what is not a number, or no time at all, is none


class Agent(Protocol):
    """`AgentService`, or anything else with its `chat`."""

    async def chat(
        self,
        user_message: str,
        jwt: str | None = None,
        language_code: str | None = None,
        history: list[dict[str, Any]] | None = None,
    ) -> tuple[str, Sequence[Any] | None]: ...


def answered_by(
    agent: Agent, languages: LanguageRules | None = None, detector: LanguageDetector | None = None
) -> Callable[[Memory], AbstractAsyncContextManager[AgentResponder]]:
    """For `create_app(responder_opener=...)` and `mount_memory(responder_opener=...)`.

    `languages` and `detector` are otherwise those of an `AgentService`: its folder's list, and beside Gemini the model
    that `GEMINI_MODEL_LANG` names.
    """
    return lambda memory: nullcontext(AgentResponder(memory, agent, languages, detector))


class AgentResponder:
    """An application's own agent behind `/agent/chat`, called the way the concierge's router calls it:
    `agent.chat(user_message, jwt, language_code, history=history)`.

    Touches the session, settles the language, calls the agent, keeps the turn; without memory it still answers.
    """

    def __init__(
        self,
        memory: Memory,
        agent: Agent,
        languages: LanguageRules | None = None,
        detector: LanguageDetector | None = None,
    ) -> None:
        self._memory = memory
        self._agent = agent
        self._rules: LanguageRules = languages or getattr(agent, "languages", None) or LanguageRules()
        self._detector: LanguageDetector = detector or getattr(agent, "detector", None) or OfflineDetector()

    @property
    def default_language(self) -> str:
        return self._rules.default or UNDETERMINED

    @property
    def languages(self) -> Sequence[str]:
        return self._rules.allowed

    def spoken(self, language: str) -> str | None:
        return spoken_as(language, self.languages)

    async def greet(self, scope: Scope, language: str | None = None) -> Answer | None:
        return None

    async def respond(self, question: Asked) -> Answer:
        """Raises what the agent raises: the user's message is kept by then, and stays unanswered.

        `ScopeErased` where it was erased before it could be answered; what is erased later keeps nothing of the answer.
        """
        session = await self._touched(question.scope)
        if session is not None:
            question = replace(question, scope=unerased(question.scope, session.scope))
        earlier = await self._earlier(question, session)
        decided = await self._decided(question, session, earlier.language)
        language = decided.settled
        question_id = question.message_id
        if question_id is None:
            event = question.event or UserMessage(question.text, language=language)
            question_id = await self._kept(question.scope, event)
        said = question.history if question.history is not None else vouched_for(earlier.messages)
        history = [
            {"role": one.role, "content": one.content, "ts": one.ts.isoformat()}
            for one in dropwhile(lambda one: one.role == "assistant", said_before(question.message_id, said))
        ]
        reply, traces = await self._chat(question, decided.tag, history)
        with an_answer_that_fits():
            said = ModelResponse(reply, language=language, answers=question_id, origin=BY_ASSISTANT)
            message_id = await self._kept(question.scope, said, question.answer_key)
        return Answer(reply, decided.tag or UNDETERMINED, message_id=message_id, tools=_tools(traces))

    async def _chat(self, question: Asked, language: str | None, history: list[dict[str, Any]]) -> tuple[str, Any]:
        """Raises `ModelError` for what is no answer, and for what must not pass for an end of the turn itself."""
        try:
            with calls_within(ChatCall(self._memory, question.scope, question.request_id)):
                said: Any = await self._agent.chat(question.text, question.token, language, history=history)
        except asyncio.CancelledError:
            if (turn := asyncio.current_task()) is not None and turn.cancelling():
                raise
            raise ModelUnavailable("the agent was cancelled by what it waited for") from None
        except Exception as error:
            if isinstance(error, TimeoutError) or "timeout" in type(error).__name__.lower():
                raise ModelTimeout(f"the agent took too long ({type(error).__name__})") from None
            raise
        match said:
            case (str(reply), traces):
                return reply, traces
            case _:
                raise ModelError("the agent's chat returned no reply and traces")

    async def stream(self, question: Asked) -> AsyncIterator[str | Answer]:
        yield await self.respond(question)

    async def end(self, scope: Scope) -> None:
        try:
            await self._memory.close_conversation(scope)
            if self._memory.slots is not None:
                await self._memory.slots.erase(scope)
        except (NotFound, ScopeErased, StoreError) as error:
            _log.warning("the end of a conversation was not marked (%s)", type(error).__name__)

    async def _touched(self, scope: Scope) -> Session | None:
        try:
            return await self._memory.touch(scope)
        except StoreError as error:
            _log.warning("answering without the session: %s (%s)", error, type(error).__name__)
            return None

    async def _earlier(self, question: Asked, session: Session | None) -> Earlier:
        if session is None:
            return Earlier((), None, is_whole=True)
        window = History(session.scope, session.messages, session.language, None)
        return await earlier_in_session(self._memory, window, question.message_id)

    def _rules_at(self, scope: Scope) -> LanguageRules:
        """Our own, and what they leave open from the tenant's."""
        tenants = self._memory.languages(scope)
        return LanguageRules(self._rules.allowed or tenants.allowed, self._rules.default or tenants.default)

    async def _decided(self, question: Asked, session: Session | None, kept: str | None) -> Decision:
        """The session's language, if it has one, without a detector; else the detected one, kept on the session."""
        known = question.language or kept
        seen = self._memory.redactor_at(question.scope)(question.kept_text, known).text
        decision = await decide(seen, known, self._rules_at(question.scope), self._detector)
        if session is not None and decision.settled and decision.settled != session.language:
            try:
                await self._memory.set_language(question.scope, decision.settled)
            except (ScopeErased, StoreError) as error:
                _log.warning("answering without keeping the language (%s)", type(error).__name__)
        return decision

    async def _kept(self, scope: Scope, event: UserMessage | ModelResponse, key: str | None = None) -> str | None:
        try:
            spoken = self._rules_at(scope).choice
            receipt = await self._memory.append(scope, [event], key, languages=spoken)
        except (Conflict, ScopeErased, StoreError) as error:
            _log.warning("answering without keeping a message: %s (%s)", error, type(error).__name__)
            return None
        return receipt.kept[-1] if receipt.kept else None


def _tools(traces: Any) -> tuple[ToolTrace, ...]:
    """Of traces of an agent's own kind, mappings or objects, as much as an answer shows; those of no name are none."""
    given: Iterable[Any] = cast("Iterable[Any]", traces) if isinstance(traces, Iterable) else ()
    return tuple(trace for trace in map(_tool, given) if trace.name)


def _tool(trace: Any) -> ToolTrace:
    if isinstance(trace, ToolTrace):
        return trace
    name, milliseconds = _field(trace, "name", "tool"), _field(trace, "milliseconds", "ms", "durationMs")
    ok, status = _field(trace, "ok"), _field(trace, "status")
    failed = _field(trace, "error") or (isinstance(status, str) and status.lower() in _FAILED)
    return ToolTrace(
        name if isinstance(name, str) else "",
        ok if isinstance(ok, bool) else not failed,
        int(milliseconds) if isinstance(milliseconds, int | float) and 0 <= milliseconds < _LONGEST else 0,
    )


def _field(trace: Any, *names: str) -> Any:
    for name in names:
        found = cast("Mapping[str, Any]", trace).get(name) if isinstance(trace, Mapping) else getattr(trace, name, None)
        if found is not None:
            return found
    return None
