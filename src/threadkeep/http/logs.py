"""The service's log as JSON Lines on the given stream. Exceptions are named, their messages left out.

An entry that is written while a request is answered has its `request_id` and its `conversation_id`.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import TextIO

from threadkeep.compose.service import authentication_is_configured
from threadkeep.identity.audit import ids_of_this_request
from threadkeep.settings import Settings

LAG = "threadkeep.lag"
_STRUCTURED = ("threadkeep.http", "threadkeep.mcp", "threadkeep.intent", LAG)  # what they log is JSON already


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        if record.name == "threadkeep.outward":
            return record.getMessage()
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
        }
        line |= ids_of_this_request()
        if record.name in _STRUCTURED:
            return json.dumps(line | json.loads(record.getMessage()))
        line |= {"event": "log", "logger": record.name, "message": record.getMessage()}
        if record.exc_info and record.exc_info[0]:
            line["error"] = record.exc_info[0].__qualname__
        return json.dumps(line)


def log_authentication(settings: Settings) -> None:
    """Log whether callers need a credential; as a warning when they do not."""
    required = authentication_is_configured(settings)
    line = {"event": "starting", "authentication": "required" if required else "none"}
    level = logging.INFO if required else logging.WARNING
    logging.getLogger("threadkeep.http").log(level, json.dumps(line))


def log_to(stream: TextIO) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("threadkeep").setLevel(logging.INFO)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
