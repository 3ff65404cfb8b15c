"""A folder of documents into the index: what is read, how it is cut, what leaves it again."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from threadkeep.db.sqlite import SqliteDatabase
from threadkeep.errors import EmbedderRefused, EmbedderUnavailable, InvalidInput, UnreadableDocument
from threadkeep.knowledge import reading
from threadkeep.knowledge.chunking import LARGEST, SMALLEST, cut
from threadkeep.knowledge.indexing import FolderIndexer, Source, document_id, listing_of
from threadkeep.knowledge.reading import Block, read_document
from threadkeep.knowledge.store import DatabaseKnowledge
from threadkeep.ports.knowledge import Access, Question
from threadkeep.ports.models import EmbeddingModel
from threadkeep.recall.normalise import indexed_terms, query_terms

MODEL = EmbeddingModel("test:folder", 4)
ANN = Access("default", "ann")


def words_in(text: str) -> int:
    return len(text.split())


class CountingEmbedder:
    """Not a mock of a server: a model so small that its vectors can be told by heart."""

    name, dimensions = MODEL.name, MODEL.dimensions

    def __init__(self) -> None:
        self.asked = 0
        self.away = False

    async def embed(self, texts: Any) -> Any:
        if self.away:
            raise EmbedderUnavailable("test: away")
        self.asked += len(texts)
        return np.tile(np.array([1, 0, 0, 0], "f4"), (len(texts), 1))

    async def close(self) -> None: ...


@contextmanager
def as_an_ordinary_user() -> Iterator[None]:
    """Root may read everything."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65_534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Below no folder of pytest's, which are closed to others."""
    with TemporaryDirectory() as place:
        Path(place).chmod(0o777)
        yield Path(place)


@pytest.fixture
async def open_store(open_folder: Path) -> AsyncIterator[DatabaseKnowledge]:
    """Which an ordinary user may write to as well."""
    database = SqliteDatabase(str(open_folder / "tk.db"))
    await database.open()
    for file in [open_folder / name for name in os.listdir(open_folder)]:
        file.chmod(0o666)
    yield DatabaseKnowledge(database, indexed_terms)
    await database.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "knowledge"
    (folder / "deep").mkdir(parents=True)
    (folder / "warranty.md").write_text("# Warranty\n\nTwo years on every part.\n\n## Returns\n\nThirty days.\n")
    (folder / "deep" / "hours.txt").write_text("We open at nine.\n\nWe close at six.")
    page = "<html><head><title>Prices</title><style>p{}</style></head><body><h1>Prices</h1>"
    (folder / "prices.html").write_text(
        page + "<p>A mouse costs <b>ten</b> euros.</p><script>x=1</script></body></html>"
    )
    (folder / "picture.png").write_bytes(b"\x89PNG\0")
    (folder / ".hidden.md").write_text("not for the index")
    return folder


async def found(store: DatabaseKnowledge, text: str, access: Access = ANN) -> list[str]:
    return [one.document_id for one in (await store.search(access, Question(query_terms(text)))).passages]


async def test_a_folder_is_indexed_and_only_what_changed_is_indexed_again(
    store: DatabaseKnowledge, folder: Path
) -> None:
    embedder = CountingEmbedder()
    indexer, source = FolderIndexer(store, words_in, embedder), Source("shop")
    seen: list[tuple[int, int, str]] = []
    first = await indexer.index(folder, source, lambda *told: seen.append(told))
    assert (first.added, first.updated, first.unchanged, first.removed, first.skipped) == (3, 0, 0, 0, [])
    names = ["deep/hours.txt", "prices.html", "warranty.md"]
    assert seen[:3] == [(number, 3, name) for number, name in enumerate(names, 1)]
    assert seen[3:] == [(number, 3, f"shop/{name}") for number, name in enumerate(names, 1)]
    assert (first.embedded, embedder.asked) == (3, first.chunks)
    assert await found(store, "how many years") == ["shop/warranty.md"]
    assert await found(store, "mouse costs") == ["shop/prices.html"]

    (folder / "deep" / "hours.txt").write_text("We open at ten.")
    (folder / "prices.html").unlink()
    second = await indexer.index(folder, source)
    assert (second.added, second.updated, second.unchanged, second.removed) == (0, 1, 1, 1)
    assert await found(store, "open at ten") == ["shop/deep/hours.txt"]
    assert await found(store, "mouse costs") == []
    assert await found(store, "close at six") == []


