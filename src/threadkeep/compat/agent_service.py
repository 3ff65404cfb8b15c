"""The concierge's service under the name its router calls it by: one message and its history in, a reply out.

It keeps no turn: the router reads the session, calls `chat`, and stores it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from threadkeep.agent.folder import AssistantFolder, load_folder
from threadkeep.agent.prompt import system_instruction
from threadkeep.agent.tools import ToolBench, ToolContext, answered, fill_slots
from threadkeep.agent.window import earlier_messages, from_the_user, within
from threadkeep.memory import Memory
from threadkeep.models.chat.choice import gemini_name
from threadkeep.models.chat.gemini import GeminiModel, gemini_client
from threadkeep.models.chat.language import model_detector
from threadkeep.models.chat.patience import Patience
from threadkeep.models.language import spoken_as
from threadkeep.models.tokens import tokenizer
from threadkeep.ports.chat import ChatModel, ChatRequest, Said
from threadkeep.ports.language import LanguageDetector, LanguageRules
from threadkeep.ports.responder import ToolTrace
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
    """`client` is a `google.genai.Client`, and `model` replaces it. Without either it is the model that
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
            model = _other_than_gemini(loaded, settings)
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


def _other_than_gemini(folder: AssistantFolder, settings: Settings) -> ChatModel:
    from threadkeep.compose.assistant import chat_model  # needs more extras than a concierge on Gemini

    return chat_model(folder, settings)
