"""After `forget` the text is in no table, file or key, and what stays does not tell it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.forget.conftest import Place
from tests.privacy.in_servers import in_database, in_redis
from tests.servers.redis import RedisServer
from threadkeep import Memory, ModelResponse, Scope, Settings, UserMessage
from threadkeep.model import Reflection
from threadkeep.testing.traces import Trace, Traces

ME = Scope("shop", "ann")
TALK = ME.with_conversation("c1")
SECRET = "zqparrotzq"
SAID = f"I keep a {SECRET} at home"
SCAN = Traces([SECRET])


async def traces(place: Place, folder: Path) -> set[Trace]:
    found = SCAN.in_folder(folder) if place.url.startswith("sqlite") else await in_database(SCAN, place.url)
    return found | (in_redis(SCAN, place.redis) if place.redis else set())


async def talk(memory: Memory, place: Place) -> None:
    receipt = await memory.append(TALK, [UserMessage(SAID), ModelResponse(f"A parrot: {SAID}!"), UserMessage("hello")])
    await memory.append(ME.with_conversation("c2"), [UserMessage(SAID.upper())], key="k1")
    if not place.queues:
        await memory.flushed()
        assert await memory.reflect(TALK, Reflection(f"They say: {SAID}"), list(receipt.kept[2:]))
        await memory.rename(TALK, SAID)


async def test_nothing_of_a_forgotten_text_is_left(place: Place, tmp_path: Path) -> None:
    async with place.open() as memory:
        await talk(memory, place)
        assert await traces(place, tmp_path)  # the scan sees it while it is there
        assert (await memory.forget(ME, text=SAID)).complete
        assert await traces(place, tmp_path) == set()
        refused = await memory.append(TALK, [ModelResponse(SAID)])
        assert dict(refused.refused) == {"erased": 1}
        assert await traces(place, tmp_path) == set()
    async with place.open(worker=True) as memory:
        await memory.flushed()
    assert await traces(place, tmp_path) == set()


async def test_a_key_holds_for_every_process_that_has_it(archive: str, new_redis: Callable[..., RedisServer]) -> None:
    """A tombstone that was made with a key is known by it, in the archive and in Redis."""
    keyed = Settings(embedder="none", tombstone_key="a key of sixteen characters")
    for place in (Place(archive), Place(archive, new_redis().url)):
        owner = Scope("shop", f"user {place.redis is None}")
        async with place.open(settings=keyed) as memory:
            await memory.append(owner.with_conversation("c1"), [UserMessage(SAID)])
            await memory.flushed()
            assert (await memory.forget(owner, text=SAID)).complete
        async with place.open(settings=keyed) as memory:
            again = await memory.append(owner.with_conversation("c2"), [ModelResponse(SAID)])
            assert dict(again.refused) == {"erased": 1}
