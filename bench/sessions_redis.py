"""The contestants on Redis: ours, and the peers' own Redis sessions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from tempfile import TemporaryDirectory

from agents.extensions.memory import RedisSession
from google.adk.integrations.redis import RedisSessionService, RedisSessionServiceConfig
from langchain_community.chat_message_histories import RedisChatMessageHistory
from langchain_core.messages import AIMessage, HumanMessage

from bench.sessions_ours import Threadkeep, ThreadkeepUnredacted
from bench.sessions_peers import ADKSessions, OpenAISessions
from bench.sessions_texts import Message
from threadkeep import open_memory
from threadkeep.settings import Settings


class ThreadkeepOnRedis(Threadkeep):
    """An append is answered when Redis has it, journal included. The worker that brings it to the archive is another
    process in production; here it stands still, so all that was said stays pending."""

    async def open(self, place: str) -> None:
        self._stack = AsyncExitStack()
        folder = self._stack.enter_context(TemporaryDirectory(prefix="bench-archive-"))
        archive = f"sqlite:///{folder}/archive.db"
        memory = open_memory(archive, redis=place, worker=False, settings=Settings())
        self._memory = await self._stack.enter_async_context(memory)


class ThreadkeepOnRedisUnredacted(ThreadkeepOnRedis, ThreadkeepUnredacted):
    """For information, as on SQLite."""


class OpenAIRedis(OpenAISessions):
    """Sessions never end, and it is asked for no more than the window."""

    name = "OpenAI Agents RedisSession"
    ttl: int | None = None

    async def open(self, place: str) -> None:
        self._place = place
        self._sessions: dict[str, RedisSession] = {}

    def _session(self, conversation: str) -> RedisSession:
        if conversation not in self._sessions:
            self._sessions[conversation] = RedisSession.from_url(conversation, url=self._place, ttl=self.ttl)
        return self._sessions[conversation]

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()


class OpenAIRedisWithTtl(OpenAIRedis):
    """With a time to live that slides at every append, as ours always does."""

    name = "OpenAI Agents RedisSession, ttl"
    ttl = 3_600


class OpenAIRedisWhole(OpenAIRedis):
    """As the SDK's own Runner reads it unless `session_settings` set a limit: whole, before every turn."""

    name = "OpenAI Agents RedisSession, as Runner reads"

    async def window(self, conversation: str, size: int) -> list[str]:
        return [str(item["content"]) for item in await self._session(conversation).get_items()][-size:]  # type: ignore[typeddict-item]


class ADKRedis(ADKSessions):
    """The whole session is one value, read and written at every event."""

    name = "Google ADK RedisSessionService"
    most_messages = 400

    async def open(self, place: str) -> None:
        self._service = RedisSessionService(RedisSessionServiceConfig(uri=place))
        self._sessions = {}

    async def close(self) -> None:
        await self._service._get_redis().aclose()


class LangChainRedis:
    """Knows no window: it reads everything. Synchronous, called in place, so it pays for no thread hop."""

    name = "LangChain RedisChatMessageHistory"
    most_messages = 400

    async def open(self, place: str) -> None:
        self._place = place
        self._histories: dict[str, RedisChatMessageHistory] = {}

    def _history(self, conversation: str) -> RedisChatMessageHistory:
        if conversation not in self._histories:
            self._histories[conversation] = RedisChatMessageHistory(conversation, url=self._place)
        return self._histories[conversation]

    async def append(self, conversation: str, messages: Sequence[Message]) -> None:
        kinds = {"user": HumanMessage, "assistant": AIMessage}
        self._history(conversation).add_messages([kinds[role](text) for role, text in messages])

    async def window(self, conversation: str, size: int) -> list[str]:
        return [str(message.content) for message in self._history(conversation).messages[-size:]]

    async def durability(self) -> dict[str, str]:
        return {}

    async def close(self) -> None:
        for history in self._histories.values():
            history.redis_client.close()


REDIS = (
    ThreadkeepOnRedis,
    ThreadkeepOnRedisUnredacted,
    OpenAIRedis,
    OpenAIRedisWithTtl,
    OpenAIRedisWhole,
    ADKRedis,
    LangChainRedis,
)
