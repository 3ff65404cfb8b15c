"""Options that several commands share, and the store they name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from threadkeep.cli.resolved import shown_path
from threadkeep.compose.memory import is_server_url, sqlite_path
from threadkeep.errors import InvalidInput, NotFound
from threadkeep.scope import DEFAULT_TENANT, Scope
from threadkeep.settings import Settings, load_settings
from threadkeep.sync import SyncMemory


def _named(url: str | None) -> str | None:
    """An unset variable in `--url "$DATABASE_URL"` must not mean the store in the current folder."""
    if url is not None and not url.strip():
        raise InvalidInput("--url", "is empty", "give the archive's URL, or leave the option out for DATABASE_URL")
    return url


_ARCHIVE = "The archive, such as sqlite:///path.db or postgresql://…."
Url = Annotated[str | None, typer.Option("--url", callback=_named, help=f"{_ARCHIVE} Otherwise DATABASE_URL.")]
AnyStore = Annotated[str | None, typer.Option("--url", callback=_named, help=f"{_ARCHIVE} Otherwise a temporary one.")]
Redis = Annotated[
    str | None,
    typer.Option(
        "--redis", help="The hot store and its journal, redis://…. Otherwise REDIS_URL; an empty string for none."
    ),
]
RedisJournal = Annotated[
    str | None, typer.Option("--redis", help="Where the journal is, redis://…. Otherwise REDIS_URL.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON value on stdout; problems as JSON on stderr.")]
Mapping = Annotated[
    str | None,
    typer.Option("--mapping", help="config.json of tables that are yours. Otherwise MEMORY_CONFIG_PATH."),
]
Tenant = Annotated[str | None, typer.Option("--tenant", help=f"Otherwise {DEFAULT_TENANT!r}.")]
OfTenant = Annotated[str | None, typer.Option("--tenant", help="Otherwise of every tenant.")]
User = Annotated[str | None, typer.Option("--user", help="Otherwise the whole store.")]
Conversation = Annotated[str | None, typer.Option("--conversation", help="Otherwise the whole user.")]


def existing_store(url: str | None, redis: str | None = None, *, worker: bool = False) -> SyncMemory:
    """A typo in a URL must not make an empty store, and then report that all is well with it."""
    settings = of_an_existing_store(url)
    return SyncMemory(url, redis=redis, worker=worker, attach=False, settings=settings)


def of_an_existing_store(url: str | None) -> Settings:
    """The settings, for a command that only wants to use what is there. Raises `NotFound`."""
    settings = load_settings()
    path = store_path(url, settings)
    if path is not None and not path.exists():
        raise NotFound(f"{shown_path(path)}: there is no store here; check --url or DATABASE_URL")
    return as_it_is(settings)


def as_it_is(settings: Settings) -> Settings:
    """A server's tables are neither made nor changed by a command that only wants to use them."""
    return settings.model_copy(update={"auto_migrate": False})


def store_path(url: str | None, settings: Settings) -> Path | None:
    """The file behind the URL; None for a store on a server or in memory."""
    if is_server_url(url or settings.database_url):
        return None
    path = sqlite_path(url or settings.database_url)
    return None if path == ":memory:" else Path(path)


def scope_or_all(tenant: str | None, user: str | None, conversation: str | None) -> Scope | None:
    if user is None:
        if tenant is None and conversation is None:
            return None
        raise typer.BadParameter("name the user, or leave all three out for the whole store", param_hint="--user")
    return Scope(DEFAULT_TENANT if tenant is None else tenant, user, conversation)
