"""The reflection module's functions under their own names. They work on one `MemoryModule`, made at the first call from
the environment, or by `configure`.

`MEMORY_CONFIG_PATH` names `config.json`; without it every table and column has the name it has here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

from threadkeep.compat.memory_module import MemoryModule
from threadkeep.compose.mapped import named_config
from threadkeep.models.tokens import pack_token_record, tokenize_text

__all__ = [
    "MemoryModule",
    "close",
    "configure",
    "flush_once",
    "health",
    "load_recent_context",
    "memory_module",
    "pack_token_record",
    "persist_long_term",
    "store_conversation",
    "store_reflection",
    "store_short_term",
    "tokenize_text",
    "validate_and_normalize",
]

_changing = Lock()
_module: MemoryModule | None = None


def configure(
    config_path: str | None = None, redis_url: str | None = None, database_url: str | None = None
) -> MemoryModule:
    """What is not given here comes from the environment. A module that was in use is closed."""
    global _module
    made = MemoryModule(config_path or named_config(), redis_url, database_url)
    with _changing:
        before, _module = _module, made
    if before is not None:
        before.close()
    return made


def memory_module() -> MemoryModule:
    global _module
    with _changing:
        if _module is None:
            _module = MemoryModule(named_config())
        return _module


def store_short_term(
    conversation_id: str,
    user_id: str,
    user_msg: str | None,
    assistant_msg: str | None,
    reflection: dict[str, Any] | None,
) -> None:
    memory_module().store_short_term(conversation_id, user_id, user_msg, assistant_msg, reflection)


def load_recent_context(conversation_id: str) -> dict[str, Any] | None:
    return memory_module().load_recent_context(conversation_id)


def persist_long_term(records: Sequence[Mapping[str, Any]]) -> int:
    return memory_module().persist_long_term(records)


def store_conversation(
    conversation_id: str,
    user_id: str,
    user_msg: str | None,
    assistant_msg: str | None,
    reflection: dict[str, Any] | None,
) -> None:
    memory_module().store_conversation(conversation_id, user_id, user_msg, assistant_msg, reflection)


def store_reflection(conversation_id: str, user_id: str, reflection: dict[str, Any]) -> None:
    memory_module().store_reflection(conversation_id, user_id, reflection)


def validate_and_normalize(payload: Mapping[str, Any]) -> dict[str, Any]:
    return memory_module().validate_and_normalize(payload)


def flush_once(batch: int | None = None) -> int:
    return memory_module().flush_once(batch)


def health() -> dict[str, Any]:
    return memory_module().health()


def close() -> None:
    """Finish the work that was begun and close the connections; the next call opens them again."""
    global _module
    with _changing:
        before, _module = _module, None
    if before is not None:
        before.close()
