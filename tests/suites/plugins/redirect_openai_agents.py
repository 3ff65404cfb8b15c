"""A pytest plugin: the SDK's own tests ask for `SQLiteSession` and get ours.

On SQLite in the same file or in memory; on a server each file is a tenant of its own, and so is each session in memory.
"""

import hashlib
import os
import uuid
from pathlib import Path
from typing import Any

import agents
import agents.memory

from threadkeep.adapters.openai_agents import ThreadkeepSession
from threadkeep.settings import Settings

URL = os.environ["SUITE_URL"]


class SQLiteSession(ThreadkeepSession):
    """Tools' items are kept, as these tests want them, and handed out as they are."""

    def __init__(self, session_id: str, db_path: str | Path = ":memory:", session_settings: Any = None) -> None:
        alone, on_server = str(db_path) == ":memory:", not URL.startswith("sqlite")
        file = uuid.uuid4().hex if alone else hashlib.blake2b(str(db_path).encode(), digest_size=16).hexdigest()
        url = URL if on_server else "sqlite://" if alone else f"sqlite:///{db_path}"
        super().__init__(
            session_id,
            url,
            tenant=f"t-{file}" if on_server else None,
            session_settings=session_settings,
            tool_items="ttl",
            pairs=False,
            settings=Settings() if alone and not on_server else None,  # of its own: in memory nothing is shared
        )


agents.SQLiteSession = SQLiteSession  # type: ignore[misc, assignment]
agents.memory.SQLiteSession = SQLiteSession  # type: ignore[misc, assignment]
