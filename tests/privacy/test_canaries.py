"""Nothing that policy refuses reaches a file: one thousand canaries, every path, every form."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.privacy.canaries import Canary, all_canaries
from tests.privacy.token_readers import every_encoding
from tests.servers.embedding_stub import EmbeddingStub
from threadkeep import Memory, ModelResponse, Scope, Settings, UserMessage, open_memory
from threadkeep.models.token_bytes import unpack_ids
from threadkeep.testing.clock import FakeClock
from threadkeep.testing.traces import Traces

CANARIES = all_canaries()
SCOPE = Scope(tenant="shop", user="u1", conversation="c1")


@pytest.fixture
def everything_logged(tmp_path: Path) -> Iterator[None]:
    """Every logger of the process, down to DEBUG, into a file that the scan reads too."""
    handler = logging.FileHandler(tmp_path / "debug.log", encoding="utf-8")
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield
    root.setLevel(level)
    root.removeHandler(handler)
    handler.close()


async def send(memory: Memory, canaries: list[Canary]) -> None:
    for start in range(0, len(canaries), 10):
        part = canaries[start : start + 10]
        turn = [UserMessage("What is on the menu?"), *(canary.event for canary in part), ModelResponse("Soup.")]
        receipt = await memory.append(SCOPE, turn, key=f"turn-{start}")
        assert sum(receipt.refused.values()) + sum(receipt.stripped.values()) + sum(receipt.redacted.values()) >= 10


async def exported(memory: Memory) -> str:
    lines = [json.dumps(record.as_dict()) async for record in memory.export()]
    lines += [json.dumps(record.as_memory_record()) async for record in memory.export()]
    return "\n".join(lines)


def test_there_are_a_thousand_canaries_and_no_two_alike() -> None:
    assert len({canary.needle for canary in CANARIES}) == len(CANARIES) == 1_000


@pytest.mark.usefixtures("everything_logged")
async def test_a_thousand_canaries_leave_no_trace_in_any_file(tmp_path: Path) -> None:
    settings = Settings(outward_log=str(tmp_path / "outward.jsonl"))
    async with open_memory(f"sqlite:///{tmp_path}/memory.db", settings=settings) as memory:
        await send(memory, CANARIES)
        await memory.scratch.put(SCOPE, "tool.temp.results", [canary.needle for canary in CANARIES], 600)
        await memory.recall(SCOPE, " ".join(canary.needle for canary in CANARIES[:50]))
        await memory.touch(SCOPE)
        (tmp_path / "export.jsonl").write_text(await exported(memory))
        # While it is open: the write-ahead log is still there.
        scan = Traces((canary.needle for canary in CANARIES), every_encoding(), unpack_ids)
        assert (tmp_path / "memory.db-wal").stat().st_size > 0
        assert scan.in_folder(tmp_path) == set()
        kept = await memory.history(SCOPE, limit=5_000)
        assert sum(message.content == "Soup." for message in kept.messages) == len(CANARIES) // 10
    assert scan.in_folder(tmp_path) == set()
    outward = (tmp_path / "outward.jsonl").read_text()
    assert "What is on the menu?" in outward
    assert (tmp_path / "debug.log").exists()


async def test_an_embedding_server_is_sent_no_canary(tmp_path: Path) -> None:
    with EmbeddingStub() as server:
        settings = Settings().model_copy(
            update={"embedder": "ollama:bge-m3", "ollama_host": "127.0.0.1", "ollama_port": server.port}
        )
        async with open_memory(f"sqlite:///{tmp_path}/memory.db", settings=settings) as memory:
            await send(memory, CANARIES)
            await memory.flushed()
            await memory.append(SCOPE, [canary.event for canary in CANARIES[:5]], index="sync")
            secret = "write to ann.example@example.com or call +48 601 234 567"
            await memory.recall(SCOPE, secret)
        sent = [text for _, body, _ in server.asked for text in body["input"]]
    assert "What is on the menu?" in sent
    told = "\n".join(sent)
    assert not [canary.needle for canary in CANARIES if canary.needle in told]
    assert "ann.example" not in told
    assert "601 234 567" not in told


async def test_the_same_scan_finds_a_text_that_was_kept(tmp_path: Path) -> None:
    async with open_memory(f"sqlite:///{tmp_path}/memory.db") as memory:
        await memory.append(SCOPE, [UserMessage("the canarykept0001quill sings")])
        forms = {trace.form for trace in Traces(["canarykept0001quill"]).in_folder(tmp_path)}
    assert {"bytes"} <= forms


async def test_a_scratch_value_is_in_no_file_and_gone_after_its_ttl(tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_memory(f"sqlite:///{tmp_path}/memory.db", clock=clock) as memory:
        await memory.append(SCOPE, [UserMessage("hello")])
        await memory.scratch.put(SCOPE, "tool.temp.searchResults", "canaryscratch0001quill", 15 * 60)
        assert await memory.scratch.get(SCOPE, "tool.temp.searchResults") == "canaryscratch0001quill"
        (tmp_path / "export.jsonl").write_text(await exported(memory))
        assert Traces(["canaryscratch0001quill"]).in_folder(tmp_path) == set()
        clock.advance(seconds=15 * 60)
        assert await memory.scratch.get(SCOPE, "tool.temp.searchResults") is None
