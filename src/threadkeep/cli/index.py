"""`threadkeep index`: knowledge documents from a folder into the index, their vectors, and what is there."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.progress import Progress

from threadkeep.cli.options import Json, Tenant, Url, of_an_existing_store
from threadkeep.cli.output import harmless, notes, print_json, print_pairs, screen
from threadkeep.compose.knowledge import open_knowledge
from threadkeep.compose.upkeep import rebuild_terms
from threadkeep.compose.worker import embed_all, messages_given_up, open_embedding
from threadkeep.errors import EmbedderError
from threadkeep.ports.knowledge import Access
from threadkeep.ports.models import Embedder, EmbeddingModel, model_of
from threadkeep.recall.context import on_one_line
from threadkeep.scope import DEFAULT_TENANT
from threadkeep.settings import Settings, load_settings

if TYPE_CHECKING:
    from threadkeep.knowledge.indexing import IndexReport
    from threadkeep.recall.passages import Answered

_MOST_LISTED = 1_000

index = typer.Typer(
    name="index", no_args_is_help=True, help="Knowledge documents: add a folder, search, rebuild, look."
)


@index.command()
def add(
    folder: Annotated[Path, typer.Argument(help="Markdown, text, HTML and PDF in it and below it.")],
    datasource: Annotated[str, typer.Option(help="The name these documents go by. Files deleted from DIR leave it.")],
    access: Annotated[Literal["public", "private", "shared"], typer.Option(help="Who may read them.")] = "public",
    owner: Annotated[str | None, typer.Option(help="Whose they are; private and shared ones need it.")] = None,
    reader: Annotated[list[str] | None, typer.Option(help="A user they are shared with; may be repeated.")] = None,
    tenant: Tenant = None,
    url: Url = None,
    json: Json = False,
) -> None:
    """Bring a folder's documents into the index. Repeat it at will: only what changed is done again."""
    from threadkeep.knowledge.indexing import Source

    source = Source(datasource, tenant or DEFAULT_TENANT, access, owner, tuple(reader or ()))
    _report(asyncio.run(_add(url, folder, source)), "Indexed", as_json=json)


@index.command()
def search(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    user: Annotated[
        str | None, typer.Option(help="The caller; without it an unknown one, who reads what is public.")
    ] = None,
    datasource: Annotated[list[str] | None, typer.Option(help="Look in this one only; may be repeated.")] = None,
    k: Annotated[int, typer.Option(help="At most so many parts of documents.")] = 5,
    budget: Annotated[int | None, typer.Option(help="Cap of the text for a prompt, in tokens.")] = None,
    tenant: Tenant = None,
    url: Url = None,
    json: Json = False,
) -> None:
    """Search passages with the access of that user."""
    who = Access(tenant or DEFAULT_TENANT, user)

    async def asked() -> Answered:
        async with open_knowledge(url, of_an_existing_store(url)) as knowledge:
            return await knowledge.ask(who, query, k=k, budget=budget, datasources=datasource)

    found = asyncio.run(asked())
    if json:
        print_json(found.as_dict())
        return
    for hit in found.hits:
        screen().print(f"{hit.score:.3f} {_shown(hit.chunk_id)} {_shown(hit.heading or hit.title)}")
    screen().print(harmless(found.text) or "Nothing found.", soft_wrap=True)


@index.command()
def rebuild(tenant: Tenant = None, url: Url = None, json: Json = False) -> None:
    """Make the vectors that are missing, and terms that another version made, anew. Searches continue while it runs."""
    settings = of_an_existing_store(url)
    report = asyncio.run(_rebuild(url, tenant, settings))
    _report(report, "Rebuilt", asyncio.run(rebuild_messages(url, settings)), as_json=json)