async def test_a_change_of_who_may_read_is_a_change(store: DatabaseKnowledge, folder: Path) -> None:
    indexer = FolderIndexer(store, words_in)
    await indexer.index(folder, Source("shop"))
    report = await indexer.index(folder, Source("shop", access="shared", owner="bob", readers=("cid",)))
    assert (report.updated, report.unchanged) == (3, 0)
    assert await found(store, "two years") == []
    assert await found(store, "two years", Access("default", "cid")) == ["shop/warranty.md"]


async def test_another_datasource_of_the_same_folder_stays(store: DatabaseKnowledge, folder: Path) -> None:
    indexer = FolderIndexer(store, words_in)
    await indexer.index(folder, Source("one"))
    report = await indexer.index(folder / "deep", Source("two"))
    assert (report.added, report.removed) == (1, 0)
    assert len(await store.documents("default")) == 4


async def test_without_its_embedder_a_document_is_found_by_words_and_waits(
    store: DatabaseKnowledge, folder: Path
) -> None:
    embedder = CountingEmbedder()
    embedder.away = True
    indexer = FolderIndexer(store, words_in, embedder)
    report = await indexer.index(folder, Source("shop"))
    assert (report.added, report.embedded, report.waiting) == (3, 0, 3)
    assert report.embed_failed == "test: away"
    assert await found(store, "two years") == ["shop/warranty.md"]
    embedder.away = False
    assert (await indexer.rebuild()).embedded == 3
    assert (await indexer.rebuild()).embedded == 0
    vector = np.array([1, 0, 0, 0], "f4")
    assert len((await store.search(ANN, Question(model=MODEL, vector=vector))).passages) == 3


class PickyEmbedder(CountingEmbedder):
    async def embed(self, texts: Any) -> Any:
        if any("Two years" in text for text in texts):
            raise EmbedderRefused("test: will not have this")
        return await super().embed(texts)


async def test_a_document_the_embedder_refuses_keeps_no_other_from_its_vectors(
    store: DatabaseKnowledge, folder: Path
) -> None:
    report = await FolderIndexer(store, words_in, PickyEmbedder()).index(folder, Source("shop"))
    assert (report.added, report.embedded, report.waiting, report.embed_failed) == (3, 2, 1, None)
    assert [(one.path, one.reason) for one in report.skipped] == [("shop/warranty.md", "test: will not have this")]
    assert await found(store, "two years") == ["shop/warranty.md"]


async def test_another_model_takes_over_and_the_one_before_is_forgotten_once_it_has(
    store: DatabaseKnowledge, folder: Path
) -> None:
    await FolderIndexer(store, words_in, CountingEmbedder()).index(folder, Source("shop"))
    newer = CountingEmbedder()
    newer.name = "test:newer"
    indexer = FolderIndexer(store, words_in, newer)
    newer.away = True
    assert (await indexer.rebuild()).waiting == 3
    assert await store.models() == {MODEL: 3}
    newer.away = False
    assert (await indexer.rebuild()).embedded == 3
    assert await store.models("default") == {EmbeddingModel("test:newer", 4): 3}
    assert await store.models("another") == {}


async def test_a_pdf_without_its_extra_is_listed_and_the_rest_is_indexed(
    store: DatabaseKnowledge, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "manual.pdf").write_bytes(_pdf_saying("Two years"))
    monkeypatch.setitem(sys.modules, "pypdf", None)
    report = await FolderIndexer(store, words_in).index(folder, Source("shop"))
    assert report.added == 3
    assert [(one.path, "threadkeep[pdf]" in one.reason) for one in report.skipped] == [("manual.pdf", True)]


async def test_a_file_whose_name_is_no_text_is_indexed_too(store: DatabaseKnowledge, folder: Path) -> None:
    (folder / os.fsdecode(b"caf\xe9\n.md")).write_text("The cellar is closed on Mondays.")
    reports = [await FolderIndexer(store, words_in).index(folder, Source("shop")) for _ in range(2)]
    assert [(report.added, report.unchanged) for report in reports] == [(4, 0), (0, 4)]
    (id_,) = await found(store, "cellar")
    assert id_.startswith("shop/caf??.md~")


