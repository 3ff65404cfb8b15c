"""`seed` returns what a hot store needs to continue a conversation that only the archive has."""

from __future__ import annotations

import re
from itertools import count
from typing import cast

import pytest

from threadkeep.errors import InvalidScope
from threadkeep.model import HistoryRange
from threadkeep.ports.archive import Archive
from threadkeep.ports.hot import Seed
from threadkeep.ports.placing import Placing
from threadkeep.scope import Scope
from threadkeep.testing.clock import START
from threadkeep.testing.drafts import admitted, draft, new_scope
from threadkeep.testing.stores import StoresUnderTest, WithStores


async def seed_of(archive: Archive, scope: Scope, *ids: str, key: str | None = None) -> Seed:
    assert hasattr(archive, "seed")
    return await cast("Placing", archive).seed(scope, ids, key)


class SeedingCases(WithStores):
    async def test_an_unknown_conversation_has_an_empty_seed(self, stores: StoresUnderTest) -> None:
        assert await seed_of(stores.archive, new_scope(), "m1", key="k1") == Seed()

    async def test_so_has_one_whose_name_makes_odd_bytes(self, stores: StoresUnderTest) -> None:
        """Its digest holds a surrogate, as UTF-8 would write one if it could."""
        names = (new_scope().with_conversation(f"c{number}") for number in count())
        scope = next(one for one in names if re.search(rb"\xed[\xa0-\xbf][\x80-\xbf]", one.digest()))
        assert await seed_of(stores.archive, scope, "m1") == Seed()

    async def test_a_seed_has_the_last_seq_and_the_language(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted(draft("xin chào", language="vi"), "two"))
        assert await seed_of(stores.archive, scope) == Seed(2, 0, "vi", START)

    async def test_a_seed_has_the_messages_that_were_queried_and_no_others(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        turn = admitted(draft("one\ud800", "m1"), draft("two", "m2", role="assistant"), draft("three", "m3"))
        await stores.archive.append(scope, turn)
        await stores.archive.append(scope.with_conversation("c2"), admitted(draft("elsewhere", "m4")))
        found = await seed_of(stores.archive, scope, "m1", "m2", "m4", "M1")
        assert dict(found.messages) == {"m1": (1, "user", "one\ud800"), "m2": (2, "assistant", "two")}

    async def test_it_knows_what_was_erased(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted(draft("one", "m1"), draft("two", "m2")), "k1")
        await stores.archive.erase(scope, "m1")
        found = await seed_of(stores.archive, scope, "m1", "m2", key="k1")
        assert (found.erased, set(found.messages), found.key_erased) == ({"m1"}, {"m2"}, False)
        await stores.archive.erase(scope.whole_user)
        found = await seed_of(stores.archive, scope, "m1", "m2", "m3", key="k1")
        assert (found.last_seq, found.generation, found.active_at) == (0, 1, None)
        assert (found.erased, dict(found.messages), found.key_erased) == ({"m1", "m2"}, {}, True)
        assert found.receipt is None

    async def test_an_erased_conversation_still_has_a_seed(self, stores: StoresUnderTest) -> None:
        """For any number of message ids, and for none but the newest."""
        scope = new_scope()
        await stores.archive.append(scope, admitted(draft("one", "m1")))
        await stores.archive.erase(scope.whole_user)
        assert await seed_of(stores.archive, scope) == Seed(generation=1)
        assert await seed_of(stores.archive, scope, *(f"new{n}" for n in range(40)), key="new") == Seed(generation=1)
        newest = await stores.archive.messages(scope, HistoryRange(limit=1))
        assert (newest.scope.generation, newest.messages, newest.language) == (1, (), None)

    async def test_it_knows_what_a_key_was_answered(self, stores: StoresUnderTest) -> None:
        scope, turn = new_scope(), admitted(draft("one", "m1"), refused={"thought": 1})
        receipt = await stores.archive.append(scope, turn, "k1")
        found = await seed_of(stores.archive, scope, key="k1")
        assert (found.payload, found.receipt) == (turn.digest, receipt)
        assert (await seed_of(stores.archive, scope, key="K1")).receipt is None

    async def test_a_seed_can_be_queried_for_a_great_many(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await stores.archive.append(scope, admitted(*(draft("text", f"m{n}") for n in range(1_500))))
        found = await seed_of(stores.archive, scope, *(f"m{n}" for n in range(2_500)))
        assert len(found.messages) == 1_500

    async def test_a_seed_is_of_one_conversation(self, stores: StoresUnderTest) -> None:
        with pytest.raises(InvalidScope):
            await seed_of(stores.archive, new_scope().whole_user)
