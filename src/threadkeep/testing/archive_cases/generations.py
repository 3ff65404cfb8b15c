"""Work begun before an erasure cannot finish after it: the scope it carries is of an older generation."""

from __future__ import annotations

import asyncio

import pytest

from threadkeep.errors import ScopeErased
from threadkeep.model import ConversationChange, HistoryRange
from threadkeep.scope import Scope
from threadkeep.testing.drafts import admitted, new_scope, say, texts
from threadkeep.testing.stores import StoresUnderTest, WithStores


async def _stamped(stores: StoresUnderTest, scope: Scope) -> Scope:
    return (await stores.archive.messages(scope, HistoryRange(limit=1))).scope


class GenerationCases(WithStores):
    @pytest.mark.parametrize("whole_user", [False, True], ids=["conversation", "user"])
    async def test_an_append_begun_before_an_erasure_is_refused(
        self, stores: StoresUnderTest, whole_user: bool
    ) -> None:
        scope = new_scope()
        await say(stores.archive, scope, "one")
        stamped = await _stamped(stores, scope)
        await stores.archive.erase(scope.whole_user if whole_user else scope)
        with pytest.raises(ScopeErased):
            await say(stores.archive, stamped, "late")
        with pytest.raises(ScopeErased):
            await stores.archive.append(stamped, admitted(refused={"thought": 1}))
        assert await texts(stores.archive, scope) == []
        assert (await stores.archive.stats(scope.whole_user)).users == 0

    async def test_a_place_nobody_wrote_to_can_be_erased_ahead_of_late_work(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        stamped = await _stamped(stores, scope)
        await stores.archive.erase(scope.whole_user)
        with pytest.raises(ScopeErased):
            await say(stores.archive, stamped, "late")

    async def test_a_title_made_from_erased_text_is_refused(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await say(stores.archive, scope, "one")
        stamped = await _stamped(stores, scope)
        await stores.archive.erase(scope)
        await say(stores.archive, scope, "a new beginning")
        with pytest.raises(ScopeErased):
            await stores.archive.change(stamped, ConversationChange(title="all about one"))
        (item,) = await stores.archive.conversations(scope.whole_user, None, 10)
        assert item.title is None

    async def test_every_erasure_raises_the_generation(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        seen = [(await _stamped(stores, scope)).generation or 0]
        for target in (scope, scope.whole_user, scope, scope, scope.whole_user):
            await stores.archive.erase(target)
            seen.append((await _stamped(stores, scope)).generation or 0)
        assert seen == sorted(set(seen))

    async def test_the_proof_tells_the_generation_that_reads_see(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await stores.archive.erase(scope.whole_user)
        proof = await stores.archive.erase(scope)
        assert proof.generation == (await _stamped(stores, scope)).generation

    async def test_erasing_one_conversation_leaves_work_on_another_valid(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        neighbours = [scope.with_conversation("c2"), new_scope()]
        stamped = [await _stamped(stores, place) for place in neighbours]
        await stores.archive.erase(scope)
        for place in stamped:
            await say(stores.archive, place, "still welcome")

    async def test_erasing_a_message_leaves_work_on_its_conversation_valid(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        receipt = await say(stores.archive, scope, "one")
        stamped = await _stamped(stores, scope)
        await stores.archive.erase(scope, receipt.kept[0])
        assert (await say(stores.archive, stamped, "two")).seq == 2

    async def test_a_scope_stamped_after_the_erasure_is_valid(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        for number in range(3):
            stamped = await _stamped(stores, scope)
            assert (await say(stores.archive, stamped, f"text {number}")).seq == 1
            await stores.archive.erase(stamped)

    async def test_an_older_scope_can_still_erase(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        stamped = await _stamped(stores, scope)
        await stores.archive.erase(scope)
        await say(stores.archive, scope, "new")
        assert (await stores.archive.erase(stamped)).complete
        assert await texts(stores.archive, scope) == []

    async def test_appends_that_race_an_erasure_are_erased_or_refused(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await say(stores.archive, scope, "one")
        stamped = await _stamped(stores, scope)
        work = [say(stores.archive, stamped, f"text {number}") for number in range(40)]
        erasure = stores.archive.erase(scope.whole_user)
        outcomes = await asyncio.gather(*work[:20], erasure, *work[20:], return_exceptions=True)
        failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        assert all(isinstance(failure, ScopeErased) for failure in failures)
        assert await texts(stores.archive, scope) == []
