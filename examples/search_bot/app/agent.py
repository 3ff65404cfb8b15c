"""The bot: one agent with a search tool, and what happens in a turn."""

import asyncio
import os
import sys
from contextlib import AsyncExitStack

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.runners import Runner
from google.genai import types

from app.memory_config import TENANT, TURN_LIMITS, retention_settings
from app.tools.memory_tools import persist_memory_from_session
from app.tools.search import search
from threadkeep.adapters.adk import ThreadkeepMemoryService, ThreadkeepPlugin, ThreadkeepSessionService
from threadkeep.compose_retention import open_retention

APP = "search_bot"
INSTRUCTION = (
    "Answer questions about the city in the user's language. Search before you answer; say so if nothing is found."
)


class SearchBot:
    """`async with SearchBot(url, model) as bot: await bot.ask(…)`; `model` is a name that ADK knows, or a model."""

    def __init__(self, url, model):
        self._sessions = ThreadkeepSessionService.from_url(url, tenant=TENANT, limits=TURN_LIMITS)
        self._memories = ThreadkeepMemoryService.from_url(url, tenant=TENANT)
        agent = LlmAgent(name="guide", model=model, instruction=INSTRUCTION, tools=[search])
        app = App(name=APP, root_agent=agent, plugins=[ThreadkeepPlugin(self._sessions)])
        self._runner = Runner(app=app, session_service=self._sessions, memory_service=self._memories)
        self._open = AsyncExitStack()

    async def __aenter__(self):
        await self._open.enter_async_context(self._sessions)
        await self._open.enter_async_context(self._memories)
        return self

    async def __aexit__(self, *error):
        await self._open.aclose()

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


async def main(question):
    async with SearchBot("sqlite:///search_bot.db", os.environ.get("SEARCH_BOT_MODEL", "gemini-2.5-flash")) as bot:
        answer, _ = await bot.ask("me", "c1", question)
        sys.stdout.write(f"{answer}\n")


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:])))
