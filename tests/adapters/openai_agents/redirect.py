"""A pytest plugin: the SDK's own tests ask for `SQLiteSession` and get ours, in the same file or in memory."""

from pathlib import Path
from typing import Any

import agents
import agents.memory

from threadkeep.adapters.openai_agents import ThreadkeepSession
from threadkeep.settings import Settings


class SQLiteSession(ThreadkeepSession):
    """Tools' items are kept, as these tests want them, and handed out as they are."""

    def __init__(self, session_id: str, db_path: str | Path = ":memory:", session_settings: Any = None) -> None:
        alone = str(db_path) == ":memory:"
        url = "sqlite://" if alone else f"sqlite:///{db_path}"
        super().__init__(
            session_id,
            url,
            session_settings=session_settings,
            tool_items="ttl",
            pairs=False,
            settings=Settings() if alone else None,  # of its own: in memory nothing is shared
        )


agents.SQLiteSession = SQLiteSession  # type: ignore[misc, assignment]
agents.memory.SQLiteSession = SQLiteSession  # type: ignore[misc, assignment]
