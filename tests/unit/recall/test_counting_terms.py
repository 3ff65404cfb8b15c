"""How often a term stands among a message's own, as SQLite keeps them: in one line, each behind its owner's number."""

import pytest

from threadkeep.index.terms import count_of


@pytest.mark.parametrize(
    ("terms", "own", "count"),
    [
        ("5:cat", "5:cat", 1),
        ("5:cat 5:dog 5:cat", "5:cat", 2),
        ("5:cat 5:cat 5:cat", "5:cat", 3),
        ("5:cats 5:cat_food", "5:cat", 0),
        ("5:花 5:花_生 5:花生 5:生 5:花", "5:花", 2),
        ("5:花生 5:花 5:花 5:生", "5:花", 2),
        ("5:5:30 5:30", "5:30", 1),
        ("", "5:cat", 0),
    ],
)
def test_a_term_is_counted_where_it_stands_by_itself(terms: str, own: str, count: int) -> None:
    assert count_of(own, terms) == count == terms.split().count(own)
