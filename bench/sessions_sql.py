"""The contestants on database servers: ours, and the peers' own sessions through SQLAlchemy."""

from __future__ import annotations

from contextlib import AsyncExitStack

from agents.extensions.memory import SQLAlchemySession
from google.adk.sessions.database_session_service import DatabaseSessionService
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from bench.sessions_ours import Threadkeep, ThreadkeepUnredacted
from bench.sessions_peers import ADKSessions, OpenAISessions
from threadkeep import open_memory
from threadkeep.settings import Settings

DRIVERS = {"postgresql": "postgresql+asyncpg", "mysql": "mysql+asyncmy"}


def with_driver(place: str) -> str:
    scheme, _, rest = place.partition("://")
    return f"{DRIVERS[scheme]}://{rest}"


class ThreadkeepOnServer(Threadkeep):
    """`append` redacts, stores, indexes for recall and slides the session, in one transaction."""

    async def open(self, place: str) -> None:
        self._stack = AsyncExitStack()
        self._memory = await self._stack.enter_async_context(open_memory(place, settings=Settings()))


class ThreadkeepOnServerUnredacted(ThreadkeepOnServer, ThreadkeepUnredacted):
    """For information, as on SQLite."""


class OpenAIServer(OpenAISessions):
    """One engine for all sessions, as its documentation advises."""

    name = "OpenAI Agents SQLAlchemySession"

    async def open(self, place: str) -> None:
        self._engine: AsyncEngine = create_async_engine(with_driver(place))
        self._sessions: dict[str, SQLAlchemySession] = {}
        await self._session("first").get_items()  # makes the tables

    def _session(self, conversation: str) -> SQLAlchemySession:
        if conversation not in self._sessions:
            session = SQLAlchemySession(conversation, engine=self._engine, create_tables=not self._sessions)
            self._sessions[conversation] = session
        return self._sessions[conversation]

    async def close(self) -> None:
        await self._engine.dispose()


class ADKServer(ADKSessions):
    name = "Google ADK DatabaseSessionService"
    most_messages = 400

    async def open(self, place: str) -> None:
        self._service = DatabaseSessionService(with_driver(place))
        self._sessions = {}

    async def close(self) -> None:
        await self._service.db_engine.dispose()


POSTGRES = (ThreadkeepOnServer, ThreadkeepOnServerUnredacted, OpenAIServer, ADKServer)
# SQLAlchemySession cannot make its tables there: its columns are VARCHAR without a length.
MARIADB = (ThreadkeepOnServer, ThreadkeepOnServerUnredacted, ADKServer)
