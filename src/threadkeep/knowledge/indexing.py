"""A folder into the index: new and changed files are cut and put, deleted files leave it, the rest is left alone.

A run changes and removes only documents of its own datasource that have no owner or its own (`Source.may_replace`).

Each document is put whole or not at all, and can be found by its words at once. What could not be read is listed with
the reason, and what it said before stays, for those who may read it now.

Vectors follow, one document at a time. A document that the embedder refuses while it takes others is left out and
reported; whatever keeps it from embedding at all is raised. Once nothing lacks vectors of the model in use, those of
earlier ones have served and are deleted.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import re
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from threadkeep.errors import EmbedderError, EmbedderUnavailable, InvalidInput, MissingExtra, UnreadableDocument
from threadkeep.knowledge.chunking import CHUNKER_VERSION, CountTokens, cut
from threadkeep.knowledge.reading import MOST_BYTES, READERS, Block, Text, read_document
from threadkeep.ports.knowledge import (
    AccessLevel,
    Document,
    DocumentInfo,
    KnowledgeStore,
    KnowledgeVectors,
    Readership,
    Unembedded,
)
from threadkeep.ports.models import Embedder, EmbeddingModel, model_of
from threadkeep.recall.normalise import NORMALISER_VERSION
from threadkeep.scope import DEFAULT_TENANT, MAX_PART_LENGTH, Scope, length_prefixed

Progress = Callable[[int, int, str], None]  # how many are done, of how many, and which one
_PROBE = "Are you there?"
_log = logging.getLogger("threadkeep.knowledge")


@dataclass(frozen=True, slots=True)
class Refused:
    document_id: str
    reason: str


@dataclass(slots=True)
class EmbeddedDocuments:
    embedded: int = 0
    refused: list[Refused] = field(default_factory=list[Refused])


async def embed_documents(
    store: KnowledgeVectors,
    embedder: Embedder,
    model: EmbeddingModel,
    tenant: str | None = None,
    progress: Progress | None = None,
) -> EmbeddedDocuments:
    """Raises `EmbedderError` when it is not about a document, and `StoreError`; what was done stays done."""
    done, after = EmbeddedDocuments(), ("", "")
    total = await store.waiting(model, tenant)
    while waiting := await store.unembedded(model, tenant, after=after):
        for found in waiting:
            after = found.tenant, found.document_id
            await _embed(store, embedder, model, found, done)
            if progress:
                progress(done.embedded + len(done.refused), total, found.document_id)
    if not await store.waiting(model):
        for other in await store.models():
            if other != model:
                count = await store.forget_model(other)
                _log.info("%s vectors of %s were replaced by those of %s", count, other.name, model.name)
    return done


async def _embed(
    store: KnowledgeVectors, embedder: Embedder, model: EmbeddingModel, found: Unembedded, done: EmbeddedDocuments
) -> None:
    try:
        vectors = await embedder.embed(found.chunks)
        done.embedded += await store.embed(found, model, vectors)
    except EmbedderUnavailable:
        raise
    except EmbedderError as problem:
        if len((await embedder.embed([_PROBE]))[0]) != model.dimensions:
            raise
        done.refused.append(Refused(found.document_id, str(problem)))


Redact = Callable[[str], str]


_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # a file's name may hold any bytes


@dataclass(frozen=True, slots=True)
class Source:
    """Whose documents, under which name, and who may read them. Private ones have an owner."""

    datasource: str
    tenant: str = DEFAULT_TENANT
    access: AccessLevel = "public"
    owner: str | None = None
    readers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < len(self.datasource) <= MAX_PART_LENGTH // 2:
            raise InvalidInput("datasource", "is empty or too long", f"use 1 to {MAX_PART_LENGTH // 2} characters")
        for name in (self.datasource, self.owner, *self.readers):
            if name is not None:
                Scope(self.tenant, name)  # raises for what no id may be made of
        if self.access != "public" and self.owner is None:
            raise InvalidInput("owner", "is missing", f"a {self.access} document has an owner: name them")
        if self.readers and self.access != "shared":
            raise InvalidInput("readers", "are given", "only shared documents have readers")

    @property
    def readership(self) -> Readership:
        return Readership(self.access, self.owner, self.readers)

    def may_replace(self, document: DocumentInfo) -> bool:
        """Return whether a document of the tenant is this source's to change: one of its datasource that has no owner,
        which makes it public, or the same owner. Another owner's documents stay as they are."""
        return document.datasource == self.datasource and document.owner in (None, self.owner)


