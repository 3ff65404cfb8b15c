"""The memory core: the latest turn in Redis, a queue of turns, and their rows in the mapped tables.

`MEMORY_CONFIG_PATH` names another `config.json` than the one beside this file.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from threadkeep.compat.reflection import MemoryModule
from threadkeep.errors import ThreadkeepError

_log = logging.getLogger(__name__)
_CONFIG = Path(__file__).with_name("config.json")
memory = MemoryModule(os.environ.get("MEMORY_CONFIG_PATH", _CONFIG))


def store_short_term(
    conversation_id: str,
    user_id: str,
    user_msg: str | None,
    assistant_msg: str | None,
    reflection: dict[str, Any] | None,
) -> None:
    memory.store_short_term(conversation_id, user_id, user_msg, assistant_msg, reflection)


def load_recent_context(conversation_id: str) -> dict[str, Any] | None:
    return memory.load_recent_context(conversation_id)


def persist_long_term(records: list[dict[str, Any]]) -> int:
    return memory.persist_long_term(records)


def store_conversation(
    conversation_id: str,
    user_id: str,
    user_msg: str | None,
    assistant_msg: str | None,
    reflection: dict[str, Any] | None,
) -> None:
    """A turn that cannot be kept is logged, without its text: the route that calls this answers as ever."""
    try:
        memory.store_conversation(conversation_id, user_id, user_msg, assistant_msg, reflection)
    except ThreadkeepError as error:
        _log.error("a turn was not stored: %s", error)


def store_reflection(conversation_id: str, user_id: str, reflection: dict[str, Any]) -> None:
    """One that comes after its turn."""
    memory.store_reflection(conversation_id, user_id, reflection)


def health() -> dict[str, Any]:
    return memory.health()
