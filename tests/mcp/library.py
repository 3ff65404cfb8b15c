"""A small library of documents, and questions to it."""

from __future__ import annotations

import hashlib
from typing import Any

from threadkeep.agent.retrieval_turn import RetrievalRequest
from threadkeep.compose.knowledge import open_knowledge
from threadkeep.knowledge.indexing import embed_documents
from threadkeep.ports.knowledge import Access, AccessLevel, Chunk, Document, Part
from threadkeep.ports.models import model_of
from threadkeep.scope import Scope
from threadkeep.settings import Settings

RAG = (
    "Retrieval-augmented generation (RAG) combines a search over documents with a language model: the model answers"
    " from the passages that were found, and names them."
)
HOW_RAG_WORKS = (
    "RAG works in two steps. The question is turned into terms and a vector and the index returns the nearest"
    " passages; then the model reads them together with the question."
)
BREAD = "Sourdough bread rises slowly. A starter of flour and water works for a day before it is baked."
SECRET = "The salary of the director of the astronomy club is forty thousand moon crowns."
SHARED = "The budget of the astronomy club buys one telescope mirror every spring."

SETTINGS = Settings()
ANN, BOB = "ann", "bob"


def document(id_: str, text: str, access: AccessLevel = "public", **more: Any) -> Document:
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    return Document(
        id_, more.pop("datasource", "docs"), id_, digest, (Part(id_, text),), (Chunk(0, text),), access, **more
    )


LIBRARY = (
    document("rag.md", RAG),
    document("how.md", HOW_RAG_WORKS),
    document("bread.md", BREAD, datasource="kitchen"),
    document("salary.md", SECRET, "private", owner=ANN, datasource="club"),
    document("budget.md", SHARED, "shared", owner=ANN, readers=(BOB,), datasource="club"),
)


async def fill(url: str, *documents: Document, tenant: str = "default") -> None:
    async with open_knowledge(url, SETTINGS) as knowledge:
        for one in documents or LIBRARY:
            await knowledge.store.put(tenant, one)
        if knowledge.embedder is not None:
            await embed_documents(knowledge.store, knowledge.embedder, await model_of(knowledge.embedder), None, None)


def question(query: str, user: str = ANN, **more: Any) -> RetrievalRequest:
    return RetrievalRequest(Scope("default", user), Access("default", user), query, **more)


def found_in(result: Any) -> list[str]:
    return [context["documentId"] for context in result.contexts]
