"""All that one memory works on. What is None is not there, or not needed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from threadkeep.model import Message
from threadkeep.ports.agent_rows import AgentRows
from threadkeep.ports.archive import Archive
from threadkeep.ports.checkpoints import CheckpointThreads
from threadkeep.ports.claims import Claims
from threadkeep.ports.embedding import Embedding
from threadkeep.ports.flushing import Flushing
from threadkeep.ports.health import Connections, Health
from threadkeep.ports.index import TermIndex, TermUpkeep
from threadkeep.ports.items import ItemStore
from threadkeep.ports.keepers import Keeper
from threadkeep.ports.keys import KeyStore
from threadkeep.ports.knowledge import KnowledgeErasure, KnowledgeVectors
from threadkeep.ports.latest import LatestTurn
from threadkeep.ports.ledger import Ledger
from threadkeep.ports.reflections import Reflections
from threadkeep.ports.rerank import Rerank
from threadkeep.ports.scratch import Scratch
from threadkeep.ports.sessions import Sessions
from threadkeep.ports.slots import Slots
from threadkeep.ports.usage import ThreadUsage
from threadkeep.ports.vectors import Nearest, VectorStores
from threadkeep.scope import Scope


@dataclass(frozen=True, slots=True)
class Stores:
    archive: Archive
    sessions: Sessions
    scratch: Scratch
    index: TermIndex
    slots: Slots | None = None  # for what tools need later in the conversation
    claims: Claims | None = None  # where several processes share a store for them
    reflections: Reflections | None = None
    ledger: Ledger | None = None  # of chat models
    latest: LatestTurn | None = None  # as others read it
    upkeep: TermUpkeep | None = None  # of that index
    checkpoints: CheckpointThreads | None = None  # of graph runs, where they share the archive's database
    usage: ThreadUsage | None = None  # what is counted of them
    keys: KeyStore | None = None  # of callers
    items: ItemStore | None = None  # of a graph's store, likewise
    # Who else keeps something of users beside messages, by the name it has in a proof of an erasure. In the archive's
    # database: of two that have a conversation, the first says what it is.
    keepers: Mapping[str, Keeper] = field(default_factory=dict[str, Keeper])
    agent_rows: AgentRows | None = None  # of agent frameworks' sessions, where they can share the archive's connection
    knowledge: KnowledgeErasure | None = None  # documents in the archive's database, and answers cached from them
    # Made when first wanted, since they need an extra: in the archive's database, or beside a store of their own.
    vectors: Callable[[Any], VectorStores] | None = None
    document_vectors: Callable[[], KnowledgeVectors] | None = None
    embedding: Embedding | None = None  # where there is an embedder
    marked: Callable[[Scope, int], Awaitable[None]] | None = (
        None  # shows the message of that `seq` anew where it is hot
    )
    nearest: Nearest | None = None
    rerank: Rerank | None = None  # an application's own
    remains: Callable[[], Awaitable[tuple[str, ...]]] | None = None  # what a server keeps of what was erased
    may_write: Callable[[], Awaitable[None]] | None = None  # raises `HotStoreMismatch`
    flushing: Flushing | None = None  # where appends are answered before the archive has them
    queued: Callable[[Scope], Awaitable[Sequence[Message]]] | None = None  # the same: what waits in the journal there
    # The same: all that is hot of a user, each message with its conversation; None while that cannot be read.
    waiting: Callable[[Scope], Awaitable[Sequence[tuple[str, Message]] | None]] | None = None
    health: Callable[[], Awaitable[Health]] | None = None  # where there is more to ask than the archive
    make_room: Callable[[], Awaitable[bool]] | None = None  # for an erase on a full disk, where some was set aside
    connections: Callable[[], Connections] | None = None  # of this process, where the archive is on a server
