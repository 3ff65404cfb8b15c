"""What files say, read as their kind is written: Markdown, HTML and encodings as people and editors leave them."""

from __future__ import annotations

import pytest

from threadkeep.errors import UnreadableDocument
from threadkeep.knowledge.reading import READERS, Block


def blocks_of(kind: str, text: str) -> list[Block]:
    return list(READERS[kind](text.encode()).blocks)


def test_a_heading_may_be_underlined() -> None:
    text = READERS[".md"](b"Warranty\n========\n\nTwo years.\n\nRefunds\n---\n\n14 days.\n\n- one\n---\n| a |\n---\n")
    assert text.title == "Warranty"
    assert [block.text for block in text.blocks if block.level] == ["Warranty", "Refunds"]
    assert [block.level for block in text.blocks] == [1, 0, 2, 0, 0]


def test_what_stands_above_the_text_of_a_page_is_no_heading() -> None:
    text = READERS[".md"](b"---\ntitle: Hours\n---\n\nNine.\n\n---\n\nMore.\n")
    assert [block.level for block in text.blocks] == [0] * len(text.blocks)


def test_a_heading_may_be_set_in_by_three_spaces() -> None:
    assert blocks_of(".md", "   ## Fans\n\n    # code") == [Block("Fans", 2), Block("# code")]


@pytest.mark.parametrize("fence", ["````\n```\n# no\n```\n````", "~~~\n```\n# no\n~~~", "```sh\n# no\n~~~\n```"])
def test_code_ends_where_its_own_fence_does(fence: str) -> None:
    found = blocks_of(".md", f"# Yes\n\n{fence}\n\n## Also\n\ntext")
    assert [block.text for block in found if block.level] == ["Yes", "Also"]


def test_html_may_leave_out_the_tags_it_may_leave_out() -> None:
    page = "<!doctype html><html><head><meta charset=utf-8><title>Hours</title><h1>When</h1><p>Nine.<p>Ten."
    text = READERS[".html"](page.encode())
    assert (text.title, text.blocks) == ("Hours", (Block("When", 1), Block("Nine."), Block("Ten.")))


def test_a_page_has_one_title_whatever_its_pictures_are_called() -> None:
    page = "<html><head><title>Shop</title></head><body><svg><title>Logo</title></svg><p>Hello</p></body></html>"
    assert READERS[".html"](page.encode()).title == "Shop"


def test_what_stands_inside_a_line_does_not_end_it() -> None:
    page = (
        '<h2>Free <img src="x"> parking<br>for guests</h2><p>The <ins>new</ins> pri<del>zz</del>ce, <dfn>net</dfn>.</p>'
    )
    assert blocks_of(".html", page) == [Block("Free parking for guests", 2), Block("The new prizzce, net.")]


def test_no_attribute_is_text_however_long_and_whatever_is_in_it() -> None:
    picture = f'<img src="data:image/png;base64,{"QUJD" * 5_000}">'
    others = """<a href="?a<b" title='x > y'>link</a> <i data-html='<p>"no"</p>'>two</i> <br/>three"""
    page = f"<p>{picture}one {others}</p><script src='x'/><p>four</p>"
    assert [block.text for block in blocks_of(".html", page)] == ["one link two", "three", "four"]


def test_no_script_hides_what_comes_after_it() -> None:
    page = (
        """<script>for (i=0; i<n; i++) { x='it"s </p>' } // don't</script>"""
        + """<p>It's <b>shown</b>.</p><STYLE>a>b{}</STYLE>end"""
    )
    assert [block.text for block in blocks_of(".html", page)] == ["It's shown.", "end"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_text_is_read_in_the_encoding_it_says_it_has(encoding: str) -> None:
    text = "Zażółć gęślą jaźń"
    assert [block.text for block in READERS[".txt"](text.encode(encoding)).blocks] == [text]


@pytest.mark.parametrize("data", [b"a\0b", "a\0b".encode("utf-16"), "zażółć".encode("cp1250"), b"\xff\xfe\0"])
def test_what_is_no_text_is_refused(data: bytes) -> None:
    with pytest.raises(UnreadableDocument, match="is not"):
        READERS[".txt"](data)
