"""`seq` is one counter for each conversation, whichever process appends and however many at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from threadkeep.errors import InvalidScope
from threadkeep.testing.drafts import admitted, draft, new_scope
from threadkeep.testing.hot_cases.under_test import HotUnderTest, WithHot


class HotOrderCases(WithHot):
    async def test_the_first_append_is_queued_under_the_first_numbers(self, store: HotUnderTest) -> None:
        scope = new_scope()
        receipt = await store.say(scope, "one", "two")
        assert (receipt.status, receipt.seq, len(receipt.kept), receipt.replayed) == ("queued", 2, 2, False)
        assert await store.everything(scope) == [(1, "one"), (2, "two")]

    async def test_fifty_tasks_get_numbers_without_gap_or_double(self, store: HotUnderTest) -> None:
        scope = new_scope()
        receipts = await asyncio.gather(*(store.say(scope, f"text {n}", f"more {n}") for n in range(50)))
        assert sorted(receipt.seq for receipt in receipts) == list(range(2, 101, 2))
        found = await store.everything(scope)
        assert [seq for seq, _ in found] == list(range(1, 101))
        by_seq = dict(found)
        for number, receipt in enumerate(receipts):
            assert (by_seq[receipt.seq - 1], by_seq[receipt.seq]) == (f"text {number}", f"more {number}")

    async def test_conversations_count_apart(self, store: HotUnderTest) -> None:
        scope = new_scope()
        places = [scope.with_conversation(f"c{number}") for number in range(20)]
        receipts = await asyncio.gather(*(store.say(place, "hello") for place in places))
        assert [receipt.seq for receipt in receipts] == [1] * 20

    async def test_an_append_of_nothing_answers_with_the_last_number(self, store: HotUnderTest) -> None:
        scope = new_scope()
        assert (await store.hot.append(scope, admitted())).seq == 0
        assert await store.hot.read(scope) is None
        await store.say(scope, "one", "two")
        empty = await store.hot.append(scope, admitted(refused={"tool_result": 3}))
        assert (empty.seq, empty.kept, empty.refused) == (2, (), {"tool_result": 3})
        assert len(await store.entries_of(scope)) == 1

    async def test_a_thousand_messages_are_one_append(self, store: HotUnderTest) -> None:
        scope = new_scope()
        receipt = await store.say(scope, *(f"text {number}" for number in range(1_000)))
        assert (receipt.seq, len(await store.everything(scope))) == (1_000, 1_000)
        (entry,) = await store.entries_of(scope)
        assert [message.seq for message in entry.messages] == list(range(1, 1_001))
        await store.journal.settle([entry])
        assert (await store.now(scope)).pending == ()

    async def test_the_newest_number_is_returned(self, store: HotUnderTest) -> None:
        scope = new_scope()
        await store.say(scope, *(f"text {number}" for number in range(30)))
        assert (await store.now(scope)).last_seq == 30

    async def test_roles_times_and_fields_come_back(self, store: HotUnderTest) -> None:
        scope = new_scope()
        meta: dict[str, Any] = {"mime": "audio/ogg", "durationMs": 12.5, "n": 12345678901234567, "empty": []}
        voice = draft("a greeting", "m1", modality="voice", language="vi", meta=meta)
        await store.hot.append(scope, admitted(voice, draft("hello", "m2", role="assistant")))
        first, second = (await store.now(scope)).window
        assert (first.id, first.role, first.modality, first.language, dict(first.meta), first.ts) == (
            *("m1", "user", "voice", "vi", meta),
            voice.ts,
        )
        assert (second.id, second.role, second.modality, second.language, dict(second.meta)) == (
            *("m2", "assistant", "text", None),
            {},
        )
        (entry,) = await store.entries_of(scope)
        assert entry.messages == (first, second)

    async def test_it_works_on_one_conversation(self, store: HotUnderTest) -> None:
        user = new_scope().whole_user
        with pytest.raises(InvalidScope):
            await store.say(user, "hello")
        with pytest.raises(InvalidScope):
            await store.hot.read(user)
