"""Checkpoints of graph runs: rows of bytes that an adapter can read, and the rules that keep them whole.

A checkpoint's body refers to list items and large values by position: `(list_id, start, stop)`. A stored list
only grows; a position is written once and means the same for ever. So a new version of a list costs what was added.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from threadkeep.model import Erased
from threadkeep.ports.threads import Thread, ThreadUsage, TurnKeys, Usage
from threadkeep.scope import Scope

FROM_MEMORY: Final = "threadkeep_from_memory"
"""In the metadata of checkpoints that assistants once wrote: all that their thread holds is in memory as well."""
TELLS_FROM_MEMORY: Final = bytes.fromhex("98cb442f11061fe4")
"""That, as one of the checkpoint's `facts`."""


_TAKEN_OVER: Final = b"{"
"""How bodies and metadata begin that an adapter did not write: JSON of a thread that was another program's."""


def taken_over_body(id_: str, ts: str, values: Mapping[str, Any]) -> bytes:
    return json.dumps({"id": id_, "ts": ts, "channel_values": values}).encode()


def taken_over_metadata(step: int) -> bytes:
    return json.dumps({"source": "loop", "step": step, "parents": {}}).encode()


def is_taken_over(stored: bytes) -> bool:
    return stored.startswith(_TAKEN_OVER)


class PositionTaken(Exception):
    """Another run has grown this list from the same position: begin a list of your own."""


class ParentMissing(Exception):
    """The checkpoint that the new one builds on is not there (any more)."""


class TurnOver(Exception):
    """The key under which this was encrypted was destroyed: begin another turn."""


class NotTheLatest(Exception):
    """The checkpoint that the new one builds on has a successor already."""


@dataclass(frozen=True, slots=True)
class Run:
    """Items `start` to `stop` of a stored list."""

    list_id: bytes
    start: int
    stop: int


class Page(NamedTuple):
    """Items of a stored list, packed together by the adapter. `if_absent`: the list's id is made of its content.

    A tuple, since a long conversation has hundreds of them.
    """

    list_id: bytes
    start: int
    stop: int
    data: bytes
    if_absent: bool = False


@dataclass(frozen=True, slots=True)
class NewCheckpoint:
    ns: str
    id: str
    parent: str | None
    body: bytes
    metadata: bytes
    facts: bytes | None  # eight bytes for each entry of the metadata, to filter by; None: not to be stored
    pages: Sequence[Page] = ()
    builds_on_parent: bool = False  # its body refers to the parent's stored lists
    parent_must_be_latest: bool = False
    turn: bytes | None = None  # the sealed key that it is encrypted under, which must still stand
    ends_turn: bool = False  # it is what stays of that turn: the key is looked at, and not moved on
    usage: Usage | None = None  # what is counted of the thread, where that is news
    generation: int | None = None  # of the thread when the work began: it is refused in a later one

    @property
    def size(self) -> int:
        """In bytes."""
        return len(self.body) + len(self.metadata) + sum(len(page.data) for page in self.pages)


@dataclass(frozen=True, slots=True)
class Write:
    """One value that a task wrote. A negative `idx` replaces what stands there, any other is kept as it was."""

    task_id: str
    idx: int
    task_path: str
    channel: str
    data: bytes


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    thread: str
    ns: str
    id: str
    parent: str | None
    body: bytes
    metadata: bytes
    writes: tuple[Write, ...] = ()  # by task path, task id and idx
    pages: tuple[Page, ...] = ()  # of what it refers to, where that was wanted


@dataclass(frozen=True, slots=True)
class Search:
    """Which checkpoints of a user, newest id first. None leaves a field open."""

    owner: Scope
    thread: str | None = None
    ns: str | None = None
    id: str | None = None
    before: str | None = None
    facts: tuple[bytes, ...] = ()  # each must be among the checkpoint's, unless it has none
    after: StoredCheckpoint | None = None  # the last one of the page before


@dataclass(frozen=True, slots=True)
class Removal:
    """Checkpoints by namespace and id, with their writes; and what the others still refer to.

    `emptied` makes of a page's data one with nothing at some of its positions: those that no checkpoint refers to any
    more.
    """

    checkpoints: Sequence[tuple[str, str]]
    still_used: Sequence[Run]
    emptied: Callable[[bytes, Collection[int]], bytes]


Plan = Callable[[Sequence[StoredCheckpoint]], Removal]
Wanting = Callable[[StoredCheckpoint], Sequence[Run]]


class Checkpoints(Protocol):
    async def put(self, thread: Thread, checkpoint: NewCheckpoint) -> None:
        """All of it or nothing; a checkpoint of the same id is replaced.

        Raises `PositionTaken`, `ParentMissing`, `NotTheLatest`, `TurnOver`, and `ScopeErased` when the thread was
        erased under it.
        """
        ...

    async def put_writes(
        self, thread: Thread, ns: str, checkpoint: str, writes: Sequence[Write], turn: bytes | None = None
    ) -> None:
        """All or none. The checkpoint may come later. Raises `ScopeErased` and `TurnOver`."""
        ...

    async def get(
        self, thread: Thread, ns: str, checkpoint: str | None, wanting: Wanting | None = None
    ) -> StoredCheckpoint | None:
        """The one named, or the one with the highest id; with the pages of what `wanting` says of it.

        `wanting` may be called on another thread.
        """
        ...

    async def find(self, wanted: Search, limit: int) -> Sequence[StoredCheckpoint]:
        """A page of at most `limit`."""
        ...

    async def lineage(self, thread: Thread, ns: str, checkpoint: str, limit: int) -> Sequence[StoredCheckpoint]:
        """The checkpoint and its ancestors, nearest first, at most `limit` of them."""
        ...

    async def pages(self, thread: Thread, runs: Sequence[Run]) -> Sequence[Page]:
        """Every page that holds items of these runs."""
        ...

    async def close(self) -> None:
        """Finish what was accepted. Closing twice is allowed."""
        ...


