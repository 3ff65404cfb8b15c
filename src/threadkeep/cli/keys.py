"""`threadkeep keys`: credentials of those who call the service."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from threadkeep.cli.options import Json, OfTenant, Tenant, Url, as_it_is, store_path
from threadkeep.cli.output import in_columns, notes, print_json, screen
from threadkeep.cli.resolved import shown_path
from threadkeep.compose.service import key_secret, open_keys
from threadkeep.errors import InvalidInput, NotFound
from threadkeep.identity.api_keys import new_key
from threadkeep.ports.clock import system_clock
from threadkeep.ports.keys import PERMISSIONS, ROLES, ApiKey
from threadkeep.scope import DEFAULT_TENANT
from threadkeep.settings import Settings, load_settings

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
    asyncio.run(_add(url or settings.database_url, settings, kept))
    if json:
        print_json({"key": key} | kept.as_dict())
        return
    notes.print("Keep it now: it is not shown again.", style="yellow")
    screen().print(key, soft_wrap=True)


@keys.command(name="list")
def list_(tenant: OfTenant = None, url: Url = None, json: Json = False) -> None:
    """Every key by its prefix: whose it is, what it allows, whether it still holds. Never the key itself."""
    found = asyncio.run(_all(url, tenant))
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
    if not asyncio.run(_revoke(url, prefix)):
        raise NotFound("there is no key with this prefix; `threadkeep keys list` shows them")
    if json:
        print_json({"prefix": prefix, "revoked": True})
    else:
        screen().print(f"Revoked {prefix}.")


async def _add(url: str, settings: Settings, key: ApiKey) -> None:
    async with open_keys(url, settings) as store:
        await store.add(key)


async def _all(url: str | None, tenant: str | None) -> list[ApiKey]:
    where, settings = _existing(url)
    async with open_keys(where, settings) as store:
        return [*await store.all(tenant)]


async def _revoke(url: str | None, prefix: str) -> bool:
    where, settings = _existing(url)
    async with open_keys(where, settings) as store:
        return await store.revoke(prefix, system_clock())


def _existing(url: str | None) -> tuple[str, Settings]:
    """A typo in a URL must not make an empty store, and then report that it has no keys."""
    settings = load_settings()
    path: Path | None = store_path(url, settings)
    if path is not None and not path.exists():
        raise NotFound(f"{shown_path(path)}: there is no store here; check --url or DATABASE_URL")
    return url or settings.database_url, as_it_is(settings)


def _known(option: str, given: str, known: tuple[T, ...]) -> T:
    for one in known:
        if one == given:
            return one
    raise InvalidInput(option, "is not one that is known", f"use {', '.join(known)}")
