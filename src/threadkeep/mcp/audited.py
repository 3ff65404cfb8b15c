"""One log line for each call: who made it, which tool, whose memory, how it ended. No argument, and no answer."""

from __future__ import annotations

import json
import logging
from collections.abc import Generator
from contextlib import contextmanager

from threadkeep.errors import Forbidden, NotFound, RateLimited, ThreadkeepError, Unauthenticated
from threadkeep.identity.audit import Outcome, trail_of
from threadkeep.policy.logged_ids import logged_id

_log = logging.getLogger("threadkeep.mcp")
_DENIED = (Unauthenticated, Forbidden, NotFound, RateLimited)


@contextmanager
def audited(verb: str, request_id: str | None) -> Generator[None]:
    """Whatever it raises goes on."""
    outcome: Outcome = "failed"
    code: str | None = None
    with trail_of(request_id and logged_id(request_id), "mcp") as trail:
        try:
            yield
            outcome = "ok"
        except ThreadkeepError as error:
            code = error.code
            outcome = "denied" if isinstance(error, _DENIED) else "failed"
            raise
        finally:
            line = {"event": "tool", "verb": verb, **trail.access(outcome)}
            _log.info(json.dumps(line | ({"error": code} if code else {}) | trail.ids()))
