"""`threadkeep erase`: forget, and prove it."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from threadkeep.cli.options import Json, Redis, Url, existing_store
from threadkeep.cli.output import confirm, print_json, screen
from threadkeep.errors import InvalidInput
from threadkeep.scope import DEFAULT_TENANT, Scope


def erase(
    user: Annotated[str, typer.Option(help="Whose memory.")],
    tenant: Annotated[str, typer.Option()] = DEFAULT_TENANT,
    conversation: Annotated[str | None, typer.Option(help="Otherwise all of the user's.")] = None,
    message_id: Annotated[str | None, typer.Option(help="Only this message of the conversation.")] = None,
    text: Annotated[str | None, typer.Option(help="Only messages that say this, wherever they stand.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    url: Url = None,
    redis: Redis = None,
    json: Json = False,
) -> None:
    """Erase a user, a conversation, a message or a text everywhere, and print the proof. Exit code 1: not complete."""
    scope = Scope(tenant, user, conversation)
    if message_id is not None and text is not None:
        raise InvalidInput("--text", "is given beside --message-id", "give one of the two")
    if message_id is not None:
        scope.require_conversation()
    with existing_store(url, redis) as memory:
        if not yes:
            whole = "conversation" if scope.conversation else "user"
            what = "this message" if message_id else "every message that says this text" if text else f"this {whole}"
            among = f" (of a {whole} with" if message_id or text else " ("
            counted = f"{memory.stats(scope).messages} messages)"
            confirm(f"Erase {what}{among} {counted}? It cannot be undone", as_json=json)
        proof = memory.erase(scope, message_id) if text is None else memory.forget(scope, text)
    if json:
        print_json(proof.as_dict())
    else:
        print_proof(proof.as_dict())
    if not proof.complete:
        raise typer.Exit(1)


def print_proof(proof: dict[str, Any]) -> None:
    title = "Erased, completely" if proof["complete"] else "NOT COMPLETE: erase again"
    table = Table("store", "found", "removed", "failed", title=title, title_justify="left")
    for name, part in proof["stores"].items():
        table.add_row(name, *(str(part[column]) for column in ("found", "removed", "failed")))
    screen().print(table)
    for note in proof.get("notes", ()):
        screen().print(f"Note: {note}.")
