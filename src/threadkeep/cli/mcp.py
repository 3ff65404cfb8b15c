"""`threadkeep mcp`: memory and retrieval for one MCP client over stdin and stdout, and how clients start it."""

from __future__ import annotations

import asyncio
import json as encoder
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from threadkeep.cli.options import Json, Redis, Tenant, Url, store_path
from threadkeep.cli.output import log_to
from threadkeep.cli.resolved import for_elsewhere, masked
from threadkeep.compose.memory import redis_named
from threadkeep.errors import InvalidInput, MissingExtra
from threadkeep.identity.principal import OF_A_USER, Principal
from threadkeep.scope import DEFAULT_TENANT, DEFAULT_USER, Scope
from threadkeep.settings import TOKEN_VARIABLE, Settings, load_settings

ClientName = Literal["vscode", "claude", "cursor"]
mcp = typer.Typer(name="mcp", help="An MCP server on stdin and stdout, and how clients start it.")

User = Annotated[str | None, typer.Option("--user", help=f"Whose memory and documents. Otherwise {DEFAULT_USER!r}.")]
Gateway = Annotated[
    str | None,
    typer.Option("--gateway", help=f"Forward every tool to this service; its API key or token is in {TOKEN_VARIABLE}."),
]


@mcp.callback(invoke_without_command=True)
def serve(
    context: typer.Context,
    url: Url = None,
    redis: Redis = None,
    tenant: Tenant = None,
    user: User = None,
    gateway: Gateway = None,
) -> None:
    """Serve one MCP client over stdin and stdout until it closes them."""
    if context.invoked_subcommand is not None:
        return
    if find_spec("mcp") is None:
        raise MissingExtra("mcp", "threadkeep mcp")
    log_to(sys.stderr)
    scope = Scope(tenant or DEFAULT_TENANT, user or DEFAULT_USER)  # raises for what no id may be made of
    principal = Principal(scope.tenant, scope.user, "USER", OF_A_USER, "stdio")
    if gateway is None:
        asyncio.run(_serve(url, redis, principal))
    else:
        asyncio.run(_forward(gateway, principal))


@mcp.command()
def config(
    client: Annotated[ClientName, typer.Option(help="Which client's settings.")],
    url: Url = None,
    redis: Redis = None,
    tenant: Tenant = None,
    user: User = None,
    gateway: Gateway = None,
    http: Annotated[str | None, typer.Option("--http", help="A running service's address, such as …/mcp.")] = None,
    json: Json = False,
) -> None:
    """Print what to paste into a client's settings."""
    settings = load_settings()
    for option, address in (("--http", http), ("--gateway", gateway)):
        if address is not None and masked(address) != address:
            fix = f"leave it out; the credential is read from {TOKEN_VARIABLE} or asked for"
            raise InvalidInput(option, "holds a password or a query, which belongs into no client's settings", fix)
    stores, secret = ({}, []) if gateway else _stores(url, redis, settings)
    environment, more = ({}, []) if gateway else for_elsewhere(settings)
    given = {**stores, "--tenant": tenant, "--user": user, "--gateway": gateway}
    arguments = ["mcp", *(word for name, value in given.items() if value is not None for word in (name, value))]
    command, *first = _this_command()
    told = snippet_over_http(client, http) if http else snippet(client, command, [*first, *arguments], environment)
    if not json:
        sys.stderr.write(f"Put this into {FILES[client]}:\n")
    if not http and (left := [*secret, *more]):
        sys.stderr.write(f"(and set {', '.join(left)} there too: keys and passwords are not printed)\n")
    sys.stdout.write(encoder.dumps(told, indent=2) + "\n")


def _stores(url: str | None, redis: str | None, settings: Settings) -> tuple[dict[str, str | None], list[str]]:
    """As a client needs them, which starts the server in a folder of its own, and without what this shell has set;
    and which of these settings may hold a password, and are left out, whether they were given or set."""
    path = store_path(url, settings)
    place = url if path is None else f"sqlite:///{path.absolute()}"
    told = {"--url": place, "--redis": redis_named(redis, settings)}
    secret = ["DATABASE_URL"] if place is None or (path is None and masked(place) != place) else []
    if (hot := told["--redis"]) and masked(hot) != hot:
        secret.append("REDIS_URL")
    left_out = {"--url": "DATABASE_URL", "--redis": "REDIS_URL"}
    return {name: None if left_out[name] in secret else value for name, value in told.items()}, secret


def _this_command() -> list[str]:
    """By its whole path: a client knows nothing of the environment it was installed into."""
    beside = shutil.which("threadkeep", path=str(Path(sys.executable).parent))
    found = beside or shutil.which("threadkeep")
    return [sys.executable, "-m", "threadkeep.cli"] if found is None else [found]


async def _serve(url: str | None, redis: str | None, principal: Principal) -> None:
    from threadkeep.compose.retrieval import open_mcp_backend
    from threadkeep.mcp.stdio import serve_stdio

    async with open_mcp_backend(url, load_settings(), redis=redis) as backend:
        await serve_stdio(backend, principal)


async def _forward(gateway: str, principal: Principal) -> None:
    from threadkeep.mcp.gateway import open_gateway
    from threadkeep.mcp.stdio import serve_stdio

    if not gateway.startswith(("http://", "https://")):
        raise InvalidInput(
            "--gateway", "is not an http(s) address", "give the service's, such as http://127.0.0.1:8000"
        )
    async with open_gateway(gateway, os.environ.get(TOKEN_VARIABLE)) as backend:
        await serve_stdio(backend, principal, with_resources=False)


FILES: dict[ClientName, str] = {
    "vscode": ".vscode/mcp.json",
    "claude": "claude_desktop_config.json",
    "cursor": ".cursor/mcp.json",
}


def snippet(
    client: ClientName, command: str, arguments: Sequence[str], environment: Mapping[str, str]
) -> dict[str, Any]:
    """VS Code calls the list `servers` and wants the kind; the others call it `mcpServers`."""
    server: dict[str, Any] = {"command": command, "args": list(arguments)}
    if environment:
        server["env"] = dict(environment)
    if client == "vscode":
        return {"servers": {"threadkeep": {"type": "stdio", **server}}}
    return {"mcpServers": {"threadkeep": server}}


def snippet_over_http(client: ClientName, url: str) -> dict[str, Any]:
    """For a service that is running already. The client prompts for the token or reads it from the environment."""
    if client == "vscode":
        headers = {"Authorization": "Bearer ${input:threadkeep-token}"}
        asked = [
            {"id": "threadkeep-token", "type": "promptString", "description": "Threadkeep token", "password": True}
        ]
        return {"inputs": asked, "servers": {"threadkeep": {"type": "http", "url": url, "headers": headers}}}
    return {"mcpServers": {"threadkeep": {"url": url, "headers": {"Authorization": "Bearer ${THREADKEEP_TOKEN}"}}}}