async def test_redaction_is_by_choice(store: DatabaseKnowledge, folder: Path) -> None:
    (folder / "contact.txt").write_text("Write to ann@shop.example any time.")
    kept = FolderIndexer(store, words_in)
    await kept.index(folder, Source("open"))
    masked = FolderIndexer(store, words_in, redact=lambda text: text.replace("ann@shop.example", "[REDACTED:EMAIL]"))
    await masked.index(folder, Source("masked"))
    passages = (await store.search(ANN, Question(query_terms("write any time")))).passages
    told = {one.datasource: "ann@shop.example" in one.content + one.parent for one in passages}
    assert told == {"open": True, "masked": False}


BAD = {
    "corrupt.pdf": (b"%PDF-1.7\nnothing that follows is one", "sound PDF"),
    "empty.pdf": (b"", "sound PDF"),
    "binary.txt": (b"MZ\0\1\2", "not text"),
    "latin.md": ("zażółć".encode("iso-8859-2"), "not UTF-8"),
    "empty.md": (b"# Only a heading\n", "no text"),
    "large.txt": (b"a" * 5_001, "the limit is 5,000"),
}


async def test_what_cannot_be_read_is_listed_and_the_rest_is_indexed(store: DatabaseKnowledge, folder: Path) -> None:
    for name, (data, _) in BAD.items():
        (folder / name).write_bytes(data)
    report = await FolderIndexer(store, words_in, most_bytes=5_000).index(folder, Source("shop"))
    assert report.added == 3
    assert {one.path for one in report.skipped} == {*BAD}
    for one in report.skipped:
        assert BAD[one.path][1] in one.reason


async def test_a_document_that_breaks_later_keeps_what_it_said(store: DatabaseKnowledge, folder: Path) -> None:
    indexer = FolderIndexer(store, words_in)
    await indexer.index(folder, Source("shop"))
    (folder / "warranty.md").write_bytes(b"\0")
    report = await indexer.index(folder, Source("shop"))
    assert [one.path for one in report.skipped] == ["warranty.md"]
    assert await found(store, "two years") == ["shop/warranty.md"]


