"""The contract of the `VectorIndex` port: subclass, and give it a fixture `vectors`, a `VectorsUnderTest`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import uuid_utils

from threadkeep.errors import VectorMismatch
from threadkeep.ports.index import MessageVectors, VectorIndex
from threadkeep.ports.models import EmbeddingModel
from threadkeep.scope import Scope
from threadkeep.testing.drafts import new_scope

SIZE = 8


@dataclass(frozen=True, slots=True)
class VectorsUnderTest:
    """`keep` puts messages with these ids into the archive, where the index stands beside one."""

    index: VectorIndex
    keep: Callable[[Scope, Sequence[str]], Awaitable[None]]
    knows_the_archive: bool = True


def towards(*axes: float) -> list[float]:
    """A vector of length one along these axes."""
    row = np.zeros(SIZE, np.float32)
    row[: len(axes)] = axes
    return (row / np.linalg.norm(row)).tolist()


def a_model(size: int = SIZE) -> EmbeddingModel:
    """One that no other test uses."""
    return EmbeddingModel(f"test:{uuid_utils.uuid7()}", size)


async def put(vectors: VectorsUnderTest, model: EmbeddingModel, scope: Scope, **rows: Any) -> int:
    """Messages by id, each with one vector or with a list of them."""
    await vectors.keep(scope, list(rows))
    return await vectors.index.upsert(model, [MessageVectors(scope, id_, row) for id_, row in rows.items()])


async def ids(vectors: VectorsUnderTest, model: EmbeddingModel, scope: Scope, *axes: float, k: int = 10) -> list[str]:
    return [hit.message_id for hit in await vectors.index.search(scope, model, np.array(towards(*axes), "f4"), k)]


class VectorsContract:
    async def test_the_nearest_message_comes_first_with_its_cosine(self, vectors: VectorsUnderTest) -> None:
        model, scope = a_model(), new_scope()
        assert await put(vectors, model, scope, a=towards(1), b=towards(0, 1), c=towards(1, 1)) == 3
        hits = await vectors.index.search(scope, model, np.array(towards(1, 0.1), "f4"), 2)
        assert [(hit.message_id, hit.conversation, hit.chunk) for hit in hits] == [("a", "c1", 0), ("c", "c1", 0)]
        assert hits[0].score == pytest.approx(0.99504, abs=1e-3)
        assert hits[1].score == pytest.approx(0.77396, abs=1e-3)

    async def test_upserting_again_replaces_and_doubles_nothing(self, vectors: VectorsUnderTest) -> None:
        model, scope = a_model(), new_scope()
        for row in (towards(1), towards(1), towards(0, 1)):
            await put(vectors, model, scope, a=row)
        assert await vectors.index.models(scope) == {model: 1}
        hits = await vectors.index.search(scope, model, np.array(towards(0, 1), "f4"), 10)
        assert [(hit.message_id, round(hit.score, 2)) for hit in hits] == [("a", 1.0)]

    async def test_a_long_message_is_found_once_by_its_nearest_chunk(self, vectors: VectorsUnderTest) -> None:
        model, scope = a_model(), new_scope()
        await put(vectors, model, scope, long=[towards(1), towards(0, 1), towards(0, 0, 1)], short=towards(1, 1, 1))
        hits = await vectors.index.search(scope, model, np.array(towards(0, 1), "f4"), 10)
        assert [(hit.message_id, hit.chunk) for hit in hits] == [("long", 1), ("short", 0)]
        await put(vectors, model, scope, long=towards(1))
        hits = await vectors.index.search(scope, model, np.array(towards(0, 1), "f4"), 10)
        assert [(hit.message_id, hit.chunk) for hit in hits] == [("short", 0), ("long", 0)]

    async def test_a_user_finds_all_their_conversations_or_the_one_named(self, vectors: VectorsUnderTest) -> None:
        model, scope = a_model(), new_scope()
        other = scope.with_conversation("c2")
        await put(vectors, model, scope, a=towards(1))
        await put(vectors, model, other, a=towards(1, 0.5), b=towards(0, 1))
        assert await ids(vectors, model, scope.whole_user, 1) == ["a", "a", "b"]
        assert await ids(vectors, model, scope, 1) == ["a"]
        assert await ids(vectors, model, other, 0, 1) == ["b", "a"]
        assert await ids(vectors, model, scope.with_conversation("none"), 1) == []

    @pytest.mark.parametrize("change", ["tenant", "user"])
    async def test_ids_that_look_alike_are_two_scopes(self, vectors: VectorsUnderTest, change: str) -> None:
        model, scope = a_model(), new_scope()
        await put(vectors, model, scope, a=towards(1))
        for other in ("upper", "accent", "space"):
            given: str = getattr(scope, change)
            changed = {"upper": given.upper(), "accent": given + "é", "space": given + " "}[other]
            assert await ids(vectors, model, replace(scope, **{change: changed}), 1) == []

    async def test_vectors_of_two_models_are_never_compared(self, vectors: VectorsUnderTest) -> None:
        one, other, scope = a_model(), a_model(4), new_scope()
        await put(vectors, one, scope, a=towards(1), b=towards(0, 1))
        await put(vectors, other, scope, a=[1.0, 0, 0, 0])
        assert await ids(vectors, one, scope, 0, 1) == ["b", "a"]
        assert await vectors.index.models(scope) == {one: 2, other: 1}
        assert await vectors.index.forget_model(one) == 2
        assert await ids(vectors, one, scope, 1) == []
        assert await vectors.index.models(scope) == {other: 1}

    async def test_a_vector_of_another_size_is_refused_and_nothing_is_stored(self, vectors: VectorsUnderTest) -> None:
        model, scope = a_model(), new_scope()
        await vectors.keep(scope, ["a", "b"])
        rows = [MessageVectors(scope, "a", towards(1)), MessageVectors(scope, "b", [1.0, 0.0])]
        with pytest.raises(VectorMismatch):
            await vectors.index.upsert(model, rows)
        assert await vectors.index.models(scope) == {}
        with pytest.raises(VectorMismatch):
            await vectors.index.search(scope, model, np.ones(3, "f4"), 5)

    async def test_a_deleted_message_loses_all_its_chunks(self, vectors: VectorsUnderTest) -> None:
        model, scope = a_model(), new_scope()
        await put(vectors, model, scope, a=[towards(1), towards(0, 1)], ab=towards(1))
        assert await vectors.index.delete(scope, "a") == 2
        assert await vectors.index.delete(scope, "a") == 0
        assert await ids(vectors, model, scope, 0, 1) == ["ab"]

    async def test_erasing_a_conversation_leaves_the_others(self, vectors: VectorsUnderTest) -> None:
        model, scope = a_model(), new_scope()
        await put(vectors, model, scope, a=towards(1), b=towards(1))
        await put(vectors, model, scope.with_conversation("c2"), c=towards(1))
        erased = await vectors.index.erase(scope.at(7))
        assert (erased.found, erased.removed, erased.failed) == (2, 2, 0)
        assert await ids(vectors, model, scope.whole_user, 1) == ["c"]

    async def test_erasing_a_user_leaves_the_neighbours(self, vectors: VectorsUnderTest) -> None:
        model, scope, neighbour = a_model(), new_scope(), new_scope()
        for place in (scope, scope.with_conversation("c2"), neighbour):
            await put(vectors, model, place, a=towards(1))
        assert (await vectors.index.erase(scope.whole_user)).removed == 2
        assert (await vectors.index.erase(scope.whole_user)).removed == 0
        assert await ids(vectors, model, scope.whole_user, 1) == []
        assert await ids(vectors, model, neighbour.whole_user, 1) == ["a"]

    async def test_a_message_that_the_archive_lost_takes_no_vectors_or_can_be_deleted(
        self, vectors: VectorsUnderTest
    ) -> None:
        model, scope = a_model(), new_scope()
        await vectors.keep(scope, ["a"])
        rows = [MessageVectors(scope, id_, towards(1)) for id_ in ("a", "gone")]
        assert await vectors.index.upsert(model, rows) == (1 if vectors.knows_the_archive else 2)
        assert await vectors.index.delete(scope, "gone") == (0 if vectors.knows_the_archive else 1)
        assert await ids(vectors, model, scope, 1) == ["a"]

    async def test_a_vector_of_zeros_is_stored_and_resembles_nothing(self, vectors: VectorsUnderTest) -> None:
        model, scope = a_model(), new_scope()
        await put(vectors, model, scope, a=[0.0] * SIZE, b=towards(1, 1))
        hits = await vectors.index.search(scope, model, np.array(towards(1), "f4"), 10)
        assert [hit.message_id for hit in hits] == ["b", "a"]
        assert hits[1].score == pytest.approx(0, abs=1e-6)

    async def test_many_messages_rank_as_comparing_each_would(self, vectors: VectorsUnderTest) -> None:
        model, scope = a_model(64), new_scope()
        rows = np.random.default_rng(3).standard_normal((300, 64)).astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        await put(vectors, model, scope, **{f"m{number}": row for number, row in enumerate(rows)})
        found = await vectors.index.search(scope, model, rows[17], 10)
        exact = np.argsort(-(rows @ rows[17]), kind="stable")[:10]
        assert [hit.message_id for hit in found] == [f"m{number}" for number in exact]

    async def test_nothing_is_found_where_nothing_is(self, vectors: VectorsUnderTest) -> None:
        assert await ids(vectors, a_model(), new_scope(), 1) == []
        assert await vectors.index.upsert(a_model(), []) == 0
        assert await vectors.index.models(new_scope()) == {}
