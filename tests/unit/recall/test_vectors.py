"""Vectors as bytes and the exact search among them."""

from __future__ import annotations

import numpy as np
import pytest

from threadkeep.errors import VectorMismatch
from threadkeep.ports.models import EmbeddingModel
from threadkeep.recall.vectors import decode, encode, nearest, size_in_bytes

MODEL = EmbeddingModel("test:256", 256)


def unit(count: int, size: int = 256, seed: int = 7) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((count, size)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_a_vector_comes_back_as_it_was_to_the_fifth_digit() -> None:
    rows = unit(50)
    blobs = encode(rows, MODEL)
    assert {len(blob) for blob in blobs} == {size_in_bytes(MODEL)} == {516}
    packed = decode(blobs, MODEL)
    assert np.abs(packed.steps * packed.scales[:, None] - rows).max() < 1e-5


def test_a_vector_of_zeros_stays_so_and_resembles_nothing() -> None:
    packed = decode(encode(np.zeros((1, 256)), MODEL), MODEL)
    assert nearest(packed, unit(1)[0], 5) == [(0, 0.0)]


def test_the_nearest_are_those_that_comparing_all_floats_finds() -> None:
    rows, questions = unit(10_000), unit(20, seed=8)
    packed = decode(encode(rows, MODEL), MODEL)
    for question in questions:
        exact = np.argsort(-(rows @ question), kind="stable")[:10]
        assert [row for row, _ in nearest(packed, question, 10)] == exact.tolist()


def test_equal_vectors_keep_their_order_whatever_k_cuts() -> None:
    packed = decode(encode(np.repeat(unit(1), 6, axis=0), MODEL), MODEL)
    question = unit(1)[0]
    assert [row for row, _ in nearest(packed, question, 4)] == [0, 1, 2, 3]
    assert [row for row, _ in nearest(packed, question, 9)] == [0, 1, 2, 3, 4, 5]


def test_nothing_is_nearest_where_there_is_nothing() -> None:
    assert nearest(decode([], MODEL), unit(1)[0], 3) == []
    assert encode(np.zeros((0, 256)), MODEL) == []


def test_parts_may_be_put_together() -> None:
    one, other = (decode(encode(rows, MODEL), MODEL) for rows in (unit(3), unit(2, seed=9)))
    assert len(one + other) == 5
    assert nearest(one + other, unit(2, seed=9)[1], 1)[0][0] == 4


@pytest.mark.parametrize("vector", [np.ones(255), np.ones((2, 257)), np.ones((1, 1, 256)), [], [np.nan] * 256])
def test_a_vector_of_another_size_or_with_no_numbers_is_refused(vector: object) -> None:
    with pytest.raises(VectorMismatch):
        encode(vector, MODEL)


def test_bytes_of_another_model_are_refused() -> None:
    with pytest.raises(VectorMismatch, match="test:256"):
        decode(encode(np.ones((1, 8)), EmbeddingModel("other", 8)), MODEL)
