"""The bot: one agent with a search tool, and what happens in a turn."""

import asyncio
import logging
import mimetypes
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.runners import Runner
from google.genai import types

from app.memory_config import TENANT, TURN_LIMITS, retention_settings
from app.tools.memory_tools import persist_memory_from_session, remember_in
from app.tools.search import search
from threadkeep.adapters.adk import ThreadkeepMemoryService, ThreadkeepPlugin, ThreadkeepSessionService
from threadkeep.compose.service import media_for
from threadkeep.compose.upkeep import open_retention
from threadkeep.errors import CapabilityMissing, InvalidEvent

APP = "search_bot"
INSTRUCTION = (
    "Answer questions about the city in the user's language. Search before you answer; say so if nothing is found."
    " {temp:left_out?}"
)
_log = logging.getLogger("search_bot")


class SearchBot:
    """`async with SearchBot(url, model) as bot: await bot.ask(…)`; `model` is a name that ADK knows, or a model.

    `media` understands recordings and pictures (`threadkeep.core.media.Media`); without it, the one the settings name.
    """

    def __init__(self, url, model, media=None):
        self._media = media or media_for()
        self._sessions = ThreadkeepSessionService.from_url(url, tenant=TENANT, limits=TURN_LIMITS)
        self._memories = ThreadkeepMemoryService.from_url(url, tenant=TENANT)
        agent = LlmAgent(name="guide", model=model, instruction=INSTRUCTION, tools=[search])
        app = App(name=APP, root_agent=agent, plugins=[ThreadkeepPlugin(self._sessions)])
        self._runner = Runner(app=app, session_service=self._sessions, memory_service=self._memories)
        self._open = AsyncExitStack()

    async def __aenter__(self):
        await self._open.enter_async_context(self._sessions)
        await self._open.enter_async_context(self._memories)
        self._open.push_async_callback(self._media.close)
        self._open.callback(remember_in, None)
        remember_in(self._memories)
        return self

    async def __aexit__(self, *error):
        await self._open.aclose()

    async def ask_with(self, user, session, data, mime, text=""):
        """A question that is spoken, or comes with a picture, as bytes.

        Of a recording the model is given the words, of a picture the picture; what is kept of either is its summary.
        What cannot be read or says nothing is left out: the answer begins with the reason, and what was typed is
        answered without it. What is not what it is called raises `InvalidEvent`, and no turn begins.
        """
        try:
            found = await self._media.understood(data, mime)
        except (CapabilityMissing, InvalidEvent) as error:
            if isinstance(error, InvalidEvent) and error.field != "data":
                raise
            return await self._ask_without(user, session, mime, text, error)
        kept = {"summary": found.event.summary, "modality": found.event.modality, "meta": dict(found.event.meta)}
        if found.event.modality == "voice":
            return await self.ask(user, session, found.words, media_summary=kept)
        picture = types.Part.from_bytes(data=data, mime_type=found.event.meta["mime"])
        return await self.ask(user, session, text, media=picture, media_summary=kept)

    async def _ask_without(self, user, session, mime, text, error):
        picture = mime.startswith("image/")
        name = "picture" if picture else "recording"
        _log.warning("a %s was left out of a turn: %s", name, error)
        why = f"it {error.problem}" if isinstance(error, InvalidEvent) else str(error)
        reason = f"The {name} was left out: {why}. Say in words what it {'shows' if picture else 'says'}."
        if not text:
            return reason, await persist_memory_from_session(await self._session(user, session))
        answer, record = await self.ask(user, session, text, left_out=reason)
        return f"{reason}\n{answer}", record

    async def _session(self, user, session):
        place = {"app_name": APP, "user_id": user, "session_id": session}
        return await self._sessions.get_session(**place) or await self._sessions.create_session(**place)

    async def ask(self, user, session, text="", *, media=None, media_summary=None, left_out=""):
        """One turn; the answer, and the session's memory record.

        `media` is a part for the model (bytes and MIME type), if it is to see or hear it. `media_summary` is what is
        kept of it: `{"summary", "modality", "meta": {"mime", "sha256", "durationMs", "language"}}`. `left_out` is
        told to the model and kept nowhere: what the user sent besides, and why it is not there.
        """
        await self._session(user, session)
        parts = [types.Part(text=text)] if text else []
        parts += [media] if media is not None else []
        if not parts:
            parts = [types.Part(text=media_summary["summary"])]
        config = RunConfig(custom_metadata={"media_summary": media_summary} if media_summary else None)
        said = types.Content(role="user", parts=parts)
        told = {"temp:left_out": f"The user was told: {left_out}"} if left_out else None
        answer = ""
        async for event in self._runner.run_async(
            user_id=user, session_id=session, new_message=said, run_config=config, state_delta=told
        ):
            if event.is_final_response() and event.content and event.content.parts:
                answer = "".join(part.text for part in event.content.parts if part.text and not part.thought) or answer
        return answer, await persist_memory_from_session(await self._session(user, session))


async def forget_old(url):
    """What has been kept for as many days as `memory_config` says goes. Once a day is enough."""
    async with open_retention(url, settings=retention_settings()) as retention:
        return await retention.run()


def file_in(arguments):
    return Path(arguments[0]) if arguments and Path(arguments[0]).is_file() else None


async def main(arguments):
    """Words; or a recording or a picture, with or without words after it."""
    file = file_in(arguments)
    async with SearchBot("sqlite:///search_bot.db", os.environ.get("SEARCH_BOT_MODEL", "gemini-2.5-flash")) as bot:
        if file is None:
            answer, _ = await bot.ask("me", "c1", " ".join(arguments))
        else:
            mime = mimetypes.guess_type(file.name)[0] or ""
            answer, _ = await bot.ask_with("me", "c1", file.read_bytes(), mime, " ".join(arguments[1:]))
        sys.stdout.write(f"{answer}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