class CheckpointThreads(Protocol):
    """What is done to threads as a whole."""

    async def delete(self, thread: Thread) -> None:
        """The thread and all that hangs on it. A run that is still writing to it is refused from now on."""
        ...

    async def copy(self, source: Thread, target: Thread) -> None:
        """Everything, under another name. Raises `Conflict` while a turn is in flight, whose key no copy has, and
        when the target has checkpoints."""
        ...

    async def thin_out(self, thread: Thread, plan: Plan) -> None:
        """Remove what `plan` says of all the thread's checkpoints, in one transaction that locks the thread."""
        ...

    async def generation(self, thread: Thread) -> int:
        """How often it was deleted, or its conversation or its user erased."""
        ...

    async def threads(self, owner: Scope, facts: Sequence[bytes] = ()) -> Sequence[str]:
        """Ids of the user's threads; with `facts`, of those where a checkpoint may have one of them."""
        ...

    async def erase(self, scope: Scope, fact: bytes | None = None) -> Erased:
        """Every thread of the user, or the one that has the conversation's name. Counts checkpoints.

        With `fact` only threads in which a checkpoint has it: the others are found, and not removed.
        """
        ...


TypeName = tuple[str, str]  # module and name


class ValueTypes(Protocol):
    """Names of the classes whose values were put into this database, in any user's threads."""

    async def add(self, names: Collection[TypeName]) -> None:
        """Those that are there already stay."""
        ...

    async def all(self) -> Collection[TypeName]: ...


class CheckpointStore(Checkpoints, CheckpointThreads, Protocol):
    """Both, as one backend gives them, and what goes with them."""

    @property
    def turn_keys(self) -> TurnKeys: ...

    @property
    def usage(self) -> ThreadUsage: ...

    @property
    def value_types(self) -> ValueTypes: ...


# What stored checkpoints have in common: the names of their fields, as the serializer writes them. Short values are
# compressed against these bytes, which are part of the format: never change them. Other ones would need another first
# byte in front of what is compressed against them.
_HUMAN = (
    b"\xa7msgpack\xc5\x01\x91\xc8\x01\x05\x94\xbdlangchain_core.messages.human\xacHumanMessage\x86\xa7content\xd9"
    b"\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type\xa5human\xa4name\xc0\xa2id\xd9$\xb3model_validate_json"
)
_SYSTEM = b"\x05\x94\xbelangchain_core.messages.system\xadSystemMessage\x86\xa7content\xa4type\xa6system\xa4name\xc0"
_CALL = b"\xaatool_calls\x91\x84\xa4name\xa4args\x81\xa2id\xa4type\xa9tool_call\xb2invalid_tool_calls\x90"
_USAGE = b"\xaeusage_metadata\x83\xacinput_tokens\xadoutput_tokens\xactotal_tokens"
_RESULT = (
    b"\x05\x94\xbclangchain_core.messages.tool\xabToolMessage\x89\xa7content\xb1additional_kwargs\x80"
    b"\xb1response_metadata\x80\xa4type\xa4tool\xa4name\xa2id\xd9$\xactool_call_id\xa8artifact\xc0\xa6status\xa7success"
    b"\xb3model_validate_json"
)
_ANSWER = (
    b"\x05\x94\xbalangchain_core.messages.ai\xa9AIMessage\x89\xa7content\xda\x02\xb1additional_kwargs\x80"
    b"\xb1response_metadata\x80\xa4type\xa2ai\xa4name\xc0\xa2id\xd9$\xaatool_calls\x90\xb2invalid_tool_calls\x90"
    b"\xaeusage_metadata\xc0\xb3model_validate_json"
)
_METADATA = b"\x92\xa7msgpack\xc4\x83\xa6source\xa5input\xa6source\xa4loop\xa4step\xa7parents\x80\xa6run_id\xd9$"
_VERSION = b"\xd940000000000000000000000000000000"
_BODY = (
    b"\x94\x01\xa7msgpack\xc5\x02\x87\xa1v\x04\xa2ts\xd9 20-T:.+00:00\xa2id\xd9$-6-8-\xb0channel_versions\x84"
    + b"".join((b"\xa9__start__", _VERSION, b"1.0.\xa8messages", _VERSION, b"2.0.\xafbranch:to:agent", _VERSION))
    + b"3.0.\xafbranch:to:tools\xafbranch:to:model\xadversions_seen\x83\xa9__input__\x80\xa9__start__\x81\xa9__start__"
    + b"\xd930000000000000000000000000000000"
    + b"1.0.\xa5agent\x81\xa5tools\x81\xa5model\x81\xafbranch:to:model\xd93\xb0updated_channels\x92\xafbranch:to:model"
    b"\xa8messages\xaechannel_values\x82\xa8messages\x00\xafbranch:to:model\x01\x92\x92\x02\x93\xc4\x10\x93\x00\xa4null"
    b"\xc4\x00"
)
SHAPES = b"".join((_SYSTEM, _USAGE, _CALL, _RESULT, _ANSWER, _HUMAN, _METADATA, _BODY))
