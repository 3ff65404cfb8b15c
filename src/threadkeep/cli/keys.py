"""`threadkeep keys`: credentials of those who call the service."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Annotated, TypeVar

import typer

from threadkeep.cli.options import Json, OfTenant, Tenant, Url, of_an_existing_store
from threadkeep.cli.output import in_columns, notes, print_json, screen
from threadkeep.compose.service import key_secret, open_keys
from threadkeep.errors import InvalidInput, NotFound
from threadkeep.identity.api_keys import new_key
from threadkeep.ports.clock import system_clock
from threadkeep.ports.keys import PERMISSIONS, ROLES, KeyStore
from threadkeep.scope import DEFAULT_TENANT
from threadkeep.settings import Settings, load_settings

R = TypeVar("R")
T = TypeVar("T", bound=str)

keys = typer.Typer(name="keys", no_args_is_help=True, help="API keys: make one, list them, revoke one.")


@keys.command()
def create(
    user: Annotated[str | None, typer.Option(help="Whose key. Without: a service, which acts for its users.")] = None,
    tenant: Tenant = None,
    role: Annotated[str, typer.Option(help="USER, ADMIN (of the tenant) or SUPER_ADMIN (of all).")] = "USER",
    scope: Annotated[
        list[str] | None,
        typer.Option(
            help="read, write, write_as (the assistant's turns, and times of one's own), erase, chat, admin or metrics;"
            " may be repeated. Otherwise all that the role allows; a user's own key has write_as only if named here."
        ),
    ] = None,
    name: Annotated[str, typer.Option(help="What it is for; shown in the list.")] = "",
    expires_days: Annotated[float | None, typer.Option(help="Otherwise it holds until it is revoked.")] = None,
    url: Url = None,
    json: Json = False,
) -> None:
    """Make a key and print it. It is shown this once: only a digest is kept."""
    settings, now = load_settings(), system_clock()
    if expires_days is not None and not 0 < expires_days <= 36_500:
        raise InvalidInput("--expires-days", "is not a number of days to come", "give more than 0, at most 36500")
    key, kept = new_key(
        key_secret(settings),
        now,
        (DEFAULT_TENANT if tenant is None else tenant, user),
        role=_known("--role", role.upper(), ROLES),
        permissions=frozenset(_known("--scope", one, PERMISSIONS) for one in scope) if scope else None,
        name=name,
        expires_at=None if expires_days is None else now + timedelta(days=expires_days),
    )
    _on_keys(url or settings.database_url, settings, lambda store: store.add(kept))
    if json:
        print_json({"key": key} | kept.as_dict())
        return
    notes.print("Keep it now: it is not shown again.", style="yellow")
    screen().print(key, soft_wrap=True)


@keys.command(name="list")
def list_(tenant: OfTenant = None, url: Url = None, json: Json = False) -> None:
    """Every key by its prefix: whose it is, what it allows, whether it still holds. Never the key itself."""
    settings = of_an_existing_store(url)
    found = _on_keys(url or settings.database_url, settings, lambda store: store.all(tenant))
    if json:
        print_json([one.as_dict() for one in found])
        return
    table = in_columns("API keys", "prefix", "name", "tenant", "user", "role", "scopes", "expires", "revoked")
    for one in found:
        told = one.as_dict()
        allowed = " ".join(told["permissions"])
        columns = ("expires_at", "revoked_at")
        times = [told[column] or "–" for column in columns]
        table.add_row(one.prefix, one.name, one.tenant, one.user or "(service)", one.role, allowed, *times)
    screen().print(table)


@keys.command()
def revoke(
    prefix: Annotated[str, typer.Argument(help="As `keys list` shows it.")], url: Url = None, json: Json = False
) -> None:
    """Refuse a key from now on; a service that has just seen it may take a few seconds to notice."""
    settings = of_an_existing_store(url)
    if not _on_keys(url or settings.database_url, settings, lambda store: store.revoke(prefix, system_clock())):
        raise NotFound("there is no key with this prefix; `threadkeep keys list` shows them")
    if json:
        print_json({"prefix": prefix, "revoked": True})
    else:
        screen().print(f"Revoked {prefix}.")


def _on_keys(url: str, settings: Settings, work: Callable[[KeyStore], Awaitable[R]]) -> R:
    async def run() -> R:
        async with open_keys(url, settings) as store:
            return await work(store)

    return asyncio.run(run())


def _known(option: str, given: str, known: tuple[T, ...]) -> T:
    for one in known:
        if one == given:
            return one
    raise InvalidInput(option, "is not one that is known", f"use {', '.join(known)}")
