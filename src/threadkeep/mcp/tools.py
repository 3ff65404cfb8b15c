"""The tools: what each is called, takes, answers and may do. One list, from which all else is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import mcp_types as types

from threadkeep.mcp import schemas

Kind = Literal["reads", "adds", "removes"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    name: str
    title: str
    description: str
    takes: type[schemas.Arguments]
    answers: type[schemas.Answer]
    kind: Kind

    def listed(self) -> types.Tool:
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.takes.model_json_schema(),
            output_schema=self.answers.model_json_schema(),
            annotations=types.ToolAnnotations(
                read_only_hint=self.kind == "reads",
                destructive_hint=self.kind == "removes",
                idempotent_hint=self.kind != "adds",
                open_world_hint=False,
            ),
        )


RETRIEVE = ToolSpec(
    "retrieve",
    "Search the documents",
    "Find passages of the indexed documents that bear on a question. Follow-up questions may refer to earlier ones of"
    " the same conversation. Returns passages, no written answer.",
    schemas.RetrieveArguments,
    schemas.RetrieveAnswer,
    "reads",
)

TOOLS = (
    RETRIEVE,
    ToolSpec(
        "remember",
        "Remember",
        "Keep a note about the user, so that it can be recalled later, in this or another conversation. It is kept as"
        " your note, not as the user's words. Personal data is masked before it is stored.",
        schemas.RememberArguments,
        schemas.RememberAnswer,
        "adds",
    ),
    ToolSpec(
        "recall",
        "Recall",
        "Find earlier messages, in any conversation of this user, that bears on a query.",
        schemas.RecallArguments,
        schemas.RecallAnswer,
        "reads",
    ),
    ToolSpec(
        "history",
        "Conversation history",
        "The newest messages of a conversation in order, and the queries to documents that were made in it.",
        schemas.HistoryArguments,
        schemas.HistoryAnswer,
        "reads",
    ),
    ToolSpec(
        "forget",
        "Forget",
        "Erase a message, every message that says a text, or a whole conversation, for good. Answers with a receipt:"
        " what each store held and removed.",
        schemas.ForgetArguments,
        schemas.ForgetAnswer,
        "removes",
    ),
)
