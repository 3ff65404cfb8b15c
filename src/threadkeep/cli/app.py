"""The commands, gathered, and what becomes of their errors."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from threadkeep import __version__
from threadkeep.cli.chat import chat
from threadkeep.cli.demo import demo
from threadkeep.cli.dlq import dlq
from threadkeep.cli.doctor import doctor
from threadkeep.cli.erase import erase
from threadkeep.cli.export import export
from threadkeep.cli.import_ import import_
from threadkeep.cli.index import index
from threadkeep.cli.keys import keys
from threadkeep.cli.mcp import mcp
from threadkeep.cli.output import give_up_stdout, ready_streams
from threadkeep.cli.redact import redact
from threadkeep.cli.serve import serve
from threadkeep.cli.stats import stats
from threadkeep.cli.upkeep import detach, migrate, retention
from threadkeep.cli.worker import worker
from threadkeep.errors import InvalidInput, ThreadkeepError

FAILED = 1

commands = typer.Typer(name="threadkeep", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
for command in (serve, worker, chat, demo, doctor, stats, export, erase, detach, migrate, redact):
    commands.command()(command)
commands.add_typer(dlq)
commands.add_typer(index)
commands.add_typer(import_)
commands.add_typer(retention)
commands.add_typer(keys)
commands.add_typer(mcp)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"threadkeep {__version__}")
        raise typer.Exit


@commands.callback()
def threadkeep(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Conversation memory for LLM agents: keeps what may be kept, never loses it, forgets on demand."""


def run(arguments: Sequence[str]) -> int:
    """The exit code. Our own errors and wrong usage are printed without a traceback; a traceback means a bug."""
    as_json = "--json" in arguments
    ready_streams()
    try:
        ended = commands(args=list(arguments), prog_name="threadkeep", standalone_mode=False)
        sys.stdout.flush()  # what cannot be written shows itself here at the latest
    except ThreadkeepError as error:
        problem = {"code": error.code, "detail": str(error), "retryable": error.retryable}
        if isinstance(error, InvalidInput):
            problem |= {"field": error.field, "fix": error.fix}
        _report(problem, str(error), as_json=as_json)
        return FAILED
    except typer.TyperException as error:  # wrong usage
        if message := error.format_message():  # empty when it was answered with the help page
            _report({"code": "usage", "detail": message, "retryable": False}, message, as_json=as_json)
        return error.exit_code
    except typer.Abort:
        _report(
            {"code": "aborted", "detail": "nothing was done", "retryable": False},
            "Aborted; nothing was done.",
            as_json=as_json,
        )
        return FAILED
    except OSError as error:  # a full or closed stdout, mostly
        give_up_stdout()
        detail = f"input or output failed ({error.strerror or type(error).__name__})"
        _report({"code": "io_error", "detail": detail, "retryable": False}, detail, as_json=as_json)
        return FAILED
    return ended if isinstance(ended, int) else 0


def _report(problem: dict[str, Any], text: str, *, as_json: bool) -> None:
    sys.stderr.write((json.dumps(problem) if as_json else f"threadkeep: {text}") + "\n")
