"""Nothing that policy refuses reaches a file: one thousand canaries, every path, every form."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.privacy.canaries import Canary, all_canaries, personal_canaries
from tests.privacy.token_readers import every_encoding
from tests.servers.embedding_stub import EmbeddingStub
from threadkeep import Memory, ModelResponse, Scope, Settings, UserMessage, open_memory
from threadkeep.compose.knowledge import Knowledge, open_knowledge
from threadkeep.knowledge.indexing import Source
from threadkeep.ports.cache import encoded
from threadkeep.ports.knowledge import Access
from threadkeep.testing.clock import FakeClock
from threadkeep.testing.knowledge_contract import a_document
from threadkeep.testing.traces import Traces

CANARIES = all_canaries()
IN_DOCUMENTS = personal_canaries()[::4]
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
        scan = Traces((canary.needle for canary in CANARIES), every_encoding())
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


async def test_a_question_is_redacted_as_its_talk_is_before_it_is_sent(tmp_path: Path) -> None:
    """A tenant's own regions, and the talk's language, tell which numbers are somebody's."""
    pub = Scope(tenant="pub", user="u1", conversation="c1")
    irish, citizen = "020 913 1234", "079 203 001 234"
    with EmbeddingStub() as server:
        settings = Settings().model_copy(
            update={
                "tenant_regions": {"pub": ("IE",)},
                "redaction_regions": ("VN",),
                "embedder": "ollama:bge-m3",
                "ollama_host": "127.0.0.1",
                "ollama_port": server.port,
            }
        )
        async with open_memory(f"sqlite:///{tmp_path}/memory.db", settings=settings) as memory:
            for scope in (pub, SCOPE):
                await memory.append(
                    scope, [UserMessage("Chào bạn, tôi muốn đặt một phòng cuối tuần này")], index="sync"
                )
            await memory.recall(pub, f"who said {irish} there")
            await memory.recall(SCOPE, f"{citizen}")
        async with open_knowledge(f"sqlite:///{tmp_path}/memory.db", settings) as knowledge:
            await knowledge.store.put("pub", a_document("a", "a room"))
            await knowledge.indexer.rebuild("pub")
            await knowledge.ask(Access("pub", "u1"), f"which room has {irish} there")
        sent = "\n".join(text for _, body, _ in server.asked for text in body["input"])
    assert sent.count("[redacted:phone]") == 1  # a question to documents is embedded in lower case
    assert sent.count("[REDACTED:PHONE]") == 1
    assert sent.count("[REDACTED:NATIONAL_ID]") == 1
    assert irish not in sent
    assert citizen not in sent


@pytest.fixture
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of documents, apart from what is scanned: each canary in a paragraph, some in a heading."""
    folder = tmp_path_factory.mktemp("documents")
    for number, canary in enumerate(IN_DOCUMENTS):
        said = canary.event.text  # type: ignore[union-attr]
        (folder / f"page{number}.md").write_text(
            f"# Booking number {number}\n\n## Contact {said}\n\nGuests say: {said}\n"
        )
    return folder


@pytest.mark.usefixtures("everything_logged")
async def test_redacted_documents_questions_and_cached_answers_hold_no_canary(tmp_path: Path, documents: Path) -> None:
    canaries = IN_DOCUMENTS
    url = f"sqlite:///{tmp_path}/memory.db"
    with EmbeddingStub() as server:
        settings = Settings().model_copy(
            update={
                "knowledge_redaction": True,
                "embedder": "ollama:bge-m3",
                "ollama_host": "127.0.0.1",
                "ollama_port": server.port,
            }
        )
        async with open_knowledge(url, settings) as knowledge:
            report = await knowledge.indexer.index(documents, Source("shop"))
            assert (report.added, report.embedded, report.skipped) == (len(canaries), len(canaries), [])
            told: list[str] = []
            for canary in canaries:
                asked = f"which booking says {canary.event.text}"  # type: ignore[union-attr]
                answers = [await knowledge.ask(Access("default", "ann"), asked) for _ in range(2)]
                assert all(answer.hits for answer in answers)
                told.append(json.dumps(answers[1].as_dict()))
            (tmp_path / "answers.jsonl").write_text("\n".join(told))
            (tmp_path / "cache.bin").write_bytes(cached_bytes(knowledge))
            assert knowledge.asking.cache is not None
            assert knowledge.asking.cache.counts.hits >= len(canaries)
            scan = Traces((canary.needle for canary in canaries), every_encoding())
            assert scan.in_folder(tmp_path) == set()
        sent = "\n".join(text for _, body, _ in server.asked for text in body["input"])
    assert scan.in_folder(tmp_path) == set()
    assert "Booking number 7" in sent
    assert not [canary.needle for canary in canaries if canary.needle in sent]


async def test_the_cache_holds_no_text_of_a_document_or_a_question(tmp_path: Path, documents: Path) -> None:
    (documents / "plain.md").write_text("The canarydoc0001quill is kept in the cellar.")
    async with open_knowledge(f"sqlite:///{tmp_path}/memory.db", Settings()) as knowledge:
        await knowledge.indexer.index(documents, Source("shop"))
        answer = await knowledge.ask(Access("default", "ann"), "canaryasked0001quill or canarydoc0001quill?")
        assert "canarydoc0001quill" in answer.text
        (tmp_path / "cache.bin").write_bytes(cached_bytes(knowledge))
    assert "shop/plain.md" in (tmp_path / "cache.bin").read_text()
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache.bin").rename(tmp_path / "cache" / "cache.bin")
    assert Traces(["canarydoc0001quill", "canaryasked0001quill", "cellar"]).in_folder(tmp_path / "cache") == set()


def cached_bytes(knowledge: Knowledge) -> bytes:
    """All that the process has cached, as it would lie in a shared store before it is encrypted."""
    cache: Any = knowledge.asking.cache
    kept = [entry for _, entries in cache._entries._kept.values() for entry in entries]
    assert kept
    return encoded(kept)


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