@dataclass(frozen=True, slots=True)
class Skipped:
    path: str
    reason: str


@dataclass(slots=True)
class IndexReport:
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    chunks: int = 0
    embedded: int = 0
    waiting: int = 0  # documents that have no vectors yet
    embed_failed: str | None = None
    skipped: list[Skipped] = field(default_factory=list[Skipped])


class FolderIndexer:
    """`redact`, where it is given, is applied to every text before it is put. By default there is none: documents are
    what an operator publishes, and a shop's own phone number must stay in its answer."""

    def __init__(
        self,
        store: KnowledgeStore,
        count_tokens: CountTokens,
        embedder: Embedder | None = None,
        redact: Redact | None = None,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._store = store
        self._count = count_tokens
        self._embedder = embedder
        self._redact = redact
        self._most_bytes = most_bytes

    async def index(self, folder: Path, source: Source, progress: Progress | None = None) -> IndexReport:
        """Raises `InvalidInput` where there is no such folder, and `StoreError`."""
        listing = await asyncio.to_thread(listing_of, folder)
        known = {one.document_id: one for one in await self._store.documents(source.tenant)}
        report = IndexReport()
        report.skipped += [
            Skipped(_name(folder, link), "is a link, and links are not followed") for link in listing.links
        ]
        unread = {
            id_ for closed in listing.closed for id_ in known if id_.startswith(_id_below(folder, closed, source))
        }
        for closed, reason in listing.closed.items():
            name = f"{_name(folder, closed)}/"
            report.skipped.append(Skipped(name, f"cannot be opened ({reason}); what it held before stays"))
        seen = set[str]()
        for number, path in enumerate(listing.files):
            name = _name(folder, path)
            id_ = document_id(source.datasource, name)
            seen.add(id_)
            try:
                await self._put(path, id_, source, known.get(id_), report)
            except (UnreadableDocument, MissingExtra) as problem:
                report.skipped.append(Skipped(name, str(problem)))
                unread.add(id_)
            if progress:
                progress(number + 1, len(listing.files), name)
        of_source = {id_ for id_, one in known.items() if source.may_replace(one)}
        for id_ in sorted(of_source & unread):
            await self._store.grant(source.tenant, id_, source.readership)
        for id_ in sorted(of_source - seen - unread):
            report.removed += await self._store.remove(source.tenant, id_)
        await self._embed(report, source.tenant, progress)
        return report

    async def _put(self, path: Path, id_: str, source: Source, old: DocumentInfo | None, report: IndexReport) -> None:
        """Raises `UnreadableDocument` and `MissingExtra`."""
        if old is not None and not source.may_replace(old):
            owner = "another owner" if old.datasource == source.datasource else repr(old.datasource)
            raise UnreadableDocument(f"has the id of a document of {owner}; give one of the two another name")
        document = await asyncio.to_thread(self._document, path, id_, source)
        changed = old is None or old.digest != document.digest
        if changed:
            await self._store.put(source.tenant, document)
        report.chunks += len(document.chunks)
        report.added += old is None
        report.updated += old is not None and changed
        report.unchanged += not changed

    async def rebuild(self, tenant: str | None = None, progress: Progress | None = None) -> IndexReport:
        """Vectors of the embedder in use for every document that lacks them."""
        report = IndexReport()
        await self._embed(report, tenant, progress)
        return report

    async def _embed(self, report: IndexReport, tenant: str | None, progress: Progress | None = None) -> None:
        """Documents are found by their words until then: an embedder that fails is reported, not raised."""
        if self._embedder is None:
            return
        try:
            model = await model_of(self._embedder)
            before = await self._store.waiting(model, tenant)
        except EmbedderError as problem:
            report.embed_failed = str(problem)
            report.waiting = len(await self._store.documents(tenant))
            return
        try:
            done = await embed_documents(self._store, self._embedder, model, tenant, progress)
            report.skipped += [Skipped(one.document_id, one.reason) for one in done.refused]
        except EmbedderError as problem:
            report.embed_failed = str(problem)
        report.waiting = await self._store.waiting(model, tenant)
        report.embedded = max(0, before - report.waiting)

    def _document(self, path: Path, id_: str, source: Source) -> Document:
        text = self._redacted(read_document(path, self._most_bytes))
        parts, chunks = cut(text.blocks, self._count)
        return Document(
            id_,
            source.datasource,
            text.title,
            _digest(text, source),
            parts,
            chunks,
            source.access,
            source.owner,
            source.readers,
        )

    def _redacted(self, text: Text) -> Text:
        if self._redact is None:
            return text
        blocks = tuple(Block(self._redact(block.text), block.level) for block in text.blocks)
        return Text(self._redact(text.title), blocks)


def _name(folder: Path, path: Path) -> str:
    return path.relative_to(folder).as_posix()


def _id_below(folder: Path, closed: Path, source: Source) -> str:
    """What ids of documents in that folder begin with."""
    return f"{source.datasource}/{_UNFIT.sub('?', _name(folder, closed))}/"


def document_id(datasource: str, name: str) -> str:
    """Readable, and the same every time; a path that is too long for an id, or no text, ends in its digest."""
    whole = f"{datasource}/{name}"
    fit = _UNFIT.sub("?", name)
    if len(whole) <= MAX_PART_LENGTH and fit == name:
        return whole
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{datasource}/{fit[: MAX_PART_LENGTH - len(datasource) - 34]}~{digest}"


def _digest(text: Text, source: Source) -> bytes:
    readers: Sequence[str] = sorted(set(source.readers))
    versions = f"{CHUNKER_VERSION}.{NORMALISER_VERSION}"
    blocks = [f"{block.level}{block.text}" for block in text.blocks]
    said = (versions, text.title, source.access, source.owner or "", str(len(readers)), *readers, *blocks)
    return hashlib.blake2b(length_prefixed(said), digest_size=16).digest()


@dataclass(slots=True)
class Listing:
    files: list[Path] = field(default_factory=list[Path])
    links: list[Path] = field(default_factory=list[Path])  # that would be documents or folders
    closed: dict[Path, str] = field(default_factory=dict[Path, str])  # folders, and why


def listing_of(folder: Path) -> Listing:
    """All but hidden ones, in the order of names; links are not followed, for they may lead anywhere.

    Raises `InvalidInput` where there is no such folder, or it cannot be looked into itself.
    """
    if not folder.is_dir():
        raise InvalidInput("folder", "is no folder", "name one that exists")
    found = Listing()
    for where, folders, names in os.walk(folder, onerror=lambda error: _note(found, error)):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found.links += [path for name in folders if (path := Path(where, name)).is_symlink()]
        named = [Path(where, name) for name in names if _is_named_like_one(name)]
        found.links += [path for path in named if path.is_symlink()]
        found.files += [path for path in named if _is_document(path)]
    if folder in found.closed:
        raise InvalidInput("folder", f"cannot be opened ({found.closed[folder]})", "let the service's user read it")
    found.files.sort()
    found.links.sort()
    return found


def _note(found: Listing, error: OSError) -> None:
    """One that was deleted while others were read counts like any other."""
    if not isinstance(error, FileNotFoundError):
        found.closed[Path(os.fsdecode(error.filename))] = error.strerror or type(error).__name__


def _is_named_like_one(name: str) -> bool:
    return not name.startswith(".") and Path(name).suffix.lower() in READERS


def _is_document(path: Path) -> bool:
    """What cannot even be looked at may be one: who reads it then says why not."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return False
    except OSError:
        return True
