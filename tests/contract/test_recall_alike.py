"""One user's talk on three databases: the same evidence, so the same answers; and none of what was erased."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.contract.generated_talk import Talk
from tests.servers.server import Server
from threadkeep import Memory, Scope, Settings, open_memory
from threadkeep.ports.index import Evidence
from threadkeep.recall.candidates import MOST_CANDIDATES, REACH, evidence_for, promising, with_neighbours
from threadkeep.recall.question import Question
from threadkeep.testing.drafts import new_scope

_TALKS, _TURNS = 12, 50
_QUESTIONS, _RECALLED, _AFTER_ERASURE = 200, 20, 300
_WITHOUT_VECTORS = Settings(embedder="none")  # the worker makes them at times of its own


@pytest.fixture
async def memories(tmp_path: Path, postgres_server: Server, mariadb_server: Server) -> AsyncIterator[dict[str, Memory]]:
    urls = {"sqlite": f"sqlite:///{tmp_path}/m.db", "postgres": postgres_server.url, "mariadb": mariadb_server.url}
    async with AsyncExitStack() as stack:
        yield {
            name: await stack.enter_async_context(open_memory(url, settings=_WITHOUT_VECTORS))
            for name, url in urls.items()
        }


async def _told(memory: Memory, scope: Scope, talk: Talk, talks: int = _TALKS, turns: int = _TURNS) -> None:
    for number in range(talks):
        await memory.append(scope.with_conversation(f"c{number}"), talk.turns(f"c{number}", turns))


async def _evidence(memory: Memory, scope: Scope, question: str) -> Evidence:
    return await evidence_for(Question(question), memory._stores.index, scope.whole_user)  # pyright: ignore[reportPrivateUsage]


def _plain(evidence: Evidence) -> object:
    turns = sorted(
        (one.position, one.message.content, one.length, sorted(one.counts.items())) for one in evidence.turns
    )
    statistics = evidence.statistics
    mean = round(statistics.mean_length, 9)
    return turns, statistics.turns, mean, dict(statistics.holding), dict(evidence.shapes)


async def test_three_databases_give_the_same_evidence_and_the_same_ten(memories: dict[str, Memory]) -> None:
    scope, asking = new_scope(), Talk(1)
    for memory in memories.values():
        await _told(memory, scope, Talk(1))
        await _told(memory, new_scope(), Talk(2), talks=2)
    found = 0
    for number in range(_QUESTIONS):
        question = asking.question()
        told = {name: _plain(await _evidence(memory, scope, question)) for name, memory in memories.items()}
        assert told["sqlite"] == told["postgres"] == told["mariadb"], question
        if number < _RECALLED:
            best = [await _best(memory, scope, question) for memory in memories.values()]
            assert best[0] == best[1] == best[2], question
            found += bool(best[0])
    assert found > _RECALLED // 2


async def _best(memory: Memory, scope: Scope, question: str) -> list[tuple[str, str, float]]:
    hits = (await memory.recall(scope, question, k=10)).hits
    return [(hit.conversation, hit.message_id, round(hit.score, 9)) for hit in hits]


@pytest.mark.parametrize("name", ["sqlite", "postgres", "mariadb"])
async def test_no_question_finds_what_was_erased(memories: dict[str, Memory], name: str) -> None:
    memory, scope, talk = memories[name], new_scope(), Talk(3)
    await _told(memory, scope, talk, talks=4)
    for number in range(0, _TURNS, 10):
        await memory.erase(scope.with_conversation("c0"), message_id=f"c0-{number}")
    await memory.erase(scope.with_conversation("c1"))
    gone = {("c0", f"c0-{number}") for number in range(0, _TURNS, 10)}
    seen: set[tuple[str, str]] = set()
    for _ in range(_AFTER_ERASURE):
        evidence = await _evidence(memory, scope, talk.question())
        seen |= {(turn.conversation, turn.message.id) for turn in evidence.turns}
        assert evidence.statistics.turns == 3 * _TURNS - len(gone)
    assert {conversation for conversation, _ in seen} == {"c0", "c2", "c3"}
    assert not seen & gone
    await memory.erase(scope.whole_user)
    assert all([not (await _evidence(memory, scope, talk.question())).turns for _ in range(20)])


@pytest.mark.parametrize("name", ["sqlite", "postgres", "mariadb"])
@pytest.mark.parametrize("question", ["", " ", "😀🎉", "and of the", "của và là", "x" * 100_000, "?!"], ids=range(7))
async def test_a_question_that_asks_nothing_is_answered(memories: dict[str, Memory], name: str, question: str) -> None:
    memory, scope = memories[name], new_scope()
    await _told(memory, scope, Talk(4), talks=1, turns=6)
    recalled = await memory.recall(scope, question)
    assert recalled.hits == ()
    assert recalled.text == ""


@pytest.mark.parametrize("name", ["sqlite", "postgres", "mariadb"])
async def test_a_question_of_many_thousand_words_is_answered(memories: dict[str, Memory], name: str) -> None:
    memory, scope, talk = memories[name], new_scope(), Talk(5)
    await _told(memory, scope, talk, talks=1, turns=20)
    question = " ".join(talk.question() for _ in range(10_000))[:100_000]
    assert (await memory.recall(scope, question)).hits


@pytest.mark.parametrize("name", ["sqlite", "postgres", "mariadb"])
async def test_what_is_read_does_not_grow_with_what_is_kept(memories: dict[str, Memory], name: str) -> None:
    """Counted in postings and turns handed over, for a word that every turn holds."""
    memory, scope, most = memories[name], new_scope(), 50
    await _told(memory, scope, Talk(6), talks=1, turns=10)
    postings: list[int] = []
    for size in (100, 400):
        texts = [type(one)(f"everywhere {one.text}", id=one.id) for one in Talk(7).turns(f"c{size}", size)]
        await memory.append(scope.with_conversation(f"c{size}"), texts)
        index = memory._stores.index  # pyright: ignore[reportPrivateUsage]
        lookup = await index.lookup(scope.whole_user, ["everyw"], most)
        read = list(lookup.postings)
        postings.append(len(read))
        places = with_neighbours(promising(read, lookup.statistics, lookup.shapes, {"everyw": 1.0}))
        turns, _ = await index.turns(lookup, places)
        assert 0 < len(turns) <= MOST_CANDIDATES * (2 * REACH + 1)
    assert max(postings) <= most + 64  # the newest few of an embedded store wait beside its index
