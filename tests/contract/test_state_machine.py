"""A real Memory on a SQLite file, step by step beside the plain model: whatever the order of events, they agree."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from threadkeep import Memory, ModelResponse, Scope, Settings, UserMessage, open_memory
from threadkeep.errors import Conflict, NotFound, ScopeErased, ThreadkeepError
from threadkeep.model import Receipt
from threadkeep.testing.clock import FakeClock
from threadkeep.testing.model_memory import ModelMemory, ModelReceipt, Said

# A number: search anew, for that many examples, and shrink what fails. Otherwise the same examples each time.
EXAMPLES = os.environ.get("STATE_MACHINE_EXAMPLES")
WORDS = ["peanuts", "花生米", "Łódź", "phở", "x\0y", "😀"]
PLACES = [Scope("shop", "bob", "c1"), Scope("shop", "bob", "c1 "), Scope("shop", "Bob", "c1")]
scopes = st.sampled_from(PLACES)
said = st.builds(
    Said,
    content=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join),
    role=st.sampled_from(["user", "assistant"]),
    id=st.none(),
)
# One text for each id, mostly: a retry by id is worth more than yet another conflict.
told = st.sampled_from(
    [Said("peanuts", id="m1"), Said("phở", id="M1"), Said("peanuts", id="m2"), Said("Łódź", id="m1")]
)
turns = st.lists(said | told, max_size=3)
keys = st.none() | st.sampled_from(["k1", "k2"])


def _event(one: Said) -> UserMessage | ModelResponse:
    return UserMessage(one.content, id=one.id) if one.role == "user" else ModelResponse(one.content, id=one.id)


class MemoryBesideModel(RuleBasedStateMachine):
    stamped = Bundle("stamped")  # scopes that carry the generation they were read under
    sent = Bundle("sent")  # appends that may be repeated, much later

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.clock = FakeClock()
        self.model = ModelMemory()
        self.runner = asyncio.Runner()
        self.opening: AbstractAsyncContextManager[Memory]
        self.memory: Memory
        self._open()

    def _open(self) -> None:
        url = f"sqlite:///{self.folder / 'test.db'}"
        self.opening = open_memory(url, settings=Settings(embedder="none"), clock=self.clock)
        self.memory = self.runner.run(self.opening.__aenter__())

    def _close(self) -> None:
        self.runner.run(self.opening.__aexit__(None, None, None))

    def teardown(self) -> None:
        self._close()
        self.runner.close()
        shutil.rmtree(self.folder)

    def _both(self, expected: Any, real: Any) -> tuple[Any, Any]:
        """What each answered, or the kind of error each raised."""
        outcomes: list[Any] = []
        for call in (expected, lambda: self.runner.run(real())):
            try:
                outcomes.append(call())
            except ThreadkeepError as error:
                outcomes.append(type(error))
        return outcomes[0], outcomes[1]

    def _append(self, scope: Scope, turn: list[Said], key: str | None) -> None:
        expected, real = self._both(
            lambda: self.model.append(scope, turn, key),
            lambda: self.memory.append(scope, [_event(one) for one in turn], key),
        )
        if isinstance(expected, ModelReceipt):
            assert isinstance(real, Receipt)
            assert (real.seq, real.refused.get("erased", 0)) == (expected.seq, expected.erased)
            assert len(real.kept) == len(expected.kept)
            assert all(mine is None or mine == theirs for mine, theirs in zip(expected.kept, real.kept, strict=True))
        else:
            assert expected == real
            assert expected in (Conflict, ScopeErased)

    @rule(target=sent, scope=scopes, turn=turns, key=keys)
    def append(self, scope: Scope, turn: list[Said], key: str | None) -> Any:
        self._append(scope, turn, key)
        return scope, turn, key

    @rule(one=sent)
    def retry(self, one: tuple[Scope, list[Said], str | None]) -> None:
        self._append(*one)

    @rule(scope=stamped, turn=turns, key=keys)
    def append_under_a_stamped_scope(self, scope: Scope, turn: list[Said], key: str | None) -> None:
        self._append(scope, turn, key)

    @rule(target=stamped, scope=scopes, limit=st.integers(1, 5), before=st.none() | st.integers(1, 9))
    def read_history(self, scope: Scope, limit: int, before: int | None) -> Any:
        page, cursor = self.model.history(scope, limit, before)
        real = self.runner.run(self.memory.history(scope, limit, before))
        assert [(m.seq, m.role, m.content) for m in real.messages] == [(q, s.role, s.content) for q, s in page]
        assert all(s.id is None or m.id == s.id for m, (_, s) in zip(real.messages, page, strict=True))
        assert (real.before, real.scope.generation) == (cursor, self.model.generation(scope))
        return real.scope if page else multiple()

    @rule(scope=scopes, word=st.sampled_from(["peanuts", "Łódź", "phở"]))
    def recall(self, scope: Scope, word: str) -> None:
        hits = self.runner.run(self.memory.recall(scope, word, k=500)).hits
        assert {(hit.conversation, hit.seq) for hit in hits} == self.model.recall(scope, word)

    @rule(scope=scopes | stamped, title=st.sampled_from(["Trip", "", "lone \ud83d"]))
    def rename(self, scope: Scope, title: str) -> None:
        expected, real = self._both(
            lambda: self.model.change(scope, title=title), lambda: self.memory.rename(scope, title)
        )
        assert expected == real
        assert expected in (None, NotFound, ScopeErased)

    @rule(scope=scopes | stamped)
    def close_conversation(self, scope: Scope) -> None:
        expected, real = self._both(
            lambda: self.model.change(scope, status="closed"), lambda: self.memory.close_conversation(scope)
        )
        assert expected == real

    @rule(scope=scopes | stamped)
    def touch(self, scope: Scope) -> None:
        expected, real = self._both(lambda: self.model.touch(scope), lambda: self.memory.touch(scope))
        assert expected == (real if expected is ScopeErased else None)

    @rule(scope=scopes | stamped, whole_user=st.booleans())
    def erase(self, scope: Scope, whole_user: bool) -> None:
        target = scope.whole_user if whole_user else scope
        proof = self.runner.run(self.memory.erase(target))
        assert (proof.stores["archive"].removed, proof.complete) == (self.model.erase(target), True)
        assert proof.generation == self.model.generation(target)

    @rule(scope=scopes, which=st.integers(0, 20))
    def erase_message(self, scope: Scope, which: int) -> None:
        everything = self.runner.run(self.memory.history(scope, 1_000)).messages
        if everything:
            message = everything[which % len(everything)]
            self.model.erase_message(scope, message.seq)
            proof = self.runner.run(self.memory.erase(scope, message.id))
            assert proof.stores["archive"].removed == 1

    @rule(seconds=st.integers(-90_000, 90_000))
    def move_the_clock(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule()
    def reopen(self) -> None:
        self._close()
        self._open()

    @invariant()
    def every_users_conversations_agree(self) -> None:
        for scope in PLACES[1:]:
            page = self.runner.run(self.memory.conversations(scope))
            assert [(c.conversation, c.title, c.status, c.messages) for c in page] == [
                (place[2], conversation.title, conversation.status, len(conversation.messages))
                for place, conversation in self.model.of_user(scope)
            ]

    @invariant()
    def the_whole_stores_counts_agree(self) -> None:
        stats = self.runner.run(self.memory.stats())
        held = self.model.conversations
        assert (stats.users, stats.conversations, stats.messages) == (
            len({place[:2] for place in held}),
            len(held),
            sum(len(conversation.messages) for conversation in held.values()),
        )
        assert sum(stats.by_role.values()) == stats.messages


TestMemoryBesideModel = MemoryBesideModel.TestCase
TestMemoryBesideModel.settings = settings(
    max_examples=int(EXAMPLES or 50),
    stateful_step_count=30,
    derandomize=EXAMPLES is None,
    phases=[Phase.generate] if EXAMPLES is None else list(Phase),  # shrinking takes minutes
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