async def test_a_document_removed_while_the_folder_is_read_is_skipped(
    store: DatabaseKnowledge, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = FolderIndexer(store, words_in)
    real = reading.READERS[".html"]

    def removing(data: bytes) -> Any:
        (folder / "warranty.md").unlink()
        return real(data)

    monkeypatch.setitem(reading.READERS, ".html", removing)
    report = await listed.index(folder, Source("shop"))
    assert [(one.path, one.reason) for one in report.skipped] == [
        ("warranty.md", "went away while the folder was read")
    ]
    assert report.added == 2


def test_a_file_that_changes_while_it_is_read_is_not_taken_half(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "warranty.md"
    real = reading.os.fstat
    calls: list[int] = []

    def fstat(number: int) -> Any:
        calls.append(number)
        if len(calls) == 2:
            path.write_text("something else altogether")
        return real(number)

    monkeypatch.setattr(reading.os, "fstat", fstat)
    with pytest.raises(UnreadableDocument, match="changed while"):
        read_document(path)


def test_links_and_folders_that_do_not_exist(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("outside")
    (folder / "link.md").symlink_to(tmp_path / "outside.md")

    assert [path.name for path in listing_of(folder).files] == ["hours.txt", "prices.html", "warranty.md"]
    with pytest.raises(InvalidInput, match="no folder"):
        listing_of(folder / "none")


BOMBS = {
    "tags that never end": (".html", "<a "),
    "attributes that never end": (".html", "<a x='"),
    "comments that never end": (".html", "<!--"),
    "hidden parts that never end": (".html", "<svg>"),
    "ends of what never began": (".html", "<svg></p>"),
    "sections that never end": (".html", "<![CDATA["),
    "one tag": (".html", "x='"),
    "a heading of spaces": (".md", " "),
    "a heading of hashes": (".md", "# "),
    "fences": (".md", "```\n"),
    "line ends": (".txt", "\n"),
}


@pytest.mark.parametrize(("kind", "part"), BOMBS.values(), ids=BOMBS)
def test_no_text_takes_its_reader_longer_than_it_is_long(kind: str, part: str) -> None:
    """Where time grew with the square of the length, these would take a day each."""
    text = f"<p>first</p># a{part * 60_000}b\n\nlast" if kind != ".md" else f"# a{part * 60_000}b\n\nlast"
    assert reading.READERS[kind](text.encode()).blocks


def test_a_page_of_html_is_read_as_it_is_shown() -> None:
    page = (
        "<!DOCTYPE html><html><head><title>Shop</title><style>p > a {color: red}</style></head><body>"
        "<!-- <p>not <b>this</b></p> --><h1>Prices</h1><p>A mouse costs 3 < 5 euros &amp; more.</p>"
        '<svg><svg><text>no</text></svg>nor this</svg><p title="a > b">Yes</p><script>if (a<b) x("</p>")</script>'
        "<ul><li>one<li>two</ul>the end</body></html>"
    )
    text = reading.READERS[".html"](page.encode())
    assert text.title == "Shop"
    assert [block.text for block in text.blocks][:3] == ["Prices", "A mouse costs 3 < 5 euros & more.", "Yes"]
    assert [block.text for block in text.blocks][3:] == ["one", "two", "the end"]


@pytest.mark.parametrize(
    ("line", "heading"),
    [("# A ##", "A"), ("## C#", "C#"), ("# A # B", "A # B"), ("#   A  ", "A"), ("# #", ""), ("#5 is no heading", None)],
)
def test_a_heading_is_what_stands_between_its_hashes(line: str, heading: str | None) -> None:
    (first, *_) = reading.READERS[".md"](f"{line}\n\ntext".encode()).blocks
    assert (first.text if first.level else None) == heading


def test_a_pdf_is_read() -> None:
    from io import BytesIO

    from pypdf import PdfWriter

    writer = PdfWriter()
    writer.add_blank_page(100, 100)
    writer.encrypt("secret", algorithm="RC4-128")
    data = BytesIO()
    writer.write(data)
    with pytest.raises(UnreadableDocument, match="encrypted"):
        reading.READERS[".pdf"](data.getvalue())
    text = reading.READERS[".pdf"](_pdf_saying("Two years on every part"))
    assert [block.text for block in text.blocks] == ["Two years on every part"]


def test_a_pdf_of_too_many_pages_or_that_takes_too_long_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnreadableDocument, match="5,001 pages"):
        reading.READERS[".pdf"](_pdf_saying("again", pages=5_001))
    monkeypatch.setattr(reading, "MOST_SECONDS", 0.0)
    with pytest.raises(UnreadableDocument, match="takes longer"):
        reading.READERS[".pdf"](_pdf_saying("again", pages=3))


def _pdf_saying(text: str, pages: int = 1) -> bytes:
    """The smallest sound PDF with a line of text, on as many pages."""
    stream = f"BT /F1 12 Tf 10 50 Td ({text}) Tj ET"
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{'3 0 R ' * pages}]/Count {pages}>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 100]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        f"<</Length {len(stream)}>>stream\n{stream}\nendstream",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    data, places = "%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"xref\n0 6\n0000000000 65535 f \n{table}trailer<</Size 6/Root 1 0 R>>\nstartxref\n{len(data)}\n%%EOF"
    return (data + end).encode()


def test_chunks_hold_two_hundred_to_five_hundred_tokens_and_lose_no_word() -> None:
    sentence = "The warranty of part number {} lasts two years from the day of sale. "
    blocks: list[Block] = []
    for chapter in range(6):
        blocks.append(Block(f"Chapter {chapter}", 2))
        for paragraph in range(chapter * 3):
            blocks.append(Block(sentence.format(paragraph) * (1 + paragraph * 2)))
    blocks.append(Block("word " * 1_700))
    parts, chunks = cut(blocks, words_in)
    sizes = [words_in(chunk.content) for chunk in chunks]
    assert max(sizes) <= LARGEST
    assert [size for size in sizes if size < SMALLEST] == []
    given = " ".join(block.text for block in blocks if not block.level).split()
    lines = [line for part in parts for line in part.content.split("\n") if not line.startswith("## Chapter")]
    assert " ".join(lines).split() == given
    for chunk in chunks:
        assert chunk.content.split("\n\n", 1)[-1] in parts[chunk.part].content


