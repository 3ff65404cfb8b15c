"""`threadkeep redact`: mask personal data and secrets in files or in what is piped in."""

from __future__ import annotations

import sys
from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import IO, Annotated, Final, Literal

import typer

from threadkeep.cli.options import Json
from threadkeep.cli.output import print_json
from threadkeep.errors import InvalidInput
from threadkeep.policy.redact import Finding, RedactionRules, Redactor, load_rules

_BLOCK: Final = 256 * 1024
"""Bytes read at a time."""
_MARGIN: Final = 8 * 1024
"""Characters kept back for the next block, so that what spans lines is seen whole."""
_LONGEST: Final = 4 * 1024 * 1024
"""Characters after which a block is cut wherever it is: memory stays bounded."""

Style = Literal["typed", "plain"]


def redact(
    files: Annotated[list[Path] | None, typer.Argument(help="Otherwise stdin.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="What would be masked and why, never the value.")] = False,
    rules: Annotated[Path | None, typer.Option(help="A TOML file of rules; see the reference on redaction.")] = None,
    language: Annotated[str | None, typer.Option(help="Such as vi or pl-PL: whose numbers are believed.")] = None,
    style: Annotated[Style | None, typer.Option(help="[REDACTED:EMAIL] or [REDACTED].")] = None,
    json: Json = False,
) -> None:
    """Write the text with personal data and secrets masked. Reads stdin or files, a block of lines at a time."""
    redactor = Redactor(_rules(rules, style))
    found: list[dict[str, object]] = []
    masked: list[str] = []
    for name, file in _opened(files or []):
        for line, text in _blocks(name, file, redactor, language):
            if explain:
                found += [_place(name, line, text, finding) for finding in redactor.explain(text, language)]
            elif json:
                masked.append(redactor(text, language).text)
            else:
                sys.stdout.buffer.write(redactor(text, language).text.encode())
    if json:
        print_json({"findings": found} if explain else {"text": "".join(masked)})
    elif explain:
        for one in found:
            sys.stdout.write("{file}:{line}:{column} +{length} {type} {rule}\n".format(**one))
    sys.stdout.flush()


def _rules(path: Path | None, style: Style | None) -> RedactionRules:
    try:
        rules = RedactionRules() if path is None else load_rules(path.read_text("utf-8-sig"))
    except OSError as error:
        raise InvalidInput("--rules", f"could not be read ({error.strerror})", "give another file") from error
    except UnicodeDecodeError as error:
        raise InvalidInput("--rules", "is not UTF-8", "save the file as UTF-8") from error
    return rules if style is None else replace(rules, placeholder=style)


def _opened(paths: list[Path]) -> Iterator[tuple[str, IO[bytes]]]:
    if not paths:
        yield "stdin", sys.stdin.buffer
    for path in paths:
        with ExitStack() as stack:
            try:
                file = stack.enter_context(path.open("rb"))
            except OSError as error:
                raise InvalidInput(str(path), f"could not be read ({error.strerror})", "give another file") from error
            yield str(path), file


def _blocks(name: str, file: IO[bytes], redactor: Redactor, language: str | None) -> Iterator[tuple[int, str]]:
    """The number of the first line, from 1, and some lines, cut where nothing is to be masked."""
    line, text = 1, ""
    for piece in _decoded(name, file):
        text += piece
        cut = len(text) if len(text) > _LONGEST else _cut(text, redactor, language)
        if cut:
            yield line, text[:cut]
            line += text.count("\n", 0, cut)
            text = text[cut:]
    if text:
        yield line, text


def _cut(text: str, redactor: Redactor, language: str | None) -> int:
    """The end of a line well before the end, and not inside of anything found."""
    cut = text.rfind("\n", 0, max(0, len(text) - _MARGIN)) + 1
    for start, end, _ in reversed(redactor(text, language).spans if cut else ()):
        if start < cut < end:
            cut = text.rfind("\n", 0, start) + 1
    return cut


def _decoded(name: str, file: IO[bytes]) -> Iterator[str]:
    decoder = getincrementaldecoder("utf-8")()
    line = 1
    while True:
        data = file.read(_BLOCK)
        try:
            text = decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            at = line + error.object[: error.start].count(b"\n")
            raise InvalidInput(name, f"is not UTF-8 (line {at})", "convert it first, as with iconv") from error
        if not data:
            return
        yield text
        line += text.count("\n")


def _place(name: str, first: int, text: str, finding: Finding) -> dict[str, object]:
    start, end, _ = finding.span
    column = start - (text.rfind("\n", 0, start) + 1) + 1
    line = first + text.count("\n", 0, start)
    place = {"file": name, "line": line, "column": column, "length": end - start}
    return {**place, "type": finding.type, "rule": finding.rule}
