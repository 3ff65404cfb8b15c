"""What to do with each entry of a batch, decided alike on every database. Pure: the backend reads and writes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from threadkeep.model import Message
from threadkeep.ports.placing import Entry, KeyedReceipt, Placed

OLDER_GENERATION = "its scope was erased after it was made"
ERASED = "it was erased"
SEQ_TAKEN = "another message stands under its seq"
ID_TAKEN = "its message id is stored with other content"
KEY_TAKEN = "its idempotency key was used for another payload"


@dataclass(slots=True)
class Held:
    """What one conversation holds of a batch; kept up to date as entries are decided, so that repeats are seen."""

    by_seq: dict[int, str] = field(default_factory=dict[int, str])
    by_id: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])  # role, content
    payloads: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])  # of idempotency keys

    def take(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.by_seq[message.seq] = message.id
            self.by_id[message.id] = (message.role, message.content)


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
    gone = sum(digest in erased for digest in message_digests(entry))
    by_key = entry.key is not None and entry.key.digest in erased
    if by_key or (gone and gone == len(entry.messages)):
        return Placed("dropped", dropped=len(entry.messages), reason=ERASED)
    return None


def message_digests(entry: Entry) -> list[bytes]:
    return [entry.scope.digest("message", message.id) for message in entry.messages]


def contradicts_itself(entry: Entry) -> Placed | None:
    """Found before anything is made for it."""
    fresh = _sorted_out(entry, Held(), set())
    return fresh if isinstance(fresh, Placed) else None


def decide(entry: Entry, held: Held, erased: set[bytes]) -> Decision:
    """For an entry that is not `dropped`; what it will store is noted in `held`."""
    key = entry.key
    if key is not None and key.digest in held.payloads:
        if held.payloads[key.digest] != key.payload:
            return Decision(Placed("conflict", reason=KEY_TAKEN))
        return Decision(Placed("duplicate", duplicates=len(entry.messages)))
    fresh = _sorted_out(entry, held, erased)
    if isinstance(fresh, Placed):
        return Decision(fresh)
    held.take(fresh)
    if key is not None:
        held.payloads[key.digest] = key.payload
    gone = sum(digest in erased for digest in message_digests(entry)) if erased else 0
    known = len(entry.messages) - len(fresh) - gone
    outcome = "stored" if fresh or key is not None else "duplicate"
    return Decision(Placed(outcome, len(fresh), known, gone), tuple(fresh), key)


def _sorted_out(entry: Entry, held: Held, erased: set[bytes]) -> list[Message] | Placed:
    """The messages that are new, or the conflict."""
    own, fresh = Held(), list[Message]()
    for message in entry.messages:
        if erased and entry.scope.digest("message", message.id) in erased:
            continue
        there = own.by_seq.get(message.seq) or held.by_seq.get(message.seq)
        if there is not None and there != message.id:
            return Placed("conflict", reason=SEQ_TAKEN)
        same = own.by_id.get(message.id) or held.by_id.get(message.id)
        if same is not None and same != (message.role, message.content):
            return Placed("conflict", reason=ID_TAKEN)
        if same is None:
            own.take([message])
            fresh.append(message)
    return fresh
