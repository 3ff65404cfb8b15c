"""Memory's semantics in dicts and lists, to hold a real Memory against. Nothing here is fast, durable or private.

Messages that the caller gave no id have none here: a real store makes one up. Everything else is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from threadkeep.errors import Conflict, NotFound, ScopeErased
from threadkeep.model import Role
from threadkeep.scope import Scope

Place = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Said:
    """One message to append."""

    content: str
    role: Role = "user"
    id: str | None = None


@dataclass(frozen=True, slots=True)
class ModelReceipt:
    seq: int
    kept: tuple[str | None, ...]
    erased: int = 0


@dataclass(slots=True)
class ModelConversation:
    activity: int
    last: int = 0
    messages: dict[int, Said] = field(default_factory=dict[int, Said])
    title: str | None = None
    status: str = "active"

    def seq_of(self, id: str | None) -> int | None:
        return next((seq for seq, said in self.messages.items() if id is not None and said.id == id), None)


@dataclass(slots=True)
class ModelMemory:
    conversations: dict[Place, ModelConversation] = field(default_factory=dict[Place, ModelConversation])
    receipts: dict[tuple[Place, str], tuple[tuple[Said, ...], ModelReceipt]] = field(
        default_factory=dict[tuple[Place, str], tuple[tuple[Said, ...], ModelReceipt]]
    )
    buried_keys: set[tuple[Place, str]] = field(default_factory=set[tuple[Place, str]])
    buried_ids: set[tuple[Place, str]] = field(default_factory=set[tuple[Place, str]])
    erasures: dict[tuple[str, ...], int] = field(default_factory=dict[tuple[str, ...], int])
    clock: int = 0  # counts activity, not seconds

    def generation(self, scope: Scope) -> int:
        user = self.erasures.get((scope.tenant, scope.user), 0)
        return user + (self.erasures.get(place_of(scope), 0) if scope.conversation is not None else 0)

    def append(self, scope: Scope, turn: Sequence[Said], key: str | None = None) -> ModelReceipt:
        self._refuse_if_erased(scope)
        place, turn = place_of(scope), tuple(turn)
        if key is not None and (place, key) in self.buried_keys:
            raise ScopeErased("the key was erased")
        if key is not None and (place, key) in self.receipts:
            payload, first = self.receipts[place, key]
            if payload != turn:
                raise Conflict("another payload")
            return first
        after, receipt = self._stored(place, turn)
        if place not in self.conversations and turn and receipt.erased == len(turn):
            return receipt
        if turn or key is not None:
            self.conversations[place] = after
        if key is not None:
            self.receipts[place, key] = turn, receipt
        return receipt

    def _stored(self, place: Place, turn: tuple[Said, ...]) -> tuple[ModelConversation, ModelReceipt]:
        """The conversation as it will be: on a copy, since a conflict must leave no trace."""
        known = self.conversations.get(place)
        after = replace(known, messages=dict(known.messages)) if known else ModelConversation(self._next_activity())
        last, seq, erased = after.last, after.last, 0
        kept: list[str | None] = []
        for said in turn:
            if said.id is not None and (place, said.id) in self.buried_ids:
                erased += 1
                continue
            seq = self._placed(after, said)
            kept.append(said.id)
        if after.last > last:
            after.status, after.activity = "active", self._next_activity()
        return after, ModelReceipt(seq, tuple(kept), erased)

    def _placed(self, conversation: ModelConversation, said: Said) -> int:
        seq = conversation.seq_of(said.id)
        if seq is None:
            conversation.last += 1
            conversation.messages[conversation.last] = said
            return conversation.last
        if conversation.messages[seq] != said:
            raise Conflict("another content")
        return seq

    def history(self, scope: Scope, limit: int, before: int | None = None) -> tuple[list[tuple[int, Said]], int | None]:
        """The newest messages before `before`, and the cursor of the page of older ones."""
        conversation = self.conversations.get(place_of(scope))
        if conversation is None:
            return [], None
        older = [seq for seq in sorted(conversation.messages) if before is None or seq < before]
        page = older[-limit:]
        return [(seq, conversation.messages[seq]) for seq in page], page[0] if len(older) > len(page) else None

    def recall(self, scope: Scope, word: str) -> set[tuple[str, int]]:
        """Where in the user's conversations the word stands by itself."""
        return {
            (place[2], seq)
            for place, conversation in self.of_user(scope)
            for seq, said in conversation.messages.items()
            if word in said.content.split()
        }

    def of_user(self, scope: Scope) -> list[tuple[Place, ModelConversation]]:
        """Latest activity first."""
        own = [item for item in self.conversations.items() if item[0][:2] == (scope.tenant, scope.user)]
        return sorted(own, key=lambda item: -item[1].activity)

    def change(self, scope: Scope, title: str | None = None, status: str | None = None) -> None:
        self._refuse_if_erased(scope)
        conversation = self.conversations.get(place_of(scope))
        if conversation is None:
            raise NotFound("no such conversation")
        conversation.title = conversation.title if title is None else title
        conversation.status = conversation.status if status is None else status

    def touch(self, scope: Scope) -> None:
        self._refuse_if_erased(scope)
        if place_of(scope) not in self.conversations:
            self.conversations[place_of(scope)] = ModelConversation(self._next_activity())

    def erase(self, scope: Scope) -> int:
        """A conversation or a user; how many messages went."""
        doomed = [
            p for p in self.conversations if p == place_of(scope) or (scope.conversation is None and _owns(scope, p))
        ]
        gone = sum(len(self._bury(place).messages) for place in doomed)
        target = (scope.tenant, scope.user) if scope.conversation is None else place_of(scope)
        self.erasures[target] = self.erasures.get(target, 0) + 1
        return gone

    def _bury(self, place: Place) -> ModelConversation:
        keys = {known for known in self.receipts if known[0] == place}
        self.buried_keys |= keys
        for known in keys:
            del self.receipts[known]
        conversation = self.conversations.pop(place)
        self.buried_ids |= {(place, said.id) for said in conversation.messages.values() if said.id is not None}
        return conversation

    def erase_message(self, scope: Scope, seq: int) -> None:
        said = self.conversations[place_of(scope)].messages.pop(seq)
        if said.id is not None:
            self.buried_ids.add((place_of(scope), said.id))

    def _refuse_if_erased(self, scope: Scope) -> None:
        if scope.generation is not None and scope.generation < self.generation(scope):
            raise ScopeErased("erased since")

    def _next_activity(self) -> int:
        self.clock += 1
        return self.clock


def place_of(scope: Scope) -> Place:
    return scope.tenant, scope.user, scope.conversation or ""


def _owns(scope: Scope, place: Place) -> bool:
    return place[:2] == (scope.tenant, scope.user)
