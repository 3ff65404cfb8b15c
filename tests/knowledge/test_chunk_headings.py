"""Small sections share a chunk, and none of their headings is lost: not in the index, nor in what is shown."""

from __future__ import annotations

from threadkeep.knowledge.chunking import LARGEST, cut
from threadkeep.knowledge.reading import Block
from threadkeep.recall.normalise import indexed_document_terms, query_terms

SHOP = [
    Block("Shop", 1),
    Block("Refunds", 2),
    Block("Within 14 days."),
    Block("Warranty", 2),
    Block("Two years."),
    Block("Of batteries", 3),
    Block("One year."),
]


def words_in(text: str) -> int:
    return len(text.split())


def test_each_section_of_a_chunk_stands_under_its_own_heading() -> None:
    (part,), (chunk,) = cut(SHOP, words_in)
    said = "Within 14 days.\n\n## Warranty\n\nTwo years.\n\n### Of batteries\n\nOne year."
    assert (part.heading, part.content) == ("Shop › Refunds", said)
    assert chunk.content == f"Shop › Refunds\n\n{said}"


def test_a_chunk_is_found_by_every_heading_in_it() -> None:
    _, (chunk,) = cut(SHOP, words_in)
    indexed = set(indexed_document_terms(chunk.content).split())
    for block in SHOP:
        assert {*query_terms(block.text)} <= indexed, block.text


def test_a_part_of_several_chunks_tells_where_each_section_begins() -> None:
    blocks = [Block("Fans", 3), Block("rpm " * 250), Block("Pumps", 3), Block("litres " * 250)]
    (part,), chunks = cut(blocks, words_in)
    assert [chunk.content.split("\n")[0] for chunk in chunks] == ["Fans", "Pumps"]
    assert part.content.split("\n\n")[1] == "### Pumps"


def test_headings_of_several_levels_at_once_come_in_their_order() -> None:
    blocks = [Block("A", 2), Block("a"), Block("B", 2), Block("C", 3), Block("c"), Block("B", 2), Block("b")]
    (part,), _ = cut(blocks, words_in)
    assert part.content == "a\n\n## B\n### C\n\nc\n\n## B\n\nb"


def test_a_heading_with_nothing_under_it_is_something_said() -> None:
    blocks = [Block("Shop", 1), Block("We sell no cigarettes", 2), Block("Hours", 2), Block("Nine."), Block("End", 2)]
    (part,), (chunk,) = cut(blocks, words_in)
    assert (part.heading, part.content) == ("Shop › We sell no cigarettes", "## Hours\n\nNine.\n\n## End")
    assert chunk.content == f"{part.heading}\n\n{part.content}"
    parts, chunks = cut([Block("Closed on Mondays", 2), Block("Prices", 2), Block("word " * 511)], words_in)
    assert [part.content.split()[0] for part in parts] == ["Closed", "word"]
    assert chunks[0].content == "Closed on Mondays"


def test_headings_count_among_the_tokens_of_a_chunk() -> None:
    blocks: list[Block] = []
    for section in range(60):
        blocks += [Block(f"Section {section} " + "heading " * 12, 3), Block("text " * 9)]
    _, chunks = cut(blocks, words_in)
    assert max(words_in(chunk.content) for chunk in chunks) <= LARGEST


def test_they_count_too_where_a_small_last_chunk_goes_into_the_one_before() -> None:
    above = Block("Warranty of " + "parts " * 60, 2)
    blocks = [above, Block("text " * 400), Block("Of " + "batteries " * 50, 2), Block("text " * 60)]
    _, chunks = cut(blocks, words_in)
    assert max(words_in(chunk.content) for chunk in chunks) <= LARGEST
