"""One turn: the graph's state, which holds no more than memory keeps, and the `Turn` with the original message, what
was found for it, and the reply. The `Turn` is never written to a store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypedDict

from threadkeep.agent.beyond_documents import Beyond
from threadkeep.agent.small_talk import SmallTalk
from threadkeep.model import Message
from threadkeep.ports.chat import Snippet
from threadkeep.ports.responder import Answer, AnswerKind, Asked, ToolTrace, Usage
from threadkeep.scope import Scope

NOTHING_USED = Usage()


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
    usage: Usage = NOTHING_USED
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
