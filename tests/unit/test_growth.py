"""Work that grows faster than its text is told from work that does not."""

import pytest

from tests.unit.growth import assert_growth

SHORT, LONG = "a" * 1_000, "a" * 4_000


def linear(text: str) -> int:
    return sum(1 for _ in range(len(text) * 300))


def quadratic(text: str) -> int:
    return sum(1 for _ in range(len(text) ** 2 // 2))


def test_work_that_grows_as_its_text_passes() -> None:
    assert assert_growth(linear, SHORT, LONG, at_most=8) is None


def test_work_that_grows_with_the_square_of_its_text_does_not() -> None:
    with pytest.raises(AssertionError, match="4 times the text took"):
        assert_growth(quadratic, SHORT, LONG, at_most=8)