@index.command()
def status(tenant: Tenant = None, url: Url = None, json: Json = False) -> None:
    """Count documents, chunks, and what has no vectors of the embedder in use; list messages that were given up on."""
    settings = of_an_existing_store(url)
    told = asyncio.run(_status(url, tenant, settings))
    told["messages"] = asyncio.run(messages_status(url, settings))
    if json:
        print_json(told)
        return
    sources: dict[str, int] = told.pop("datasources")
    messages: dict[str, Any] = told.pop("messages") or {}
    failed: list[dict[str, str]] = messages.get("embed_failed", [])
    told |= {f"documents in {name}": count for name, count in sources.items()}
    print_pairs("Index", told | {"messages waiting": messages.get("waiting_for_vectors"), "embed_failed": len(failed)})
    for one in failed:
        screen().print(f"embed_failed {one['user']}/{one['conversation']}/{one['message_id']}: {one['reason']}")


async def _add(url: str | None, folder: Path, source: Any) -> IndexReport:
    async with open_knowledge(url, load_settings()) as knowledge:
        with Progress(console=notes, transient=True) as bar:
            task = bar.add_task("indexing", total=None)
            return await knowledge.indexer.index(
                folder, source, lambda done, total, _: bar.update(task, completed=done, total=total)
            )


async def _rebuild(url: str | None, tenant: str | None, settings: Settings) -> IndexReport:
    where, writing = url or settings.database_url, load_settings()
    with Progress(console=notes, transient=True) as bar:
        task = bar.add_task("messages", total=None)
        await rebuild_terms(where, writing, lambda done: bar.update(task, completed=done))
    async with open_knowledge(url, settings) as knowledge:
        with Progress(console=notes, transient=True) as bar:
            task = bar.add_task("embedding", total=None)
            return await knowledge.indexer.rebuild(
                tenant, lambda done, total, _: bar.update(task, completed=done, total=total)
            )


async def rebuild_messages(url: str | None, settings: Settings) -> dict[str, int] | None:
    """None where messages get no vectors. Raises `EmbedderError` when the embedder does not answer."""
    async with open_embedding(url, settings, marks=True) as parts:
        if parts is None:
            return None
        embedded, failed = await embed_all(parts)
        return {"embedded": embedded, "embed_failed": failed}


async def _status(url: str | None, tenant: str | None, settings: Settings) -> dict[str, Any]:
    async with open_knowledge(url, settings) as knowledge:
        found, embedder = await knowledge.store.documents(tenant), knowledge.embedder
        waiting = await _waiting(embedder, partial(knowledge.store.waiting, tenant=tenant)) if embedder else None
        return {
            "documents": len(found),
            "chunks": sum(one.chunks for one in found),
            "embedder": embedder.name if embedder else None,
            "waiting_for_vectors": waiting,
            "datasources": dict(Counter(one.datasource for one in found)),
        }


async def messages_status(url: str | None, settings: Settings) -> dict[str, Any] | None:
    """None where messages get no vectors and got none. Only the running process knows how many wait."""
    failed = [one.as_dict() for one in await messages_given_up(url, settings, _MOST_LISTED)]
    async with open_embedding(url, settings) as parts:
        if parts is None:
            return {"waiting_for_vectors": None, "embed_failed": failed} if failed else None
        waiting = await _waiting(parts.embedder, parts.stores.backlog.count)
        return {"waiting_for_vectors": waiting, "embed_failed": failed}


async def _waiting(embedder: Embedder, count: Callable[[EmbeddingModel], Awaitable[int]]) -> int | None:
    """None where the embedder does not say what its vectors are like."""
    try:
        model = await model_of(embedder)
    except EmbedderError:
        return None
    return await count(model)


def _report(report: IndexReport, title: str, messages: dict[str, int] | None = None, *, as_json: bool) -> None:
    told: dict[str, Any] = asdict(report) | ({} if messages is None else {"messages": messages})
    if as_json:
        print_json(told)
        return
    skipped = told.pop("skipped")
    print_pairs(title, told)
    for one in skipped:
        screen().print(f"skipped {_shown(one['path'])}: {_shown(one['reason'])}")


def _shown(name: str) -> str:
    """A file's name may be no text at all, or orders to a terminal."""
    return on_one_line(name).encode("utf-8", "backslashreplace").decode()
