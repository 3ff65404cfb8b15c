"""Search terms are written a batch at a time, and nobody who searches can tell."""

from pathlib import Path

from threadkeep import Memory, Scope, UserMessage, open_memory
from threadkeep.db.terms import BATCH

ME = Scope(user="u1", conversation="c1")
OTHER = Scope(user="u2", conversation="c1")


async def say(memory: Memory, scope: Scope, first: int, last: int) -> None:
    for number in range(first, last):
        await memory.append(scope, [UserMessage(f"word{number} and common")])


async def found(memory: Memory, word: str) -> list[str]:
    return [hit.content.split()[0] for hit in (await memory.recall(ME, word, k=1_000)).hits]


async def test_every_message_is_found_by_its_own_word_whether_it_is_indexed_or_waits(tmp_path: Path) -> None:
    async with open_memory(f"sqlite:///{tmp_path}/memory.db") as memory:
        await say(memory, ME, 0, BATCH + 5)
        for number in range(BATCH + 5):
            assert (await found(memory, f"word{number}"))[0] == f"word{number}"
        assert len(await found(memory, "common")) == BATCH + 5


async def test_an_erased_user_takes_the_waiting_and_the_indexed_along_and_others_stay(tmp_path: Path) -> None:
    async with open_memory(f"sqlite:///{tmp_path}/memory.db") as memory:
        for number in range(BATCH):
            await say(memory, OTHER, number, number + 1)
            await say(memory, ME, number, number + 1)
        await say(memory, OTHER, BATCH, BATCH + 3)
        proof = await memory.erase(OTHER.whole_user)
        assert 0 < proof.stores["index"].removed <= proof.stores["archive"].removed == BATCH + 3
        await say(memory, ME, BATCH, BATCH + 3)  # these take the row numbers that the erased ones had
        assert len(await found(memory, "common")) == BATCH + 3
        assert (await memory.recall(OTHER, "common")).hits == ()


async def test_one_append_of_many_messages_is_indexed_at_once(tmp_path: Path) -> None:
    async with open_memory(f"sqlite:///{tmp_path}/memory.db") as memory:
        await memory.append(ME, [UserMessage(f"word{number}") for number in range(3 * BATCH)])
        assert (await found(memory, "word0"))[0] == "word0"
        proof = await memory.erase(ME)
        assert proof.stores["index"].removed == 3 * BATCH
