"""`threadkeep erase`: forget, and prove it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.table import Table

from threadkeep.cli.options import Json, Redis, Url, existing_store
from threadkeep.cli.output import print_json, screen
from threadkeep.errors import InvalidInput
from threadkeep.scope import DEFAULT_TENANT, Scope
from threadkeep.settings import load_settings

_NOT_ASKED = (
    "the Redis at REDIS_URL was not asked, since --url was given: if it stands before this archive, give --redis"
)


def erase(
    user: Annotated[str, typer.Option(help="Whose memory.")],
    tenant: Annotated[str, typer.Option()] = DEFAULT_TENANT,
    conversation: Annotated[str | None, typer.Option(help="Otherwise all of the user's.")] = None,
    message_id: Annotated[str | None, typer.Option(help="Only this message of the conversation.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    url: Url = None,
    redis: Redis = None,
    json: Json = False,
) -> None:
    """Erase a user, a conversation or a message everywhere, and print the proof. Exit code 1: not complete."""
    scope = Scope(tenant, user, conversation)
    if message_id is not None:
        scope.require_conversation()
    with existing_store(url, redis) as memory:
        if not yes:
            _ask(scope, message_id, memory.stats(scope).messages, as_json=json)
        proof = memory.erase(scope, message_id)
    if url is not None and not redis and load_settings().redis_url:
        proof = replace(proof, notes=(*proof.notes, _NOT_ASKED))
    if json:
        print_json(proof.as_dict())
    else:
        print_proof(proof.as_dict())
    if not proof.complete:
        raise typer.Exit(1)


def _ask(scope: Scope, message_id: str | None, messages: int, *, as_json: bool) -> None:
    if as_json:
        raise InvalidInput("--yes", "is missing", "with --json nobody is asked: confirm with --yes")
    what = "this message" if message_id else "this conversation" if scope.conversation else "this user"
    among = " (of a conversation with" if message_id else " ("
    typer.confirm(f"Erase {what}{among} {messages} messages)? It cannot be undone", abort=True, err=True)


def print_proof(proof: dict[str, Any]) -> None:
    title = "Erased, completely" if proof["complete"] else "NOT COMPLETE: erase again"
    table = Table("store", "found", "removed", "failed", title=title, title_justify="left")
    for name, part in proof["stores"].items():
        table.add_row(name, *(str(part[column]) for column in ("found", "removed", "failed")))
    screen().print(table)
    for note in proof.get("notes", ()):
        screen().print(f"Note: {note}.")
