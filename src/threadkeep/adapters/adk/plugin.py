"""ADK's plugin: a turn ends when its run ends, and whoever looks on sees only what policy keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.adk.agents.invocation_context import InvocationContext
from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.sessions.session import Session
from google.genai import types

from threadkeep.adapters.adk.events import message_in, said_in
from threadkeep.adapters.adk.persist import memory_record
from threadkeep.adapters.adk.session_service import ThreadkeepSessionService
from threadkeep.events import UserMessage
from threadkeep.policy.fields import kept_meta

Outward = Callable[[dict[str, Any]], None]


class ThreadkeepPlugin(BasePlugin):
    """`App(…, plugins=[ThreadkeepPlugin(session_service, memory_service)])`.

    With it a turn lasts until its run has ended or failed, however many agents speak in it: until then others are kept
    out, and what is in flight stays. Then the session is added to `memory_service`, where one is given. `outward` gets
    each event that policy keeps, redacted by the rules it is kept under, in the seed's shape; of tools, thoughts and
    media nothing. The model and the tools see what was said as it was said: policy is about what is kept.
    """

    def __init__(
        self,
        session_service: ThreadkeepSessionService,
        memory_service: BaseMemoryService | None = None,
        outward: Outward | None = None,
        name: str = "threadkeep",
    ) -> None:
        super().__init__(name)
        self._sessions = session_service
        self._memories = memory_service
        self._outward = outward

    async def on_user_message_callback(
        self, *, invocation_context: InvocationContext, user_message: types.Content
    ) -> types.Content | None:
        run = invocation_context.run_config  # it says whether the words are a recording's
        told = None if run is None else run.custom_metadata
        invocation = invocation_context.invocation_id
        said = Event(author="user", content=user_message, invocation_id=invocation, custom_metadata=told)
        await self._tell(invocation_context.session, said)
        self._sessions.hold_turn(invocation_context.session, invocation)
        return None

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> types.Content | None:
        self._sessions.hold_turn(invocation_context.session, invocation_context.invocation_id)
        return None

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> Event | None:
        if not event.partial:
            await self._tell(invocation_context.session, event)
        return None

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        await self._sessions.end_turn(invocation_context.session, invocation_context.invocation_id)
        if self._memories is not None:
            await self._memories.add_session_to_memory(invocation_context.session)

    async def on_run_error_callback(self, *, invocation_context: InvocationContext, error: Exception) -> None:
        await self._sessions.end_turn(invocation_context.session, invocation_context.invocation_id)

    async def record(self, invocation_context: InvocationContext) -> dict[str, Any]:
        """The memory record of the session so far, redacted as the session service keeps it."""
        session = invocation_context.session
        return memory_record(session, await self._sessions.masking(session))

    async def _tell(self, session: Session, event: Event) -> None:
        message = message_in(said_in(event))
        if self._outward is None or message is None:
            return
        masked = await self._sessions.masking(session)
        kind = "UserMessage" if isinstance(message, UserMessage) else "ModelResponse"
        if not isinstance(message, UserMessage) or message.modality == "text":
            self._outward({"kind": kind, "text": masked(message.text or ""), "ts": event.timestamp})
        elif message.summary:
            self._outward(
                {
                    "kind": kind,
                    "modality": message.modality,
                    "summary": masked(message.summary),
                    "meta": kept_meta(message.meta, message.modality)[0],
                    "ts": event.timestamp,
                }
            )