def test_a_chunk_begins_with_the_headings_it_stands_under() -> None:
    blocks = [Block("Guide", 1), Block("Power", 2), Block("watts " * 300), Block("Fans", 2), Block("rpm " * 300)]
    parts, chunks = cut(blocks, words_in)
    assert [chunk.content.split("\n")[0] for chunk in chunks] == ["Guide › Power", "Guide › Fans"]
    assert [part.heading for part in parts] == ["Guide › Power", "Guide › Fans"]


@pytest.mark.parametrize("text", ["花" * 3_000, "句子。" * 1_500, "x" * 5_000], ids=["run", "sentences", "word"])
def test_text_without_blanks_is_cut_too(text: str) -> None:
    _, chunks = cut([Block(text)], len)
    assert max(len(chunk.content) for chunk in chunks) <= LARGEST
    assert "".join(chunk.content.replace("\n\n", "").replace(" ", "") for chunk in chunks) == text


def test_a_short_document_is_one_chunk() -> None:
    parts, chunks = cut([Block("Hello there.")], words_in)
    assert ([part.content for part in parts], [chunk.content for chunk in chunks]) == (["Hello there."],) * 2


@pytest.mark.parametrize(
    "source",
    [
        {"datasource": ""},
        {"datasource": "x" * 200},
        {"datasource": "a", "access": "private"},
        {"datasource": "a", "access": "shared"},
        {"datasource": "a", "readers": ("bob",)},
        {"datasource": "a\0b"},
        {"datasource": "a", "access": "private", "owner": ""},
        {"datasource": "a", "access": "private", "owner": "\ud800"},
        {"datasource": "a", "access": "shared", "owner": "ann", "readers": ("x" * 300,)},
        {"datasource": "a", "tenant": "\n"},
    ],
    ids=[
        "empty",
        "long",
        "private-ownerless",
        "shared-ownerless",
        "public-readers",
        "control",
        "owner-empty",
        "owner-surrogate",
        "reader-long",
        "tenant-control",
    ],
)
def test_a_source_that_says_too_little_or_too_much_is_refused(source: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Source(**source)


def test_ids_of_long_paths_fit_and_differ() -> None:
    one, other = (document_id("docs", "a/" * 200 + name) for name in ("x.md", "y.md"))
    assert one != other
    assert len(one) <= 255
    assert document_id("docs", "a.md") == "docs/a.md"


@pytest.mark.parametrize("mode", [0o000, 0o300, 0o600], ids=["closed", "no list", "no entry"])
async def test_a_folder_that_cannot_be_looked_into_is_named_and_what_it_held_stays(
    open_store: DatabaseKnowledge, open_folder: Path, mode: int
) -> None:
    source, indexer = Source("shop"), FolderIndexer(open_store, words_in)
    folder = open_folder / "knowledge"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "hours.txt").write_text("We open at nine.")
    (folder / "gone.txt").write_text("Soon gone.")
    await indexer.index(folder, source)

    (folder / "gone.txt").unlink()
    (folder / "deep").chmod(mode)
    with as_an_ordinary_user():
        report = await indexer.index(folder, Source("shop", access="private", owner="ann"))
    (folder / "deep").chmod(0o755)

    (skipped,) = report.skipped
    assert skipped.path.startswith("deep/")
    assert "Permission denied" in skipped.reason
    (kept,) = await open_store.documents("default")
    assert (kept.document_id, kept.access, kept.owner) == ("shop/deep/hours.txt", "private", "ann")


async def test_a_whole_folder_that_cannot_be_looked_into_is_refused_and_nothing_leaves_the_index(
    open_store: DatabaseKnowledge, open_folder: Path
) -> None:
    source, indexer = Source("shop"), FolderIndexer(open_store, words_in)
    folder = open_folder / "knowledge"
    folder.mkdir()
    (folder / "hours.txt").write_text("We open at nine.")
    await indexer.index(folder, source)

    os.chmod(folder, 0o300)
    with as_an_ordinary_user(), pytest.raises(InvalidInput, match="cannot be opened"):
        await indexer.index(folder, source)
    os.chmod(folder, 0o755)

    assert len(await open_store.documents("default")) == 1
