"""Dates that a question names, in four languages."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from threadkeep.recall.question import Named, dates_in, nearness

NAMED = {
    "What did we eat on 19 August, 2023?": Named(2023, 8, 19),
    "Who came on May 3, 2023?": Named(2023, 5, 3),
    "the 2nd of March": Named(None, 3, 2),
    "What happened in June?": Named(None, 6, None),
    "mid-August 2023": Named(2023, 8, None),
    "in 2022": Named(2022, None, None),
    "Co robiliśmy 3 maja 2023 roku?": Named(2023, 5, 3),
    "w październiku 2021": Named(2021, 10, None),
    "ngày 3 tháng 5 năm 2023": Named(2023, 5, 3),
    "Tháng 12 chúng ta đi đâu?": Named(None, 12, None),
    "2023年5月3日我們去了哪裡": Named(2023, 5, 3),
    "5月": Named(None, 5, None),
    "2023-05-03": Named(2023, 5, 3),
    "03.05.2023": Named(2023, 5, 3),
}


@pytest.mark.parametrize("text", NAMED)
def test_a_date_is_read_in_every_language(text: str) -> None:
    assert dates_in(text) == [NAMED[text]]


@pytest.mark.parametrize(
    "text", ["", "may I ask?", "the march of the penguins", "13月", "call 2023 people", "room 5/3"]
)
def test_what_is_no_date_is_not_read_as_one(text: str) -> None:
    assert dates_in(text) == []


def test_two_dates_are_both_read() -> None:
    assert dates_in("between 3 May 2023 and 5 June 2023") == [Named(2023, 5, 3), Named(2023, 6, 5)]


def test_the_week_after_counts_half() -> None:
    date = [Named(2023, 2, 27)]
    moments = [datetime(2023, 2, 27, tzinfo=UTC), datetime(2023, 3, 6, tzinfo=UTC), datetime(2023, 3, 7, tzinfo=UTC)]
    assert [nearness(moment, date) for moment in moments] == [1.0, 0.5, 0.0]


def test_no_date_is_near_nothing() -> None:
    assert nearness(datetime(2023, 2, 27, tzinfo=UTC), []) == 0.0
