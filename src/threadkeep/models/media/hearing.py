"""The process that decodes and transcribes recordings for `Worker`: `python -m threadkeep.models.media.hearing`."""

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


def answers(questions: BinaryIO, answers_file: BinaryIO) -> None:
    """Answer until there are no more questions."""
    listeners: dict[str, Listener] = {}
    while line := questions.readline():
        request = json.loads(line)
        try:
            answer = _answer(request, io.BytesIO(questions.read(request["bytes"])), listeners)
        except MissingExtra as error:
            answer = {"error": {"code": error.code, "arguments": [error.extra, WANTED_FOR]}}
        except InvalidInput as error:
            answer = {"error": {"code": error.code, "arguments": [error.field, error.problem, error.fix]}}
        answers_file.write(json.dumps(answer).encode() + b"\n")
        answers_file.flush()


def _answer(request: dict[str, Any], file: BinaryIO, listeners: dict[str, Listener]) -> dict[str, Any]:
    if request["work"] == "measure":
        return {"milliseconds": round(len(decoded(file, request["mime"], request["most_seconds"])) * 1_000 / RATE)}
    listener = listeners.setdefault("only", Listener(request["languages"], request["most_seconds"]))
    return listener.heard(file, request["mime"], request["language"])._asdict()


def main() -> None:
    """Answers go to the real standard output; whatever a library prints goes nowhere."""
    with os.fdopen(os.dup(1), "wb") as answers_file, open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        answers(sys.stdin.buffer, answers_file)


if __name__ == "__main__":
    main()
