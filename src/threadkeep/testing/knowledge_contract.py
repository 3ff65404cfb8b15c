"""The contract of the `KnowledgeStore` port: subclass, and give it a fixture `knowledge` that yields a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from threadkeep.errors import VectorMismatch
from threadkeep.ports.embedder import EmbeddingModel
from threadkeep.ports.knowledge import Access, Chunk, Document, KnowledgeStore, Part, Question, Role
from threadkeep.recall.normalise import query_terms
from threadkeep.scope import Scope
from threadkeep.testing.drafts import a_tenant
from threadkeep.testing.vectors_contract import SIZE, a_model, towards


def a_document(id: str, *texts: str, **more: Any) -> Document:
    parts = (Part("Heading", "\n\n".join(texts)),)
    digest = more.pop("digest", b"0123456789abcdef")
    chunks = tuple(Chunk(0, text) for text in texts)
    return Document(id, more.pop("datasource", "docs"), f"Title of {id}", digest, parts, chunks, **more)


def asking(text: str = "", **more: Any) -> Question:
    return Question(query_terms(text) if text else (), **more)


def anybody(tenant: str, user: str | None = "ann", *roles: Role) -> Access:
    return Access(tenant, user, frozenset(roles or ("USER",)))


async def ids(store: KnowledgeStore, access: Access, question: Question) -> list[str]:
    return [passage.chunk_id for passage in await store.search(access, question)]


async def embed_all(store: KnowledgeStore, model: EmbeddingModel, tenant: str, rows: dict[str, Sequence[Any]]) -> None:
    for found in await store.unembedded(model, tenant):
        assert await store.embed(found, model, np.array(rows[found.document_id], "f4"))


# Who reads which of: public of bob, private of bob, shared of bob with ann, private of ann
READERS: list[tuple[str | None, Role, set[str]]] = [
    (None, "USER", {"public"}),
    ("ann", "USER", {"public", "shared", "anns"}),
    ("bob", "USER", {"public", "private", "shared"}),
    ("cid", "USER", {"public"}),
    ("Ann", "USER", {"public"}),
    ("cid", "ADMIN", {"public"}),
    ("ann", "ADMIN", {"public", "shared", "anns"}),
    ("cid", "SUPER_ADMIN", {"public", "private", "shared", "anns"}),
    (None, "SUPER_ADMIN", {"public", "private", "shared", "anns"}),
]


class KnowledgeContract:
    async def test_a_chunk_is_found_by_its_words_with_the_part_around_it(self, knowledge: KnowledgeStore) -> None:
        tenant = a_tenant()
        await knowledge.put(tenant, a_document("faq", "Warranty lasts two years.", "Delivery takes three days."))
        found = await knowledge.search(anybody(tenant), asking("how long does the warranty last"))
        assert found[0].chunk_id == "faq#chunk_0"
        assert found[0].content == "Warranty lasts two years."
        assert found[0].parent == "Warranty lasts two years.\n\nDelivery takes three days."
        assert (found[0].parent_chunk_id, found[0].heading) == ("faq#part_0", "Heading")
        assert (found[0].title, found[0].datasource, found[0].similarity) == ("Title of faq", "docs", None)

    async def test_most_terms_come_first(self, knowledge: KnowledgeStore) -> None:
        tenant = a_tenant()
        await knowledge.put(tenant, a_document("a", "red shoes", "red leather shoes", "blue hats"))
        assert await ids(knowledge, anybody(tenant), asking("red leather shoes")) == ["a#chunk_1", "a#chunk_0"]
        assert await ids(knowledge, anybody(tenant), asking("red leather shoes", k=1)) == ["a#chunk_1"]

    @pytest.mark.parametrize("text", ["bảo hành hai năm", "花生過敏", "gwarancja na dwa lata"])
    async def test_words_of_every_language_are_found(self, knowledge: KnowledgeStore, text: str) -> None:
        tenant = a_tenant()
        await knowledge.put(tenant, a_document("a", text, "something else"))
        assert await ids(knowledge, anybody(tenant), asking(text)) == ["a#chunk_0"]

    async def test_the_nearest_vectors_are_found_and_merged_with_the_words(self, knowledge: KnowledgeStore) -> None:
        tenant, model = a_tenant(), a_model()
        await knowledge.put(tenant, a_document("a", "red shoes", "blue hats", "green scarves"))
        await embed_all(knowledge, model, tenant, {"a": [towards(1), towards(0, 1), towards(1, 1)]})
        question = asking("blue hats", model=model, vector=np.array(towards(1), "f4"), k=2)
        found = await knowledge.search(anybody(tenant), question)
        assert [(one.chunk, one.matched) for one in found] == [(1, 2), (0, 0), (2, 0)]
        assert [one.similarity for one in found] == [None, pytest.approx(1), pytest.approx(0.7071, abs=1e-3)]

    @pytest.mark.parametrize(("user", "role", "expected"), READERS, ids=[f"{user}-{role}" for user, role, _ in READERS])
    async def test_everybody_finds_what_they_may_read_and_nothing_else(
        self, knowledge: KnowledgeStore, user: str | None, role: Role, expected: set[str]
    ) -> None:
        tenant, model = a_tenant(), a_model()
        for document in (
            a_document("public", "secret recipe", access="public", owner="bob"),
            a_document("private", "secret recipe", access="private", owner="bob", readers=("ann",)),
            a_document("shared", "secret recipe", access="shared", owner="bob", readers=("ann", "dan", "ann")),
            a_document("anns", "secret recipe", access="private", owner="ann"),
        ):
            await knowledge.put(tenant, document)
        await embed_all(
            knowledge, model, tenant, {name: [towards(1)] for name in ("public", "private", "shared", "anns")}
        )
        access, vector = anybody(tenant, user, role), np.array(towards(1), "f4")
        for question in (asking("secret recipe"), asking(model=model, vector=vector)):
            found = await knowledge.search(access, question)
            assert {one.document_id for one in found} == expected
        # The filter is part of the query: what may not be read takes no place among the k.
        assert len(await knowledge.search(access, asking("secret recipe", k=len(expected)))) == len(expected)
        assert len(await knowledge.search(access, asking(model=model, vector=vector, k=1))) == 1
        assert await ids(knowledge, anybody(tenant + "x", user, role), asking("secret recipe")) == []

    async def test_a_search_keeps_to_the_datasources_named(self, knowledge: KnowledgeStore) -> None:
        tenant = a_tenant()
        for name in ("d1", "d2", "D1"):
            await knowledge.put(tenant, a_document(name, "red shoes", datasource=name))
        assert await ids(knowledge, anybody(tenant), asking("shoes", datasources=["d1"])) == ["d1#chunk_0"]
        assert await ids(knowledge, anybody(tenant), asking("shoes", datasources=[])) == []
        assert len(await ids(knowledge, anybody(tenant), asking("shoes"))) == 3

    async def test_putting_again_replaces_the_document_and_its_vectors(self, knowledge: KnowledgeStore) -> None:
        tenant, model = a_tenant(), a_model()
        first = await knowledge.put(tenant, a_document("a", "red shoes", access="shared", readers=("ann",)))
        (waiting,) = await knowledge.unembedded(model, tenant)
        assert waiting.chunks == ("red shoes",)
        second = await knowledge.put(tenant, a_document("a", "blue hats", access="private", owner="bob"))
        assert second.version > first.version
        assert await knowledge.embed(waiting, model, [towards(1)]) is False
        assert await ids(knowledge, anybody(tenant), asking("shoes hats")) == []
        assert await ids(knowledge, anybody(tenant, "bob"), asking("shoes hats")) == ["a#chunk_0"]
        assert [one.version for one in await knowledge.unembedded(model, tenant)] == [second.version]
        assert [one.access for one in await knowledge.documents(tenant)] == ["private"]

    async def test_vectors_of_another_model_leave_the_document_waiting(self, knowledge: KnowledgeStore) -> None:
        tenant, old, new = a_tenant(), a_model(), a_model(4)
        await knowledge.put(tenant, a_document("a", "red shoes"))
        await embed_all(knowledge, old, tenant, {"a": [towards(1)]})
        assert list(await knowledge.unembedded(old, tenant)) == []
        (waiting,) = await knowledge.unembedded(new, tenant)
        with pytest.raises(VectorMismatch):
            await knowledge.embed(waiting, new, [towards(1)])
        assert await knowledge.embed(waiting, new, [[0.0, 1, 0, 0]])
        question = asking(model=old, vector=np.array(towards(1), "f4"))
        assert await ids(knowledge, anybody(tenant), question) == ["a#chunk_0"]
        with pytest.raises(VectorMismatch):
            await knowledge.search(anybody(tenant), asking(model=old, vector=np.ones(SIZE + 1, "f4")))

    async def test_a_removed_document_is_found_no_more(self, knowledge: KnowledgeStore) -> None:
        tenant, model = a_tenant(), a_model()
        first = await knowledge.put(tenant, a_document("a", "red shoes"))
        await embed_all(knowledge, model, tenant, {"a": [towards(1)]})
        assert await knowledge.remove(tenant, "A") is False
        assert await knowledge.remove(tenant, "a") is True
        assert await knowledge.remove(tenant, "a") is False
        question = asking("red shoes", model=model, vector=np.array(towards(1), "f4"))
        assert await ids(knowledge, anybody(tenant), question) == []
        assert list(await knowledge.documents(tenant)) == []
        assert (await knowledge.put(tenant, a_document("a", "red shoes"))).version >= first.version

    async def test_erasing_a_user_removes_their_documents_and_their_name(self, knowledge: KnowledgeStore) -> None:
        tenant = a_tenant()
        await knowledge.put(tenant, a_document("diary", "red shoes", access="private", owner="ann"))
        await knowledge.put(tenant, a_document("notes", "red shoes", access="shared", owner="ann", readers=("bob",)))
        await knowledge.put(tenant, a_document("manual", "red shoes", access="public", owner="ann"))
        await knowledge.put(tenant, a_document("bobs", "red shoes", access="shared", owner="bob", readers=("ann",)))
        assert (await knowledge.erase(Scope(tenant, "ann", "c1"))).found == 0
        erased = await knowledge.erase(Scope(tenant, "ann"))
        assert (erased.found, erased.removed, erased.failed) == (4, 4, 0)
        assert (await knowledge.erase(Scope(tenant, "ann"))).found == 0
        left = {(one.document_id, one.owner) for one in await knowledge.documents(tenant)}
        assert left == {("manual", None), ("bobs", "bob")}
        assert await ids(knowledge, anybody(tenant), asking("shoes")) == ["manual#chunk_0"]

    async def test_any_text_comes_back_as_it_was(self, knowledge: KnowledgeStore) -> None:
        tenant, text = a_tenant(), "shoes \ud800 and \0 and 😀"
        await knowledge.put(tenant, a_document("a", text))
        assert [one.content for one in await knowledge.search(anybody(tenant), asking("shoes"))] == [text]

    async def test_nothing_is_found_where_nothing_is(self, knowledge: KnowledgeStore) -> None:
        tenant = a_tenant()
        assert await ids(knowledge, anybody(tenant), asking("shoes")) == []
        await knowledge.put(tenant, a_document("a", "red shoes"))
        assert await ids(knowledge, anybody(tenant), asking()) == []
        unknown = asking(model=a_model(), vector=np.array(towards(1), "f4"))
        assert await ids(knowledge, anybody(tenant), unknown) == []
