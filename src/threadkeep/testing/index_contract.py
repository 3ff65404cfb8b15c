"""The contract of the `TermIndex` port: subclass, and give it `open_stores` as `threadkeep.testing.stores` says.

Texts are of words that the normaliser leaves alone, so a backend may be tested with any `terms_of` that splits at
spaces; what is compared are counts, never scores.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

import pytest

from threadkeep.model import Message
from threadkeep.ports.archive import Entry, Placing
from threadkeep.ports.index import Evidence, Position, Posting, Shape, Statistics, Turn
from threadkeep.scope import Scope
from threadkeep.testing.clock import START
from threadkeep.testing.drafts import admitted, draft, new_scope, say
from threadkeep.testing.stores import StoresUnderTest, WithStores

_MORE_THAN_CONNECTIONS = 30


async def _nothing() -> None: ...


@dataclass
class Asking:
    """A question that reads every message with a posting, `reach` around it, and records what it saw."""

    terms: Sequence[str]
    reach: int = 0
    most: int = 1_000
    also: Collection[Position] = ()
    between: Callable[[], Awaitable[None]] = _nothing  # awaited before turns are read
    postings: list[Posting] = field(default_factory=list[Posting])
    shapes: dict[str, Shape] = field(default_factory=dict[str, Shape])

    async def of(self, stores: StoresUnderTest, scope: Scope) -> Evidence:
        lookup = await stores.index.lookup(scope, self.terms, self.most)
        self.postings, self.shapes = list(lookup.postings), dict(lookup.shapes)
        await self.between()
        around = range(-self.reach, self.reach + 1)
        near = {Position(name, seq + step) for name, seq in (one.position for one in self.postings) for step in around}
        turns, shapes = await stores.index.turns(lookup, near | set(self.also))
        return Evidence(lookup.statistics, turns, shapes)


async def asked(stores: StoresUnderTest, scope: Scope, *terms: str) -> Evidence:
    return await Asking(terms).of(stores, scope)


def by_place(evidence: Evidence) -> dict[tuple[str, int], Turn]:
    return {(turn.conversation, turn.message.seq): turn for turn in evidence.turns}


class StatisticsCases(WithStores):
    async def test_the_words_of_all_of_a_users_turns_are_counted(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await say(stores.archive, scope, "melon pear", "melon melon plum fig")
        await say(stores.archive, scope.with_conversation("c2"), "pear")
        for place in (scope, scope.whole_user, scope.with_conversation("nowhere")):
            told = (await asked(stores, place, "melon", "pear", "nothing")).statistics
            assert (told.turns, told.mean_length) == (3, pytest.approx(7 / 3))
            assert dict(told.holding) == {"melon": 2, "pear": 2}

    async def test_what_others_say_counts_for_nothing(self, stores: StoresUnderTest) -> None:
        mine, other = new_scope(), new_scope()
        await say(stores.archive, mine, "melon")
        for scope in (other, Scope("another shop", mine.user, "c1"), new_scope(user=mine.user.upper())):
            await say(stores.archive, scope, *["melon pear"] * 5)
        told = await asked(stores, mine, "melon", "pear")
        assert (told.statistics.turns, dict(told.statistics.holding)) == (1, {"melon": 1})
        assert [turn.message.content for turn in told.turns] == ["melon"]

    async def test_a_user_who_said_nothing_has_no_evidence(self, stores: StoresUnderTest) -> None:
        told = await asked(stores, new_scope(), "melon")
        assert (told.statistics, tuple(told.turns), dict(told.shapes)) == (Statistics(0, 0.0, {}), (), {})

    async def test_a_question_without_terms_finds_no_turns(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await say(stores.archive, scope, "melon pear")
        told = await asked(stores, scope)
        assert (told.statistics.turns, dict(told.statistics.holding), tuple(told.turns)) == (1, {}, ())

    async def test_placed_messages_count_like_appended_ones(self, stores: StoresUnderTest) -> None:
        scope, other = new_scope(), new_scope()
        texts = ["melon melon pear", "plum"]
        await say(stores.archive, scope, *texts)
        drafts = [draft(text) for text in texts]
        messages = tuple(Message(n, one.id, one.role, one.content, one.ts) for n, one in enumerate(drafts, 1))
        assert hasattr(stores.archive, "place")
        placing: Placing = stores.archive  # pyright: ignore[reportAssignmentType]
        await placing.place([Entry(other, messages, START)])
        one, two = [await asked(stores, place, "melon", "plum") for place in (scope, other)]
        assert one.statistics == two.statistics
        assert dict(one.shapes) == dict(two.shapes) == {"c1": Shape(2, 4)}
        assert [(t.length, t.counts) for t in one.turns] == [(t.length, t.counts) for t in two.turns]

    async def test_after_many_turns_the_counts_are_still_right(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        for number in range(0, 200, 5):
            await say(stores.archive, scope, *(f"melon n{one} n{one}" for one in range(number, number + 5)))
        asking = Asking(["melon", "n7"])
        told = await asking.of(stores, scope)
        assert (told.statistics.turns, told.statistics.mean_length) == (200, 3.0)
        assert dict(told.statistics.holding) == {"melon": 200, "n7": 1}
        assert [(one.position.seq, one.count, one.length) for one in asking.postings if one.term == "n7"] == [(8, 2, 3)]
        assert asking.shapes == {"c1": Shape(200, 600)}


class TurnCases(WithStores):
    async def test_a_turn_has_its_length_and_how_often_it_holds_each_word(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await say(stores.archive, scope, "melon pear melon mel", "melonx fig", "pear")
        asking = Asking(["melon", "pear", "mel"])
        told = await asking.of(stores, scope)
        turns = by_place(told)
        assert (turns["c1", 1].length, dict(turns["c1", 1].counts)) == (4, {"melon": 2, "pear": 1, "mel": 1})
        assert dict(turns["c1", 3].counts) == {"pear": 1}
        expected = {("melon", 1, 2, 4), ("pear", 1, 1, 4), ("mel", 1, 1, 4), ("pear", 3, 1, 1)}
        seen = {(one.term, one.position.seq, one.count, one.length) for one in asking.postings}
        assert expected <= seen

    async def test_neighbours_come_with_what_was_found(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await say(stores.archive, scope, "fig", "plum", "melon", "pear", "lemon")
        await say(stores.archive, scope.with_conversation("c2"), "corn")
        told = await Asking(["melon"], reach=1).of(stores, scope)
        assert sorted(turn.message.content for turn in told.turns) == ["melon", "pear", "plum"]
        assert dict(told.shapes) == {"c1": Shape(5, 5)}

    async def test_a_message_may_be_requested_that_holds_none_of_the_words(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await say(stores.archive, scope, "melon")
        await say(stores.archive, scope.with_conversation("c2"), "plum fig", "pear")
        named = [Position("c2", 1), Position("c2", 99), Position("nowhere", 1)]
        told = await Asking(["melon"], also=named).of(stores, scope.whole_user)
        assert sorted(turn.message.content for turn in told.turns) == ["melon", "plum fig"]
        assert dict(told.shapes) == {"c1": Shape(1, 1), "c2": Shape(2, 3)}

    async def test_nothing_is_held_between_the_lookup_and_the_reading_of_turns(self, stores: StoresUnderTest) -> None:
        """More searches than a store has connections, each of which waits until all of them have come this far."""
        scope = new_scope()
        await say(stores.archive, scope, "melon")
        await say(stores.archive, scope.with_conversation("c2"), "plum fig", "pear")
        everybody = asyncio.Barrier(_MORE_THAN_CONNECTIONS)

        async def between() -> None:
            await everybody.wait()

        askings = [Asking(["melon"], also=[Position("c2", 1)], between=between) for _ in range(_MORE_THAN_CONNECTIONS)]
        told = await asyncio.gather(*(one.of(stores, scope.whole_user) for one in askings))
        assert {tuple(sorted(turn.message.content for turn in one.turns)) for one in told} == {("melon", "plum fig")}

    async def test_one_conversation_is_searched_where_one_is_named(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        for name in ("c1", "c2", "C1"):
            await say(stores.archive, scope.with_conversation(name), f"melon {name}x")
        asking = Asking(["melon"], also=[Position("c2", 1)])
        told = await asking.of(stores, scope.with_conversation("c1"))
        assert [(turn.conversation, turn.message.content) for turn in told.turns] == [("c1", "melon c1x")]
        assert {one.position.conversation for one in asking.postings} == {"c1"}
        whole = await asked(stores, scope.whole_user, "melon")
        assert sorted(turn.conversation for turn in whole.turns) == ["C1", "c1", "c2"]

    async def test_a_message_is_whole(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        said = replace(draft("melon \0 \ud800 łódź"), modality="voice", language="pl", meta={"mime": "audio/ogg"})
        await stores.archive.append(scope, admitted(said))
        (turn,) = (await asked(stores, scope, "melon")).turns
        assert turn.message == Message(
            1, said.id, "user", said.content, said.ts, said.modality, said.language, said.meta
        )

    async def test_only_the_newest_postings_are_read_where_there_are_too_many(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await say(stores.archive, scope, *["melon"] * 100)
        asking = Asking(["melon"], most=10)
        told = await asking.of(stores, scope)
        indexed = [one.position.seq for one in asking.postings]
        assert len(indexed) <= 10 + 64
        assert {*range(91, 101)} <= {*indexed}
        assert told.statistics.holding["melon"] == 100


class ForgettingCases(WithStores):
    async def test_an_erased_message_is_as_though_it_had_never_been(self, stores: StoresUnderTest) -> None:
        scope, other = new_scope(), new_scope()
        for number in range(3):
            for place in (scope, other):
                await stores.archive.append(place, admitted(draft(f"melon n{number}", f"m{number}")))
        gone = draft("melon secret secret", "gone")
        await stores.archive.append(scope, admitted(gone))
        await stores.archive.erase(scope, "gone")
        one, two = [await asked(stores, place, "melon", "secret") for place in (scope, other)]
        assert one.statistics == two.statistics
        assert dict(one.shapes) == dict(two.shapes)
        assert {turn.message.id for turn in one.turns} == {"m0", "m1", "m2"}

    async def test_a_message_erased_from_a_full_index_is_counted_no_more(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        drafts = [draft(f"melon n{number} n{number}", f"m{number}") for number in range(150)]
        await stores.archive.append(scope, admitted(*drafts))
        for number in (3, 77, 149):
            await stores.archive.erase(scope, f"m{number}")
        told = await asked(stores, scope, "melon", "n3", "n77", "n149", "n4")
        assert (told.statistics.turns, told.statistics.mean_length) == (147, 3.0)
        assert dict(told.statistics.holding) == {"melon": 147, "n4": 1}
        assert dict(told.shapes) == {"c1": Shape(147, 441)}

    async def test_an_erased_conversation_leaves_the_others_as_they_were(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        await say(stores.archive, scope, *["melon pear"] * 70)
        await say(stores.archive, scope.with_conversation("c2"), "melon")
        await stores.archive.erase(scope)
        told = await asked(stores, scope.whole_user, "melon", "pear")
        assert (told.statistics.turns, told.statistics.mean_length, dict(told.statistics.holding)) == (
            1,
            1.0,
            {"melon": 1},
        )
        assert dict(told.shapes) == {"c2": Shape(1, 1)}


class ManyAtOnceCases(WithStores):
    async def test_a_search_while_others_write_gets_whole_turns(self, stores: StoresUnderTest) -> None:
        scope = new_scope()
        writing = [say(stores.archive, scope.with_conversation(f"c{n % 4}"), f"melon n{n}") for n in range(40)]
        reading = [asked(stores, scope.whole_user, "melon") for _ in range(10)]
        results = await asyncio.gather(*writing, *reading)
        for told in results[40:]:
            assert isinstance(told, Evidence)
            assert all(turn.counts == {"melon": 1} and turn.length == 2 for turn in told.turns)
        assert len((await asked(stores, scope.whole_user, "melon")).turns) == 40


class IndexContract(StatisticsCases, TurnCases, ForgettingCases, ManyAtOnceCases):
    """See `threadkeep.testing.stores` for the fixture."""
