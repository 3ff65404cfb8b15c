"""What to do with each entry of a batch, decided alike on every database. Pure: the backend reads and writes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from threadkeep.model import Message
from threadkeep.ports.placing import Entry, KeyedReceipt, Placed

OLDER_GENERATION = "its scope was erased after it was made"
ERASED = "it was erased"
ID_TAKEN = "its message id is stored with other content"
KEY_TAKEN = "its idempotency key was used for another payload"


@dataclass(slots=True)
class Held:
    """What one conversation holds of a batch; kept up to date as entries are decided, so that repeats are seen."""

    by_seq: dict[int, str] = field(default_factory=dict[int, str])
    by_id: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])  # role, content
    payloads: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])  # of idempotency keys
    last_seq: int = 0  # the conversation's

    def take(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.by_seq[message.seq] = message.id
            self.by_id[message.id] = (message.role, message.content)
            self.last_seq = max(self.last_seq, message.seq)


@dataclass(frozen=True, slots=True)
class Decision:
    placed: Placed
    messages: tuple[Message, ...] = ()  # to insert
    key: KeyedReceipt | None = None  # to remember


def dropped(entry: Entry, generation: int, erased: set[bytes]) -> Placed | None:
    """Whether nothing of the entry may be stored any more. Neither generations nor tombstones ever go back."""
    if entry.scope.generation is not None and entry.scope.generation < generation:
        return Placed("dropped", dropped=len(entry.messages), reason=OLDER_GENERATION)
    if not erased:
        return None
    gone = _erased(entry, erased)
    by_key = entry.key is not None and entry.key.digest in erased
    if by_key or (gone and len(gone) == len(entry.messages)):
        return Placed("dropped", dropped=len(entry.messages), reason=ERASED, erased=gone)
    return None


def _erased(entry: Entry, erased: set[bytes]) -> tuple[str, ...]:
    pairs = zip(entry.messages, message_digests(entry), strict=True) if erased else ()
    return tuple(message.id for message, digest in pairs if digest in erased)


def message_digests(entry: Entry) -> list[bytes]:
    return [entry.scope.digest("message", message.id) for message in entry.messages]


def contradicts_itself(entry: Entry) -> Placed | None:
    """Found before anything is made for it."""
    fresh = _new_in(entry, Held(), set())
    return fresh if isinstance(fresh, Placed) else None


def decide(entry: Entry, held: Held, erased: set[bytes]) -> Decision:
    """For an entry that is not `dropped`; what it will store is noted in `held`."""
    key = entry.key
    if key is not None and key.digest in held.payloads:
        if held.payloads[key.digest] != key.payload:
            return Decision(Placed("conflict", reason=KEY_TAKEN))
        return Decision(Placed("duplicate", duplicates=len(entry.messages)))
    fresh = _new_in(entry, held, erased)
    if isinstance(fresh, Placed):
        return Decision(fresh)
    numbered = _numbered(fresh, held)
    moved = numbered != fresh
    held.take(numbered)
    if key is not None:
        held.payloads[key.digest] = key.payload
        if moved:
            key = replace(key, receipt=replace(key.receipt, seq=numbered[-1].seq))
    gone = _erased(entry, erased)
    known = len(entry.messages) - len(fresh) - len(gone)
    outcome = "stored" if fresh or key is not None else "duplicate"
    return Decision(Placed(outcome, len(fresh), known, len(gone), moved=moved, erased=gone), tuple(numbered), key)


def _new_in(entry: Entry, held: Held, erased: set[bytes]) -> list[Message] | Placed:
    """The messages that are new, or the conflict."""
    own, fresh = Held(), list[Message]()
    for message in entry.messages:
        if erased and entry.scope.digest("message", message.id) in erased:
            continue
        same = own.by_id.get(message.id) or held.by_id.get(message.id)
        if same is not None and same != (message.role, message.content):
            return Placed("conflict", reason=ID_TAKEN)
        if same is None:
            own.take([message])
            fresh.append(message)
    return fresh


def _numbered(fresh: list[Message], held: Held) -> list[Message]:
    """As they are; from the first whose number another message has, under the next numbers of the conversation.

    Two allocators that met must not cost a message, and what was appended together stays in order.
    """
    taken, seen = set(held.by_seq), set[int]()
    for at, message in enumerate(fresh):
        if message.seq in taken or message.seq in seen:
            last = max(held.last_seq, *seen, 0)
            moved = [replace(one, seq=seq) for seq, one in enumerate(fresh[at:], last + 1)]
            return [*fresh[:at], *moved]
        seen.add(message.seq)
    return fresh
