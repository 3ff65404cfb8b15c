"""The window: trimmed from the oldest, exactly; what left it and is not settled stays pending."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from threadkeep.model import Message
from threadkeep.ports.sessions import SessionLimits
from threadkeep.testing.archive_cases.content import TEXTS
from threadkeep.testing.clock import START
from threadkeep.testing.drafts import admitted, draft, new_scope
from threadkeep.testing.hot_cases.under_test import HotUnderTest, OpenHot, WithHot

APPENDS = st.lists(st.lists(st.integers(0, 12), min_size=0, max_size=7), max_size=12)


def trimmed(texts: list[str], limits: SessionLimits) -> list[str]:
    """The model: the longest end of the conversation within both limits, and the newest message always."""
    kept: list[str] = []
    for text in reversed(texts[-limits.max_messages :]):
        if kept and limits.max_chars is not None and sum(map(len, kept)) + len(text) > limits.max_chars:
            break
        kept.insert(0, text)
    return kept


class HotWindowCases(WithHot):
    @settings(
        max_examples=25,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
    )
    @given(appends=APPENDS, most=st.integers(1, 5), chars=st.none() | st.integers(1, 25))
    def test_it_is_trimmed_as_the_model_says(
        self, open_hot: OpenHot, appends: list[list[int]], most: int, chars: int | None
    ) -> None:
        limits = SessionLimits(max_messages=most, max_chars=chars)

        async def scenario() -> None:
            async with open_hot(limits) as store:
                scope, said = new_scope(), list[str]()
                for lengths in appends:
                    texts = ["ł" * length + "." for length in lengths]
                    await store.say(scope, *texts)
                    said += texts
                    if said:
                        assert await store.window(scope) == trimmed(said, limits)
                        assert [text for _, text in await store.everything(scope)] == said
                        assert (await store.now(scope)).whole

        asyncio.run(scenario())

    async def test_what_left_the_window_is_pending_until_it_is_settled(self, open_hot: OpenHot) -> None:
        async with open_hot(SessionLimits(max_messages=3)) as store:
            scope = new_scope()
            for number in range(10):
                await store.say(scope, f"text {number}")
            found = await store.now(scope)
            assert [message.seq for message in found.pending] == [1, 2, 3, 4, 5, 6, 7]
            entries = await store.entries_of(scope)
            await store.journal.settle([entries[1], entries[4], entries[9]])
            assert [message.seq for message in (await store.now(scope)).pending] == [1, 3, 4, 6, 7]
            await store.journal.settle(entries)
            assert (await store.now(scope)).pending == ()
            assert await store.window(scope) == ["text 7", "text 8", "text 9"]

    async def test_only_so_much_of_pending_as_was_requested(self, open_hot: OpenHot) -> None:
        async with open_hot(SessionLimits(max_messages=2)) as store:
            scope = new_scope()
            await store.say(scope, *(f"text {number}" for number in range(8)))
            for wanted, seqs in ((0, []), (2, [5, 6]), (100, [1, 2, 3, 4, 5, 6])):
                found = await store.hot.read(scope, pending=wanted)
                assert found is not None
                assert [message.seq for message in found.pending] == seqs

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
    async def test_text_comes_back_exactly_from_window_pending_and_journal(self, open_hot: OpenHot, text: str) -> None:
        async with open_hot(SessionLimits(max_messages=1)) as store:
            scope = new_scope()
            await store.say(scope, text, text)
            found = await store.now(scope)
            assert [message.content for message in (*found.pending, *found.window)] == [text, text]
            (entry,) = await store.entries_of(scope)
            assert [message.content for message in entry.messages] == [text, text]

    async def test_the_language_of_the_first_message_that_names_one_is_the_conversations(
        self, store: HotUnderTest
    ) -> None:
        scope = new_scope()
        await store.say(scope, "hm")
        assert (await store.now(scope)).language is None
        await store.hot.append(scope, admitted(draft("xin chào", language="vi"), draft("hi", language="en")))
        await store.hot.append(scope, admitted(draft("hi", language="en")))
        assert (await store.now(scope)).language == "vi"
        await store.hot.set_language(scope, "zh-Hant")
        await store.say(scope, "more")
        assert (await store.now(scope)).language == "zh-Hant"

    async def test_messages_that_the_archive_placed_enter_at_their_number(self, store: HotUnderTest) -> None:
        scope = new_scope()
        placed = [Message(seq, f"m{seq}", "user", f"text {seq}", START) for seq in range(1, 6)]
        await store.hot.refresh(scope, placed[:2])
        await store.hot.refresh(scope, placed[4:])
        assert not (await store.now(scope)).whole
        await store.hot.refresh(scope, placed[2:4])
        await store.hot.refresh(scope, placed)
        assert await store.everything(scope) == [(seq, f"text {seq}") for seq in range(1, 6)]
        assert await store.entries_of(scope) == []
