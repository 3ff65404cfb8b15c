"""What was erased is in no index and in no answer, whatever is asked, on every place vectors may be kept.

`CHAOS=full` asks ten thousand questions of each place.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.contract.generated_talk import Talk
from tests.vectors.memories import Embedded, Open, new_user
from tests.vectors.memories import chroma_server as chroma_server
from tests.vectors.memories import open_at as open_at
from threadkeep import ModelResponse, Scope, UserMessage
from threadkeep.recall.candidates import evidence_for
from threadkeep.recall.question import Question

_QUESTIONS = 10_000 if os.environ.get("CHAOS") == "full" else 75
_TALKS, _TURNS = 4, 30
_PLACES = ["sqlite", "postgres", "mariadb", "chroma-folder"]
Place = tuple[str, str]  # a conversation and a message's id


def _turns(talk: Talk, name: str) -> list[UserMessage | ModelResponse]:
    """Each with a word of its own."""
    return [type(one)(f"{one.text} {_own_word(name, one.id)}", id=one.id) for one in talk.turns(name, _TURNS)]


def _own_word(name: str, id_: str | None) -> str:
    return f"only{name}{(id_ or '').partition('-')[2]}x"


async def _erased(embedded: Embedded, user: Scope) -> set[Place]:
    """Every third message of one conversation, and another one whole."""
    first, second = user.with_conversation("c0"), user.with_conversation("c1")
    some = [f"c0-{number}" for number in range(0, _TURNS, 3)]
    for message_id in some:
        proof = await embedded.memory.erase(first, message_id=message_id)
        assert (proof.stores["vectors"].removed, proof.complete) == (1, True)
    proof = await embedded.memory.erase(second)
    assert (proof.stores["vectors"].removed, proof.complete) == (_TURNS, True)
    return {("c0", message_id) for message_id in some} | {("c1", f"c1-{number}") for number in range(_TURNS)}


async def _no_index_holds(embedded: Embedded, user: Scope, gone: set[Place]) -> None:
    kept = _TALKS * _TURNS - len(gone)
    assert await embedded.vectors(user) == kept
    assert await embedded.vectors(user.with_conversation("c1")) == 0
    words = " ".join(sorted(_own_word(*place) for place in gone))
    evidence = await evidence_for(Question(words), embedded.memory._stores.index, user)
    assert evidence.statistics.turns == kept
    assert not evidence.statistics.holding
    assert not evidence.turns


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("open_at", _PLACES, indirect=True)
async def test_no_question_ever_finds_what_was_erased(open_at: Open) -> None:
    user, talk, drawn = new_user().whole_user, Talk(11), random.Random(11)
    said = {f"c{number}": _turns(talk, f"c{number}") for number in range(_TALKS)}
    async with open_at() as embedded:
        for name, turns in said.items():
            await embedded.memory.append(user.with_conversation(name), turns)
        await embedded.memory.flushed(60)
        assert await embedded.vectors(user) == _TALKS * _TURNS
        gone = await _erased(embedded, user)
        await _no_index_holds(embedded, user, gone)
        texts = {(name, one.id): one.text for name, turns in said.items() for one in turns if one.id}
        found = 0
        for number in range(_QUESTIONS):
            # Half of them ask for what was erased, in its own words.
            words = texts[drawn.choice(sorted(gone))].split() if number % 2 else talk.question().split()
            recalled = await embedded.memory.recall(user, " ".join(drawn.sample(words, min(6, len(words)))), k=20)
            assert not {(hit.conversation, hit.message_id) for hit in recalled.hits} & gone
            assert not any(_own_word(*place) in recalled.text for place in gone)
            found += len(recalled.hits)
        assert found > _QUESTIONS
        print(f"{_QUESTIONS} questions, {found} hits, none of {len(gone)} erased turns")
