"""Conversation memory for LLM agents: keeps what may be kept, never loses it, forgets on demand."""

from threadkeep.compose.knowledge import open_knowledge
from threadkeep.compose.memory import open_memory
from threadkeep.compose.worker import open_worker
from threadkeep.errors import HotStoreMismatch, ThreadkeepError
from threadkeep.events import (
    DebugTrace,
    Event,
    ModelResponse,
    Origin,
    SystemNote,
    Thought,
    ToolRequest,
    ToolResult,
    UserMessage,
)
from threadkeep.memory import Memory
from threadkeep.model import (
    Conversation,
    ConversationPage,
    ConversationRecord,
    ErasureProof,
    History,
    Hit,
    Message,
    Recalled,
    Receipt,
    Reflection,
    Session,
    Stats,
    Turn,
)
from threadkeep.ports.health import Health
from threadkeep.ports.knowledge import Access
from threadkeep.scope import Scope
from threadkeep.settings import Settings
from threadkeep.sync import SyncMemory

__version__ = "0.1.0"

__all__ = [
    "Access",
    "Conversation",
    "ConversationPage",
    "ConversationRecord",
    "DebugTrace",
    "ErasureProof",
    "Event",
    "Health",
    "History",
    "Hit",
    "HotStoreMismatch",
    "Memory",
    "Message",
    "ModelResponse",
    "Origin",
    "Recalled",
    "Receipt",
    "Reflection",
    "Scope",
    "Session",
    "Settings",
    "Stats",
    "SyncMemory",
    "SystemNote",
    "Thought",
    "ThreadkeepError",
    "ToolRequest",
    "ToolResult",
    "Turn",
    "UserMessage",
    "open_knowledge",
    "open_memory",
    "open_worker",
]
