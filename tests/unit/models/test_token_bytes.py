"""Token numbers packed small come back as they were."""

import json
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from threadkeep.errors import InvalidInput, StoreCorrupt
from threadkeep.models.tokens import pack_ids, tokenize_text, unpack_ids


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**40)) | st.lists(st.integers(0, 255)))
def test_every_array_of_numbers_comes_back(ids: list[int]) -> None:
    assert unpack_ids(pack_ids(ids)) == ids


def test_a_long_array_comes_back_and_is_deflated() -> None:
    ids = list(range(300)) * 200
    assert unpack_ids(pack_ids(ids)) == ids
    assert len(pack_ids(ids)) < len(ids) / 10


@pytest.mark.parametrize(
    "text",
    ["I am allergic to peanuts, please remember that.", "Tôi bị dị ứng đậu phộng", "Jestem uczulony", "我對花生過敏"],
)
def test_packed_is_less_than_half_of_json(text: str) -> None:
    ids = tokenize_text(text)
    assert len(pack_ids(ids)) < len(json.dumps(ids)) / 2


def test_a_negative_number_is_refused() -> None:
    with pytest.raises(InvalidInput, match="ids"):
        pack_ids([1, -1])


@pytest.mark.parametrize("damaged", [b"", b"\2abc", b"\1abc", b"\0\x80", b"\1" + zlib.compress(b"abc" * 50)[:-5]])
def test_damaged_bytes_are_refused(damaged: bytes) -> None:
    with pytest.raises(StoreCorrupt):
        unpack_ids(damaged)
