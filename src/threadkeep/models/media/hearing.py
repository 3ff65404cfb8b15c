"""The process that decodes and hears recordings: `python -m threadkeep.models.media.hearing`, asked by `Worker`."""

from __future__ import annotations

import io
import json
import os
import sys
from typing import Any, BinaryIO

from threadkeep.errors import InvalidInput, MissingExtra
from threadkeep.models.media.sound import RATE, decoded
from threadkeep.models.media.voice import Listener
from threadkeep.models.media.whisper_weights import WANTED_FOR


def answers(questions: BinaryIO, told: BinaryIO) -> None:
    """Answer until there are no more questions."""
    listeners: dict[str, Listener] = {}
    while line := questions.readline():
        asked = json.loads(line)
        try:
            answer = _answer(asked, io.BytesIO(questions.read(asked["bytes"])), listeners)
        except MissingExtra as error:
            answer = {"error": {"code": error.code, "arguments": [error.extra, WANTED_FOR]}}
        except InvalidInput as error:
            answer = {"error": {"code": error.code, "arguments": [error.field, error.problem, error.fix]}}
        told.write(json.dumps(answer).encode() + b"\n")
        told.flush()


def _answer(asked: dict[str, Any], file: BinaryIO, listeners: dict[str, Listener]) -> dict[str, Any]:
    if asked["work"] == "measure":
        return {"milliseconds": round(len(decoded(file, asked["mime"], asked["most_seconds"])) * 1_000 / RATE)}
    listener = listeners.setdefault("only", Listener(asked["languages"], asked["most_seconds"]))
    return listener.heard(file, asked["mime"], asked["language"])._asdict()


def main() -> None:
    """Answers go to the real standard output; whatever a library prints goes nowhere."""
    with os.fdopen(os.dup(1), "wb") as told, open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        answers(sys.stdin.buffer, told)


if __name__ == "__main__":
    main()
