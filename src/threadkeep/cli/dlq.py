"""`threadkeep dlq`: the journal entries that were given up on. Never their text: who, how much, why."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Literal, TypeVar

import typer

from threadkeep.cli.options import Json, RedisJournal
from threadkeep.cli.output import confirm, in_columns, print_json, screen
from threadkeep.compose.worker import open_journal
from threadkeep.errors import InvalidInput
from threadkeep.ports.journal import DeadLetter, Journal

T = TypeVar("T")
Ids = Annotated[list[str] | None, typer.Argument(help="As `threadkeep dlq list` shows them.")]
All = Annotated[bool, typer.Option("--all", help="Every one there is.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

_ID = re.compile(r"(p\d{2}/)?\d+-\d+")
_COLUMNS = ("id", "parked_at", "tenant", "user", "conversation", "messages", "reason")

dlq = typer.Typer(name="dlq", no_args_is_help=True, help="Entries of the journal that were given up on.")


@dlq.command("list")
def list_letters(
    limit: Annotated[int, typer.Option(min=1, help="At most so many, the oldest first.")] = 100,
    redis: RedisJournal = None,
    json: Json = False,
) -> None:
    """Show what was given up on, and why."""

    async def read(journal: Journal) -> tuple[list[dict[str, Any]], int]:
        return [_shown(letter) for letter in await journal.dead(limit)], (await journal.depth()).dead

    letters, total = _on_journal(redis, read)
    if json:
        print_json({"total": total, "letters": letters})
        return
    table = in_columns(f"Dead letters: {total}", *_COLUMNS)
    for letter in letters:
        table.add_row(*("–" if letter[name] is None else str(letter[name]) for name in _COLUMNS))
    screen().print(table)


@dlq.command()
def replay(ids: Ids = None, all: All = False, yes: Yes = False, redis: RedisJournal = None, json: Json = False) -> None:
    """Put entries back into the journal, once their cause is mended. Exit code 1: some were not there."""
    _move("replay", ids, redis, everything=all, yes=yes, as_json=json)


@dlq.command()
def drop(ids: Ids = None, all: All = False, yes: Yes = False, redis: RedisJournal = None, json: Json = False) -> None:
    """Give entries up for good. Exit code 1: some were not there."""
    _move("drop", ids, redis, everything=all, yes=yes, as_json=json)


def _move(
    verb: Literal["replay", "drop"],
    ids: list[str] | None,
    redis: str | None,
    *,
    everything: bool,
    yes: bool,
    as_json: bool,
) -> None:
    if everything == bool(ids):
        raise InvalidInput("ids", "are missing" if not ids else "and --all were both given", "give ids or --all")
    if any(not _ID.fullmatch(id) for id in ids or ()):
        raise InvalidInput("ids", "have one that is none of ours", "copy them from `threadkeep dlq list`")
    chosen = [*dict.fromkeys(ids or ())] or _on_journal(redis, _all_ids)
    if not yes and chosen:
        question = "Put {} entries back?" if verb == "replay" else "Drop {} entries? Their messages are lost for good"
        confirm(question.format(len(chosen)), as_json=as_json)
    moved = _on_journal(redis, lambda journal: getattr(journal, verb)(chosen))
    if as_json:
        print_json({"asked": len(chosen), "moved": moved})
    else:
        screen().print(f"{moved} of {len(chosen)} {'put back' if verb == 'replay' else 'dropped'}.")
    if moved < len(chosen):
        raise typer.Exit(1)


def _on_journal(redis: str | None, work: Callable[[Journal], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_journal(redis) as journal:
            return await work(journal)

    return asyncio.run(run())


async def _all_ids(journal: Journal) -> Sequence[str]:
    count = (await journal.depth()).dead
    return [letter.id for letter in await journal.dead(count)] if count else []


def _shown(letter: DeadLetter) -> dict[str, Any]:
    scope = letter.entry.scope if letter.entry else None
    return {
        "id": letter.id,
        "parked_at": letter.parked_at.isoformat(timespec="seconds"),
        "tenant": scope and scope.tenant,
        "user": scope and scope.user,
        "conversation": scope and scope.conversation,
        "messages": len(letter.entry.messages) if letter.entry else None,  # None: it could not be read
        "reason": letter.reason,
    }
