"""A memory without an embedder still reaches what an earlier run put into a vector store apart from the archive."""

from __future__ import annotations

from pathlib import Path

from tests.vectors.memories import new_user, opening
from threadkeep import Settings, UserMessage, open_memory


async def test_without_an_embedder_what_an_earlier_run_put_into_chroma_is_erased_and_told(tmp_path: Path) -> None:
    url, chroma, place = f"sqlite:///{tmp_path}/memory.db", str(tmp_path / "chroma"), new_user()
    async with opening(url, chroma_path=chroma)() as embedded:
        await embedded.memory.append(place, [UserMessage("peanuts", id="m1"), UserMessage("walnuts", id="m2")])
        await embedded.memory.flushed()
        assert await embedded.vectors(place) == 2
    without = Settings(embedder="none").model_copy(update={"chroma_path": chroma})
    async with open_memory(url, settings=without) as memory:
        assert (await memory.erase(place, message_id="m1")).stores["vectors"].removed == 1
        proof = await memory.erase(place.whole_user)
        assert proof.stores["vectors"].removed == 1
        assert proof.complete
    async with opening(url, chroma_path=chroma)() as embedded:
        assert await embedded.vectors() == 0


async def test_a_chroma_that_cannot_be_reached_without_an_embedder_leaves_the_proof_incomplete(tmp_path: Path) -> None:
    without = Settings(embedder="none").model_copy(update={"chroma_path": "http://127.0.0.1:9"})
    place = new_user()
    async with open_memory(f"sqlite:///{tmp_path}/memory.db", settings=without) as memory:
        await memory.append(place, [UserMessage("peanuts")])
        proof = await memory.erase(place.whole_user)
        assert proof.stores["vectors"].failed == 1
        assert not proof.complete
        assert (await memory.history(place)).messages == ()


async def test_a_folder_of_chroma_that_nobody_made_is_not_made_to_erase_from(tmp_path: Path) -> None:
    folder, place = tmp_path / "chroma", new_user()
    without = Settings(embedder="none").model_copy(update={"chroma_path": str(folder)})
    async with open_memory(f"sqlite:///{tmp_path}/memory.db", settings=without) as memory:
        assert (await memory.erase(place.whole_user)).complete
    assert not folder.exists()
