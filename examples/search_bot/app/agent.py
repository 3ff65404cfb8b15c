"""The bot: one agent with a search tool, and what happens in a turn."""

import asyncio
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
from app.tools.memory_tools import persist_memory_from_session
from app.tools.search import search
from threadkeep.adapters.adk import ThreadkeepMemoryService, ThreadkeepPlugin, ThreadkeepSessionService
from threadkeep.compose_media import media_for
from threadkeep.compose_retention import open_retention

APP = "search_bot"
INSTRUCTION = (
    "Answer questions about the city in the user's language. Search before you answer; say so if nothing is found."
)


class SearchBot:
    """`async with SearchBot(url, model) as bot: await bot.ask(…)`; `model` is a name that ADK knows, or a model.

    `media` understands recordings and pictures (`threadkeep.media.Media`); without it, the one the settings name.
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
        return self

    async def __aexit__(self, *error):
        await self._open.aclose()

    async def ask_with(self, user, session, data, mime, text=""):
        """A question that is spoken, or comes with a picture, as bytes.

        Of a recording the model is given the words, of a picture the picture; what is kept of either is its summary.
        What is not what it is called, cannot be read or says nothing raises `InvalidEvent`, and no turn begins.
        """
        found = await self._media.understood(data, mime)
        kept = {"summary": found.event.summary, "modality": found.event.modality, "meta": dict(found.event.meta)}
        if found.event.modality == "voice":
            return await self.ask(user, session, found.words, media_summary=kept)
        picture = types.Part.from_bytes(data=data, mime_type=found.event.meta["mime"])
        return await self.ask(user, session, text, media=picture, media_summary=kept)

    async def ask(self, user, session, text="", *, media=None, media_summary=None):
        """One turn; the answer, and the session's memory record.

        `media` is a part for the model (bytes and MIME type), if it is to see or hear it. `media_summary` is what is
        kept of it: `{"summary", "modality", "meta": {"mime", "sha256", "durationMs", "language"}}`.
        """
        if await self._sessions.get_session(app_name=APP, user_id=user, session_id=session) is None:
            await self._sessions.create_session(app_name=APP, user_id=user, session_id=session)
        parts = [types.Part(text=text)] if text else []
        parts += [media] if media is not None else []
        if not parts:
            parts = [types.Part(text=media_summary["summary"])]
        config = RunConfig(custom_metadata={"media_summary": media_summary} if media_summary else None)
        said = types.Content(role="user", parts=parts)
        answer = ""
        async for event in self._runner.run_async(
            user_id=user, session_id=session, new_message=said, run_config=config
        ):
            if event.is_final_response() and event.content and event.content.parts:
                answer = event.content.parts[0].text or answer
        stored = await self._sessions.get_session(app_name=APP, user_id=user, session_id=session)
        return answer, await persist_memory_from_session(stored, self._memories)


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
