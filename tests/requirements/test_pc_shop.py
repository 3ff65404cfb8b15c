"""What the PC shop asks of the store under it."""

from pathlib import Path

import pytest

from threadkeep import ModelResponse, Scope, UserMessage, open_memory

ME = Scope(user="u1", conversation="c1")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("DATABASE_URL", "REDIS_URL", "THREADKEEP_CONFIG"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("value", [None, "sqlite:///./database/sqlite.db", "sqlite:///./elsewhere/shop.db"])
async def test_the_primary_database_is_where_the_environment_says_and_needs_no_redis(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str | None
) -> None:
    if value:
        monkeypatch.setenv("DATABASE_URL", value)
    async with open_memory() as memory:
        await memory.append(ME, [UserMessage("Tư vấn laptop gaming", id="m1"), ModelResponse("Dạ có ạ", id="m2")])
        assert [(m.id, m.content) for m in (await memory.history(ME)).messages] == [
            ("m1", "Tư vấn laptop gaming"),
            ("m2", "Dạ có ạ"),
        ]
        assert [hit.message_id for hit in (await memory.recall(ME, "laptop")).hits] == ["m1"]
    assert (tmp_path / (value or "sqlite:///./database/sqlite.db").removeprefix("sqlite:///")).is_file()


async def test_a_message_and_a_conversation_can_each_be_deleted() -> None:
    async with open_memory("sqlite:///shop.db") as memory:
        for scope in (ME, ME.with_conversation("c2")):
            await memory.append(scope, [UserMessage("RTX 4060?", id="m1"), ModelResponse("Còn hàng", id="m2")])
        await memory.erase(ME, message_id="m1")
        assert [message.id for message in (await memory.history(ME)).messages] == ["m2"]
        await memory.erase(ME)
        assert [item.conversation for item in await memory.conversations(ME)] == ["c2"]
        assert len((await memory.history(ME.with_conversation("c2"))).messages) == 2
