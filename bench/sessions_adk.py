"""Through ADK's own interface: our session service, and those that come with ADK."""

from __future__ import annotations

from contextlib import AsyncExitStack
from tempfile import TemporaryDirectory

from google.adk.sessions.database_session_service import DatabaseSessionService

from bench.sessions_peers import ADKSessions, GoogleADK
from bench.sessions_redis import ADKRedis
from threadkeep.adapters.adk import ThreadkeepSessionService
from threadkeep.settings import Settings


class ThreadkeepADK(ADKSessions):
    """Each event is redacted, stored, indexed for recall and given its place, under the lease of its invocation."""

    name = "Threadkeep"

    async def open(self, place: str) -> None:
        self._stack = AsyncExitStack()
        self._service = await self._stack.enter_async_context(self._opened(place))
        self._sessions = {}

    def _opened(self, place: str) -> ThreadkeepSessionService:
        return ThreadkeepSessionService.from_url(f"sqlite:///{place}", tenant="bench", settings=Settings())

    async def close(self) -> None:
        await self._stack.aclose()


class ThreadkeepADKOnRedis(ThreadkeepADK):
    """Messages go to Redis and its journal, what ADK needs besides into the archive's database."""

    def _opened(self, place: str) -> ThreadkeepSessionService:
        folder = self._stack.enter_context(TemporaryDirectory(prefix="bench-archive-"))
        url = f"sqlite:///{folder}/archive.db"
        return ThreadkeepSessionService.from_url(url, tenant="bench", redis=place, settings=Settings())


class ADKDatabase(ADKSessions):
    name = "Google ADK DatabaseSessionService"

    async def open(self, place: str) -> None:
        self._service = DatabaseSessionService(f"sqlite+aiosqlite:///{place}")
        self._sessions = {}

    async def close(self) -> None:
        await self._service.db_engine.dispose()


class ADKRedisToTheEnd(ADKRedis):
    most_messages = None


ON_SQLITE = (ThreadkeepADK, ADKDatabase, GoogleADK)
ON_REDIS = (ThreadkeepADKOnRedis, ADKRedisToTheEnd)
