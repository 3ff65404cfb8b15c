"""`stats` counts what is there: for a conversation, a user, the whole store."""

from __future__ import annotations

from threadkeep.model import Stats
from threadkeep.testing.clock import START
from threadkeep.testing.drafts import admitted, draft, kept, new_scope, say
from threadkeep.testing.stores import StoresUnderTest, WithStores


class CountingCases(WithStores):
    async def test_a_conversation_and_its_user_are_counted(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted("one", draft("two", role="assistant"), "three"))
        later = stores.clock.advance(60)
        await say(stores.archive, scope.with_conversation("c2"), "four")
        assert await stores.archive.stats(scope) == Stats(1, 1, 3, {"assistant": 1, "user": 2}, START, START)
        assert await stores.archive.stats(scope.whole_user) == Stats(1, 2, 4, {"assistant": 1, "user": 3}, START, later)

    async def test_a_place_nobody_wrote_to_counts_nothing(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        assert await stores.archive.stats(scope) == Stats(0, 0, 0)
        assert await stores.archive.stats(scope.whole_user) == Stats(0, 0, 0)

    async def test_the_whole_store_is_counted(self, stores: StoresUnderTest) -> None:
        before = await stores.archive.stats(None)
        for _ in range(3):
            await say(stores.archive, new_scope(), "one", "two")
        after = await stores.archive.stats(None)
        assert after.users - before.users == 3
        assert after.conversations - before.conversations == 3
        assert after.messages - before.messages == 6

    async def test_replays_and_erased_messages_are_not_counted(self, stores: StoresUnderTest) -> None:
        scope, turn = new_scope(), admitted("one", "two")
        for _ in range(3):
            await stores.archive.append(scope, turn, "k1")
            await stores.archive.append(scope, turn)
        await stores.archive.erase(scope, (await kept(stores.archive, scope))[0].id)
        stats = await stores.archive.stats(scope)
        assert (stats.conversations, stats.messages, dict(stats.by_role)) == (1, 1, {"user": 1})
