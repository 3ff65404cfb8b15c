"""The names a chat service's router calls: its session store, and the detection of a language."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from threadkeep.agent.keeping import earlier_in_session
from threadkeep.compose.memory import redaction_rules
from threadkeep.events import Event, ModelResponse, UserMessage
from threadkeep.memory import Memory
from threadkeep.model import History, Message
from threadkeep.models.language import ModelDetector, OfflineDetector, decide
from threadkeep.policy.redact import Redactor
from threadkeep.ports.models import LanguageRules
from threadkeep.scope import DEFAULT_TENANT, DEFAULT_USER, Scope
from threadkeep.sessions.document import DocumentMessage, as_document, read_document
from threadkeep.settings import Settings, load_settings


class _Stored(dict[str, Any]):
    """An entry as `get` returned it: `set` recognises it even where others stored or erased in between."""

    def __init__(self, entry: Mapping[str, Any], scope: Scope) -> None:
        super().__init__(entry)
        self.scope = scope


class SessionStore:
    """Documents look as they always did; behind them every new message is appended, so none is overwritten."""

    def __init__(self, memory: Memory, user: str = DEFAULT_USER, tenant: str = DEFAULT_TENANT) -> None:
        self._memory = memory
        self._scope = Scope(tenant, user)

    async def get(self, session_id: str) -> dict[str, Any] | None:
        """The document with the messages of the live session, or None when there is none."""
        scope = self._scope.with_conversation(session_id)
        session = await self._memory.session(scope)
        if session is None:
            return None
        said = await earlier_in_session(self._memory, History(scope, session.messages, session.language, None), None)
        document = as_document(replace(session, messages=tuple(said.messages), language=said.language))
        return document | {"messages": [_Stored(entry, scope) for entry in document["messages"]]}

    async def touch(self, session_id: str) -> None:
        """Create the document at once, or slide its TTL."""
        await self._memory.touch(self._scope.with_conversation(session_id))

    async def set(self, session_id: str, document: Any) -> None:
        """Store what is new in the document, also when another request has stored its own turn in between."""
        scope = self._scope.with_conversation(session_id)
        given = read_document(document)
        session = await self._memory.touch(scope)
        added = _after_stored(document, scope)
        if added is None:
            # They have lost their marks on the way: what is stored is known by how it continues the window.
            seen = [(message, self._memory.redacted(message.content)) for message in given.messages]
            stored = (_run(session.messages[start:], seen) for start in range(len(session.messages)))
            added = given.messages[max(stored, default=0) :]
        if added:
            await self._memory.append(scope, [_event(message, given.language) for message in added])
        if given.language and given.language != session.language:
            await self._memory.set_language(scope, given.language)


def _after_stored(document: Any, scope: Scope) -> tuple[DocumentMessage, ...] | None:
    """The messages after the last one that `get` handed out for this session; None when there is none of those."""
    entries: Any = cast("Mapping[str, Any]", document).get("messages") if isinstance(document, Mapping) else None
    if not isinstance(entries, list):
        return None
    listed = cast("list[Any]", entries)
    marked = [place for place, entry in enumerate(listed) if isinstance(entry, _Stored) and entry.scope == scope]
    return read_document({"messages": listed[marked[-1] + 1 :]}).messages if marked else None


def _run(known: Sequence[Message], given: Sequence[tuple[DocumentMessage, str]]) -> int:
    """The length of the common beginning. Without times it counts only if it is all of `known`: texts do repeat."""
    length = 0
    for message, (entry, content) in zip(known, given, strict=False):
        if (message.role, message.content) != (entry.role, content) or entry.ts not in (None, message.ts):
            break
        length += 1
    timed = all(entry.ts is not None for entry, _ in given[:length])
    return length if timed or length == len(known) else 0


def _event(message: DocumentMessage, language: str | None) -> Event:
    """An answer carries the session's language, in case the session before it had another."""
    if message.role == "user":
        return UserMessage(message.content, ts=message.ts)
    return ModelResponse(message.content, ts=message.ts, language=language)


AskModel = Callable[[str, str], Awaitable[str | None]]  # the model's name and a prompt, to its answer


async def detect_language_bcp47(
    text: str, ask_model: AskModel | None = None, settings: Settings | None = None
) -> str | None:
    """The BCP-47 tag of a new session's first message, in the form that `THREADKEEP_LANGUAGES` has it, if set.

    With `ask_model` the model that `GEMINI_MODEL_LANG` names decides, given the message as memory would keep it;
    without it, or when it fails, the offline detector. A message too short to decide is in
    `THREADKEEP_DEFAULT_LANGUAGE`, or in none: nothing is stored for the session then, and the next message decides.
    """
    settings = settings or load_settings()
    rules = LanguageRules(settings.languages, settings.default_language)
    detector = ModelDetector(partial(ask_model, settings.gemini_model_lang)) if ask_model else OfflineDetector()
    if ask_model:
        text = Redactor(redaction_rules(settings))(text).text
    return (await decide(text, None, rules, detector)).tag
