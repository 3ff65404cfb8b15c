"""The contract of the `KnowledgeStore` port: subclass, and give it a fixture `knowledge` that yields a store."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from threadkeep.errors import VectorMismatch
from threadkeep.ports.knowledge import (
    NO_DIGEST,
    Access,
    Chunk,
    ChunkKey,
    Document,
    KnowledgeStore,
    Part,
    Passage,
    Question,
    Readership,
    Role,
)
from threadkeep.ports.models import EmbeddingModel
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
    return [passage.chunk_id for passage in await found(store, access, question)]


async def found(store: KnowledgeStore, access: Access, question: Question) -> tuple[Passage, ...]:
    return (await store.search(access, question)).passages


async def embed_all(store: KnowledgeStore, model: EmbeddingModel, tenant: str, rows: dict[str, Sequence[Any]]) -> None:
    for one in await store.unembedded(model, tenant):
        assert await store.embed(one, model, np.array(rows[one.document_id], "f4"))


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
        hits = await found(knowledge, anybody(tenant), asking("how long does the warranty last"))
        assert hits[0].chunk_id == "faq#chunk_0"
        assert hits[0].content == "Warranty lasts two years."
        assert hits[0].parent == "Warranty lasts two years.\n\nDelivery takes three days."
        assert (hits[0].parent_chunk_id, hits[0].heading) == ("faq#part_0", "Heading")
        assert (hits[0].title, hits[0].datasource, hits[0].similarity) == ("Title of faq", "docs", None)

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
        hits = await found(knowledge, anybody(tenant), question)
        assert [(one.chunk, one.matched) for one in hits] == [(1, 2), (0, 0), (2, 0)]
        assert [one.similarity for one in hits] == [None, pytest.approx(1), pytest.approx(0.7071, abs=1e-3)]

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
            hits = await found(knowledge, access, question)
            assert {one.document_id for one in hits} == expected
        # The filter is part of the query: unreadable chunks do not count among the k.
        assert len(await found(knowledge, access, asking("secret recipe", k=len(expected)))) == len(expected)
        assert len(await found(knowledge, access, asking(model=model, vector=vector, k=1))) == 1
        assert await ids(knowledge, anybody(tenant + "x", user, role), asking("secret recipe")) == []

    @pytest.mark.parametrize(
        ("user", "acting", "expected"),
        [
            ("ann", "bob", {"public", "shared"}),
            ("bob", "ann", {"public", "shared"}),
            ("ann", "dan", {"public", "shared"}),
            ("ann", "cid", {"public"}),
            ("cid", "ann", {"public"}),
            (None, "ann", {"public"}),
        ],
    )
    async def test_who_acts_for_another_finds_what_both_may_read(
        self, knowledge: KnowledgeStore, user: str | None, acting: str, expected: set[str]
    ) -> None:
        tenant, model = a_tenant(), a_model()
        for document in (
            a_document("public", "secret recipe", access="public", owner="bob"),
            a_document("private", "secret recipe", access="private", owner="bob"),
            a_document("shared", "secret recipe", access="shared", owner="bob", readers=("ann", "dan")),
            a_document("anns", "secret recipe", access="private", owner="ann"),
        ):
            info = await knowledge.put(tenant, document)
            await embed_all(knowledge, model, tenant, {info.document_id: [towards(1)]})
        access = Access(tenant, user, acting=acting)
        vector = np.array(towards(1), "f4")
        for question in (asking("secret recipe"), asking(model=model, vector=vector)):
            found = await knowledge.search(access, question)
            assert {one.document_id for one in found.passages} == expected
            assert found.readable.documents == len(expected)
        keys = [ChunkKey(one.document_id, one.version, 0) for one in await knowledge.documents(tenant)]
        assert {one.document_id for one in (await knowledge.read(access, keys)).passages} == expected
        assert access.key != Access(tenant, user).key

    @pytest.mark.parametrize(("user", "role", "expected"), READERS, ids=[f"{user}-{role}" for user, role, _ in READERS])
    async def test_a_chunk_read_by_its_key_is_read_by_who_may_and_counted_for_no_other(
        self, knowledge: KnowledgeStore, user: str | None, role: Role, expected: set[str]
    ) -> None:
        tenant, access = a_tenant(), {"public": "public", "private": "private", "shared": "shared", "anns": "private"}
        keys: list[ChunkKey] = []
        for name, level in access.items():
            owner, readers = ("ann" if name == "anns" else "bob"), ("ann",) if level == "shared" else ()
            document = a_document(name, "secret recipe", access=level, owner=owner, readers=readers)
            keys.append(ChunkKey(name, (await knowledge.put(tenant, document)).version, 0))
        asker = anybody(tenant, user, role)
        wrong = [ChunkKey("public", 1, 0), ChunkKey("public", keys[0].version, 7), ChunkKey("none", 1, 0)]
        read = await knowledge.read(asker, [*keys, *wrong])
        assert {one.document_id for one in read.passages} == expected
        assert [one.key for one in read.passages] == [key for key in keys if key.document_id in expected]
        assert (read.readable.documents, read.readable.chunks) == (len(expected), len(expected))
        searched = await knowledge.search(asker, asking("secret recipe pie"))
        assert (searched.readable, set(searched.holding.values())) == (read.readable, {len(expected)})
        assert list((await knowledge.read(asker, keys, datasources=["others"])).passages) == []
        assert list((await knowledge.read(anybody(tenant + "x", user, role), keys)).passages) == []
        assert list((await knowledge.read(asker, [])).passages) == []

    async def test_what_can_be_read_counts_change_whenever_any_of_it_does(self, knowledge: KnowledgeStore) -> None:
        tenant = a_tenant()
        seen = [(await knowledge.read(anybody(tenant), [])).readable]
        for change in (
            a_document("a", "red shoes"),
            a_document("b", "red shoes"),
            a_document("a", "red hats"),
            a_document("b", "red shoes", access="private", owner="bob"),
        ):
            await knowledge.put(tenant, change)
            seen.append((await knowledge.read(anybody(tenant), [])).readable)
        await knowledge.put(tenant, a_document("c", "red shoes", access="private", owner="bob"))
        assert (await knowledge.read(anybody(tenant), [])).readable == seen[-1]  # it is not theirs to know of
        await knowledge.remove(tenant, "a")
        seen.append((await knowledge.read(anybody(tenant), [])).readable)
        assert all(one != other for one, other in pairwise(seen))

    async def test_who_may_read_is_changed_without_the_text(self, knowledge: KnowledgeStore) -> None:
        tenant, cid = a_tenant(), "cid"
        await knowledge.put(tenant, a_document("a", "secret recipe"))
        await knowledge.put(tenant, a_document("b", "secret recipe"))
        steps: list[tuple[Readership, set[str]]] = [
            (Readership("private", "bob"), {"bob"}),
            (Readership("shared", "bob", ("ann", "ann")), {"ann", "bob"}),
            (Readership("shared", "bob", (cid,)), {"bob", cid}),
            (Readership("public"), {"ann", "bob", cid}),
        ]
        for readership, expected in steps:
            (before, _) = await knowledge.documents(tenant)
            assert await knowledge.grant(tenant, "a", readership)
            assert not await knowledge.grant(tenant, "a", readership), "they may already"
            (after, other) = await knowledge.documents(tenant)
            assert after.version > before.version
            assert (after.access, after.owner, after.digest) == (readership.access, readership.owner, NO_DIGEST)
            assert other.access == "public"
            for user in ("ann", "bob", cid):
                read = await ids(knowledge, anybody(tenant, user), asking("recipe"))
                assert ("a#chunk_0" in read) == (user in expected), (user, readership)
        assert not await knowledge.grant(tenant, "none", Readership())
        assert not await knowledge.grant(a_tenant(), "a", Readership("private", "bob"))

    async def test_a_rare_term_outweighs_common_ones(self, knowledge: KnowledgeStore) -> None:
        tenant = a_tenant()
        texts = [f"our red leather shoes number {number}" for number in range(30)]
        await knowledge.put(tenant, a_document("a", *texts, "a violin"))
        found = await knowledge.search(anybody(tenant), asking("red leather violin", k=3))
        assert [one.chunk for one in found.passages] == [30, 0, 1]
        assert sorted(found.holding.values()) == [1, 30, 30]

    async def test_names_that_hold_what_a_query_is_made_of_are_names(self, knowledge: KnowledgeStore) -> None:
        tenant, odd = a_tenant(), "x' OR '1'='1"
        await knowledge.put(tenant, a_document("hidden", "red shoes", access="private", owner="bob"))
        await knowledge.put(tenant, a_document(odd, "red shoes", access="private", owner=odd, datasource='d"]--'))
        for user in (odd, "%", "_", "bob' --", '" OR 1=1', "bob\\", "bob "):
            expected = [f"{odd}#chunk_0"] if user == odd else []
            assert await ids(knowledge, anybody(tenant, user), asking("shoes")) == expected
        hers = asking("shoes", datasources=['d"]--'])
        assert await ids(knowledge, anybody(tenant, odd), hers) == [f"{odd}#chunk_0"]
        for source in ("d", "%", "' OR 1=1 --", "docs') OR ('1'='1"):
            assert await ids(knowledge, anybody(tenant, odd), asking("shoes", datasources=[source])) == []

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

    async def test_one_models_vectors_replace_anothers_when_they_are_complete(self, knowledge: KnowledgeStore) -> None:
        tenant, old, new = a_tenant(), a_model(), a_model(4)
        for name in ("a", "b", "c"):
            await knowledge.put(tenant, a_document(name, "red shoes"))
        await embed_all(knowledge, old, tenant, {name: [towards(1)] for name in "abc"})
        assert (await knowledge.waiting(old, tenant), await knowledge.waiting(new, tenant)) == (0, 3)
        (first, second, _) = await knowledge.unembedded(new, tenant)
        assert await knowledge.embed(first, new, [[0.0, 1, 0, 0]])
        assert await knowledge.waiting(new, tenant) == 2
        behind = await knowledge.unembedded(new, tenant, after=(tenant, second.document_id))
        assert [one.document_id for one in behind] == ["c"]
        assert await knowledge.models(tenant) == {old: 3, new: 1}
        assert await knowledge.models(tenant + "x") == {}
        assert await knowledge.forget_model(old) == 3
        assert old not in await knowledge.models()
        assert await knowledge.forget_model(old) == 0
        assert await knowledge.forget_model(a_model()) == 0

    async def test_one_document_put_by_many_at_once_is_one_document(self, knowledge: KnowledgeStore) -> None:
        tenant, model = a_tenant(), a_model()
        await asyncio.gather(*(knowledge.put(tenant, a_document("a", f"shoes {n}", f"hats {n}")) for n in range(8)))
        (info,) = await knowledge.documents(tenant)
        assert info.chunks == 2
        assert len(await ids(knowledge, anybody(tenant), asking("shoes hats"))) == 2
        (waiting,) = await knowledge.unembedded(model, tenant)
        rows = [towards(1), towards(0, 1)]
        assert all(await asyncio.gather(*(knowledge.embed(waiting, model, rows) for _ in range(4))))
        assert await knowledge.waiting(model, tenant) == 0

    async def test_documents_may_go_while_others_search(self, knowledge: KnowledgeStore) -> None:
        tenant = a_tenant()

        async def come_and_go() -> None:
            for _ in range(15):
                await knowledge.put(tenant, a_document("a", "red shoes", "red hats"))
                await knowledge.remove(tenant, "a")

        async def look() -> list[int]:
            return [len(await ids(knowledge, anybody(tenant), asking("red shoes"))) for _ in range(25)]

        _, *seen = await asyncio.gather(come_and_go(), look(), look())
        assert {count for some in seen for count in some} <= {0, 1, 2}

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
        assert [one.content for one in await found(knowledge, anybody(tenant), asking("shoes"))] == [text]

    async def test_nothing_is_found_where_nothing_is(self, knowledge: KnowledgeStore) -> None:
        tenant = a_tenant()
        assert await ids(knowledge, anybody(tenant), asking("shoes")) == []
        await knowledge.put(tenant, a_document("a", "red shoes"))
        assert await ids(knowledge, anybody(tenant), asking()) == []
        unknown = asking(model=a_model(), vector=np.array(towards(1), "f4"))
        assert await ids(knowledge, anybody(tenant), unknown) == []
