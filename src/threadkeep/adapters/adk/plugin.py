"""ADK's plugin: a turn ends when its run ends, and `outward` gets only what policy keeps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from google.adk.agents.invocation_context import InvocationContext
from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.sessions.session import Session
from google.genai import types

from threadkeep.adapters.adk.events import session_events
from threadkeep.adapters.adk.memory_service import memory_record
from threadkeep.adapters.adk.session_service import ThreadkeepSessionService
from threadkeep.policy.session_events import is_persistable, kept_events

Outward = Callable[[dict[str, Any]], Awaitable[None] | None]


class ThreadkeepPlugin(BasePlugin):
    """`App(…, plugins=[ThreadkeepPlugin(session_service, memory_service)])`.

    With it a turn lasts until its run has ended or failed, however many agents speak in it: until then others are kept
    out, and what is in flight stays. Then the session is added to `memory_service`, where one is given. `outward` gets
    each event that policy keeps, redacted by the rules it is kept under, in the shape of `before_persist`; of tools,
    thoughts and media nothing. Where it is a coroutine function it is awaited, before the turn continues. The model and
    the tools see the original text: policy is about what is kept.

    A run on any other session service passes untouched: ADK's `AgentTool` makes one for the agent it calls, with these
    plugins and a session of its own, and what goes in and out of it is traffic of a tool.
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
        if not _is_ours(invocation_context):
            return None
        run = invocation_context.run_config  # it says whether the words are a recording's
        told = None if run is None else run.custom_metadata
        invocation = invocation_context.invocation_id
        said = Event(author="user", content=user_message, invocation_id=invocation, custom_metadata=told)
        await self._notify(invocation_context.session, said)
        self._sessions.hold_turn(invocation_context.session, invocation)
        return None

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> types.Content | None:
        if _is_ours(invocation_context):
            self._sessions.hold_turn(invocation_context.session, invocation_context.invocation_id)
        return None

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> Event | None:
        if _is_ours(invocation_context) and not event.partial:
            await self._notify(invocation_context.session, event)
        return None

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        if not _is_ours(invocation_context):
            return
        await self._sessions.end_turn(invocation_context.session, invocation_context.invocation_id)
        if self._memories is not None:
            await self._memories.add_session_to_memory(invocation_context.session)

    async def on_run_error_callback(self, *, invocation_context: InvocationContext, error: Exception) -> None:
        if _is_ours(invocation_context):
            await self._sessions.end_turn(invocation_context.session, invocation_context.invocation_id)

    async def record(self, invocation_context: InvocationContext) -> dict[str, Any]:
        """The memory record of the session so far, redacted as the session service keeps it."""
        session = invocation_context.session
        return memory_record(session, await self._sessions.masking(session))

    async def _notify(self, session: Session, event: Event) -> None:
        shaped = session_events(event)
        if self._outward is None or not any(map(is_persistable, shaped)):
            return
        for told in kept_events(shaped, await self._sessions.masking(session)):
            answer = self._outward(told)
            if answer is not None:
                await answer


def _is_ours(context: InvocationContext) -> bool:
    """Of any instance: a runner's may be another one than the plugin's, on the same stores."""
    return isinstance(context.session_service, ThreadkeepSessionService)
