"""Conversations as resources: a caller lists and reads their own."""

from __future__ import annotations

import json
from typing import Any, Protocol
from urllib.parse import quote, unquote

import mcp_types as types

from threadkeep.errors import NotFound
from threadkeep.mcp.answers import legible
from threadkeep.mcp.calls import Call
from threadkeep.model import Conversation, ConversationPage

_PREFIX = "threadkeep://conversations/"
_MIME = "application/json"
TEMPLATE = types.ResourceTemplate(
    name="conversation",
    title="A conversation",
    uri_template=f"{_PREFIX}{{conversation}}",
    description="Its newest messages, the queries to the documents, the passages that were found, and what a"
    " framework keeps of it.",
    mime_type=_MIME,
)


class Conversations(Protocol):
    async def conversations(self, call: Call, after: str | None) -> ConversationPage: ...

    async def conversation(self, call: Call, name: str) -> dict[str, Any]: ...


async def listed(where: Conversations, call: Call, cursor: str | None) -> types.ListResourcesResult:
    page = await where.conversations(call, cursor)
    resources = [
        types.Resource(
            name=one.conversation,
            title=one.title or one.conversation,
            uri=f"{_PREFIX}{quote(one.conversation, safe='')}",
            description=_described(one),
            mime_type=_MIME,
        )
        for one in page
    ]
    return types.ListResourcesResult(resources=resources, next_cursor=page.after)


def _described(one: Conversation) -> str:
    """With its kind where it is a framework's: what it counts may be messages, questions or both."""
    told = [] if one.kind == "conversation" else [one.kind]
    told += [f"{one.messages} messages"] if one.messages or one.queries is None else []
    told += [] if one.queries is None else [f"{one.queries} questions"]
    return f"{', '.join(told)}, last on {one.last_activity_at:%Y-%m-%d}"


async def read(where: Conversations, call: Call, uri: str) -> types.ReadResourceResult:
    if not uri.startswith(_PREFIX) or not (name := unquote(uri.removeprefix(_PREFIX), errors="strict")):
        raise NotFound("there is no such resource")
    text = json.dumps(legible(await where.conversation(call, name)), ensure_ascii=False)
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=_MIME, text=text)])
