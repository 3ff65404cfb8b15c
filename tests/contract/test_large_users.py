"""Users who have said a lot, on PostgreSQL: common words are estimated from a sample, all else is as for others."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.servers.server import Server
from threadkeep import Memory, Scope, Settings, UserMessage, open_memory
from threadkeep.index import gin
from threadkeep.ports.index import Evidence
from threadkeep.recall.candidates import evidence_for
from threadkeep.recall.question import Question
from threadkeep.testing.drafts import admitted, draft, new_scope

_TURNS, _LARGE = 700, 600


@pytest.fixture
async def memory(postgres_server: Server, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Memory]:
    monkeypatch.setattr(gin, "LARGE", _LARGE)
    async with open_memory(postgres_server.url, settings=Settings(embedder="none")) as opened:
        yield opened


@pytest.fixture
async def elsewhere(postgres_server: Server) -> AsyncIterator[Memory]:
    """Another process, as far as the first one can tell."""
    async with open_memory(postgres_server.url, settings=Settings(embedder="none")) as opened:
        yield opened


@pytest.fixture
async def user(memory: Memory) -> Scope:
    """Every turn holds `everyday`, every fourth `quarterly`, and each a word of its own."""
    scope = new_scope()
    for talk in range(7):
        numbers = range(100 * talk, 100 * (talk + 1))
        texts = [f"everyday nr{number}x" + (" quarterly" if number % 4 == 0 else "") for number in numbers]
        await memory._stores.archive.append(  # pyright: ignore[reportPrivateUsage]
            scope.with_conversation(f"c{talk}"), admitted(*(draft(text) for text in texts))
        )
    return scope.whole_user


async def _asked(memory: Memory, scope: Scope, question: str) -> Evidence:
    return await evidence_for(Question(question), memory._stores.index, scope)  # pyright: ignore[reportPrivateUsage]


async def test_rare_words_are_counted_and_common_ones_estimated(memory: Memory, user: Scope) -> None:
    for _ in range(2):  # unknown at first, known after
        told = (await _asked(memory, user, "everyday quarterly nr5x nr6x")).statistics
        assert told.turns == _TURNS
        assert (told.holding["nr5x"], told.holding["nr6x"], told.holding["everyd"]) == (1, 1, _TURNS)
        assert told.holding["quarte"] == pytest.approx(_TURNS / 4, rel=0.2)


async def test_what_another_process_appends_is_found_at_once(memory: Memory, elsewhere: Memory, user: Scope) -> None:
    await _asked(memory, user, "everyday")
    await elsewhere.append(user.with_conversation("c0"), [UserMessage("everyday brandnew")])
    hits = (await memory.recall(user, "brandnew")).hits
    assert [hit.content for hit in hits][:1] == ["everyday brandnew"]


async def test_what_another_process_erases_is_gone_at_once(memory: Memory, elsewhere: Memory, user: Scope) -> None:
    assert (await memory.recall(user, "nr5x")).hits
    await elsewhere.erase(user.with_conversation("c0"))
    assert not any("nr5x" in hit.content for hit in (await memory.recall(user, "nr5x")).hits)
    await elsewhere.erase(user)
    evidence = await _asked(memory, user, "everyday nr105x")
    assert (evidence.statistics.turns, list(evidence.turns)) == (0, [])


async def test_a_common_word_alone_finds_the_latest_turns(memory: Memory, user: Scope) -> None:
    assert any(turn.conversation == "c6" for turn in (await _asked(memory, user, "everyday")).turns)
    within = await _asked(memory, user.with_conversation("c2"), "everyday")
    assert {turn.conversation for turn in within.turns} == {"c2"}


async def test_whoever_says_more_and_more_becomes_a_large_user(memory: Memory) -> None:
    scope = new_scope()
    await memory.append(scope, [UserMessage("everyday first")])
    assert (await _asked(memory, scope.whole_user, "everyday")).statistics.turns == 1
    texts = [draft(f"everyday nr{number}x") for number in range(_TURNS - 1)]
    await memory._stores.archive.append(scope, admitted(*texts))  # pyright: ignore[reportPrivateUsage]
    for _ in range(3):
        told = (await _asked(memory, scope.whole_user, "everyday nr9x")).statistics
        assert (told.turns, dict(told.holding)) == (_TURNS, {"everyd": _TURNS, "nr9x": 1})
    known = memory._stores.index._known.get((scope.tenant, scope.user))  # type: ignore[attr-defined]  # pyright: ignore
    assert known.large
