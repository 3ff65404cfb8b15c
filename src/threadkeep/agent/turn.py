"""What the nodes of an assistant work with: the graph's state, the `Turn`, and the parts that all turns share.

The state holds no more than memory keeps. The `Turn` has the original message, what was found for it, and the reply; it
is never written to a store.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypedDict

from threadkeep.agent.config import DEFAULTS, AssistantConfig, Phrases, phrases_in
from threadkeep.agent.dialogue_acts import Beyond, SmallTalk, is_just_one_of, small_talk
from threadkeep.agent.folder import AssistantFolder
from threadkeep.agent.spelling import Spelling
from threadkeep.memory import Memory
from threadkeep.model import Message
from threadkeep.models.language import closest
from threadkeep.ports.chat import Answer, AnswerKind, Asked, ChatModel, Snippet, ToolTrace, Usage
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.models import LanguageDetector, LanguageRules
from threadkeep.recall.context import CountTokens
from threadkeep.scope import Scope


@dataclass(slots=True, repr=False)
class Turn:
    """`prior` are the messages before this one, redacted as memory keeps them, in their order."""

    scope: Scope
    kind: Literal["greet", "ask"] = "ask"
    question: Asked | None = None
    language: str = ""
    settled_language: str | None = None  # the conversation's from now on; None while `language` is only the default
    kept_language: str | None = None  # the conversation's as memory has it, of an earlier session too
    prior: Sequence[Message] = ()
    is_whole: bool = True  # whether `prior` reaches back to the conversation's beginning
    user_message_id: str | None = None
    wants_to_stop: bool = False
    meant: str = ""  # the text as it is looked up: spelt as everybody does, without a hello before it
    small_talk: SmallTalk | None = None  # which, if the message is just that
    beyond: Beyond | None = None  # or what no document answers
    quoted: str = ""  # what the documents say to it, where no model makes the answer
    found: list[Snippet] = field(default_factory=list[Snippet])
    fenced: list[str] = field(default_factory=list[str])  # the same, as the model reads it
    said: str = ""  # what the model answered, before anything was added to it
    reply: str = ""
    reply_kind: AnswerKind = "answer"
    reply_id: str | None = None
    tools: list[ToolTrace] = field(default_factory=list[ToolTrace])
    usage: Usage = field(default_factory=Usage)
    errors: list[str] = field(default_factory=list[str])  # types of what went wrong without ending the turn
    emit: Callable[[str], None] | None = None

    @property
    def text(self) -> str:
        return "" if self.question is None else self.question.text

    @property
    def kept_text(self) -> str:
        """What may be kept of it, before redaction, and looked for in stores: of a recording its summary."""
        return "" if self.question is None else self.question.kept_text

    def say(self, piece: str) -> None:
        if self.emit is not None and piece:
            self.emit(piece)

    def count(self, usage: Usage) -> None:
        before = self.usage
        self.usage = Usage(before.input_tokens + usage.input_tokens, before.output_tokens + usage.output_tokens)

    def answer(self, intent: str | None = None) -> Answer:
        meta = {
            name: value
            for name, value in {
                "intent": intent,
                "userMessageId": self.user_message_id,
                "retrieved": [snippet.source for snippet in self.found],
                "errors": list(self.errors),
            }.items()
            if value
        }
        return Answer(self.reply, self.language, self.reply_kind, self.reply_id, tuple(self.tools), self.usage, meta)


class ChatEntry(TypedDict):
    id: str
    role: str
    content: str  # redacted
    created_at: str


class AgentState(TypedDict, total=False):
    """What the user just said as he said it, what was found, tool calls and the reply as sent are not here: those live
    in the `Turn`, in memory, while it lasts."""

    conversation_id: str
    user_id: str
    chat_history: list[ChatEntry]
    last_updated: str
    intent: str | None
    intent_confidence: float | None
    need_retrieval_hint: bool | None
    clarify_questions: list[str] | None
    clarify_attempts: int | None
    preferred_language: str | None


def entry_of(message: Message) -> ChatEntry:
    return ChatEntry(id=message.id, role=message.role, content=message.content, created_at=message.ts.isoformat())


@dataclass(frozen=True, slots=True)
class Documents:
    """What bears on a question: for the prompt, fenced, and one by one."""

    text: str = field(default="", repr=False)
    snippets: Sequence[Snippet] = ()


# Takes the caller's question and scope, its text as memory would keep it, the user's earlier questions, a token budget.
SearchDocuments = Callable[[Asked, str, Sequence[str], int], Awaitable[Documents]]


@dataclass(frozen=True, slots=True)
class AssistantParts:
    folder: AssistantFolder
    memory: Memory
    model: ChatModel
    detector: LanguageDetector
    count_tokens: CountTokens
    documents: SearchDocuments | None = None
    clock: Clock = system_clock
    spelling: Callable[[], Spelling] = Spelling  # by the words of the documents, once they can be read

    @property
    def config(self) -> AssistantConfig:
        return self.folder.config

    def now(self) -> str:
        return self.clock().isoformat()

    def languages(self, scope: Scope) -> LanguageRules:
        """The folder's own list, where it has one; otherwise what is spoken in the tenant, which may be any."""
        config = self.config
        return LanguageRules(config.languages or self.memory.languages(scope).allowed, config.default_language)

    @property
    def worded(self) -> tuple[str, ...]:
        """Languages that there are phrases in."""
        config = self.config
        return config.languages or tuple(dict.fromkeys((config.default_language, *config.phrases, *DEFAULTS)))

    def phrases(self, language: str) -> Phrases:
        return phrases_in(language, self.config.phrases)

    def greeting(self, language: str) -> str | None:
        """The persona's, or its English one: `Greeting:` is in the assistant's default language."""
        persona = self.folder.persona
        own = {self.config.default_language: "", **persona.greetings}
        return persona.greeting(language if closest(own, language) is not None else "en")

    def small_talk(self, text: str, settled: str | None = None) -> SmallTalk | None:
        """By the folder's own phrases, or else by everybody's words. `language` is one it may answer in.

        A `settled` language is looked in first, and is the one of a message that other languages say too.
        """
        config = self.config
        for tag in dict.fromkeys((settled or config.default_language, *self.worded)):
            phrases = self.phrases(tag)
            if is_just_one_of(text, phrases.stop):
                return SmallTalk("goodbye", tag)
            if is_just_one_of(text, phrases.thanks):
                return SmallTalk("thanks", tag)
            if is_just_one_of(text, phrases.hello):
                return SmallTalk("hello", tag)
        said = small_talk(text, settled)
        spoken = said and next((tag for tag in self.worded if tag.split("-")[0] == said.language), None)
        of_any = None if said is None or config.languages else said.language
        return said and SmallTalk(said.act, spoken or of_any or config.default_language)

    def redacted(self, scope: Scope, text: str, language: str | None = None) -> str:
        """As memory would keep it."""
        return self.memory.redactor_at(scope)(text, language).text
