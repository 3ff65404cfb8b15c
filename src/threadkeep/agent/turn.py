"""One turn while it lasts: the message as it was said, what was found for it, and the reply. Never written anywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

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
    asked: Asked | None = None
    language: str = ""
    settled_language: str | None = None  # the talk's from now on; None while `language` is only the default
    kept_language: str | None = None  # the talk's as memory has it, of an earlier session too
    prior: Sequence[Message] = ()
    is_whole: bool = True  # whether `prior` reaches back to the beginning of the talk
    user_message_id: str | None = None
    wants_to_stop: bool = False
    meant: str = ""  # the text as it is looked up: spelt as everybody does, without a hello before it
    talk: SmallTalk | None = None  # what the message is if it is just small talk
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
        return "" if self.asked is None else self.asked.text

    @property
    def kept_text(self) -> str:
        """What may be kept of it, before redaction, and looked for in stores: of a recording its summary."""
        return "" if self.asked is None else self.asked.kept_text

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
