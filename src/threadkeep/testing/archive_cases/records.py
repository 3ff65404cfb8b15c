"""`records` yields every conversation of a scope, whole, in the order of its ids."""

from __future__ import annotations

from threadkeep.record import ConversationRecord
from threadkeep.scope import Scope
from threadkeep.testing.clock import START
from threadkeep.testing.drafts import admitted, draft, kept, new_scope, say
from threadkeep.testing.stores import StoresUnderTest, WithStores


async def _records(stores: StoresUnderTest, scope: Scope | None) -> list[ConversationRecord]:
    return [record async for record in stores.archive.records(scope)]


class RecordCases(WithStores):
    async def test_a_record_holds_the_whole_conversation(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted(*(f"text {n}" for n in range(120))))
        ended = stores.clock.advance(5)
        await stores.archive.append(scope, admitted(draft("last", language="vi")))
        (record,) = await _records(stores, scope)
        assert record.messages == await kept(stores.archive, scope)
        assert (record.started_at, record.ended_at, record.language) == (START, ended, "vi")

    async def test_a_users_records_come_in_the_order_of_their_ids(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        names = ["b", "B", "a", "ä", "10", "9", "花", "z", "😀", "ｚ", "_", "a b", "a"]
        for name in names:
            await say(stores.archive, scope.with_conversation(name), name)
        records = await _records(stores, scope.whole_user)
        assert [record.conversation for record in records] == sorted(set(names))
        assert all(message.content == record.conversation for record in records for message in record.messages)

    async def test_one_conversations_record_comes_alone(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        for name in ("c1", "c2"):
            await say(stores.archive, scope.with_conversation(name), "hello")
        assert [record.conversation for record in await _records(stores, scope)] == ["c1"]

    async def test_the_whole_stores_records_hold_everybody_in_order(self, stores: StoresUnderTest) -> None:
        scopes = [new_scope(tenant) for tenant in ("shop", "Shop", "hotel")]
        for scope in scopes:
            await say(stores.archive, scope, "hello")
        places = [(record.tenant, record.user, record.conversation) for record in await _records(stores, None)]
        assert places == sorted(places)
        assert {(scope.tenant, scope.user, "c1") for scope in scopes} <= set(places)

    async def test_a_conversation_erased_while_records_are_read_is_left_out(self, stores: StoresUnderTest) -> None:
        """And whoever moves into the freed place does not turn up in somebody else's export."""
        scope = new_scope()
        for name in ("a", "b", "c"):
            await say(stores.archive, scope.with_conversation(name), f"mine {name}")
        seen: list[str] = []
        async for record in stores.archive.records(scope.whole_user):
            if not seen:
                for name in ("c", "b"):
                    await stores.archive.erase(scope.with_conversation(name))
                    await say(stores.archive, new_scope(), "another's")
            seen += [message.content for message in record.messages]
        assert seen == ["mine a"]

    async def test_reading_may_stop_half_way(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        for name in ("a", "b"):
            await say(stores.archive, scope.with_conversation(name), "hello")
        async for record in stores.archive.records(scope.whole_user):
            assert record.conversation == "a"
            break
        await say(stores.archive, scope, "still writable")
