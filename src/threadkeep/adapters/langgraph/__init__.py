"""LangGraph: `ThreadkeepSaver`, a checkpointer, and `ThreadkeepStore`. Needs the extra `langgraph`."""

from __future__ import annotations

from threadkeep.errors import MissingExtra

try:
    from threadkeep.adapters.langgraph.saver import ThreadkeepSaver
    from threadkeep.adapters.langgraph.session import Limits
    from threadkeep.adapters.langgraph.store import AsyncThreadkeepStore, ThreadkeepStore
except ModuleNotFoundError as error:
    if (error.name or "").startswith("threadkeep"):
        raise
    raise MissingExtra("langgraph", "threadkeep.adapters.langgraph") from None

__all__ = ["AsyncThreadkeepStore", "Limits", "ThreadkeepSaver", "ThreadkeepStore"]
