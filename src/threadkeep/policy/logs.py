"""What logs may say: the outward log of what was kept, and the form in which any log shows an id.

The outward log takes an `Admission`, which only `admit` can make, so text that policy refused has no way in.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable
from functools import lru_cache

from threadkeep.model import Admission, Receipt
from threadkeep.policy.redact import redact
from threadkeep.scope import Scope

Sink = Callable[[str], None]
_log = logging.getLogger("threadkeep.policy.outward")


LOG_KEEPS = "the outward log (THREADKEEP_OUTWARD_LOG) still has the texts that it was given: delete them there"


class OutwardLog:
    """Writes one JSON record per message when it is first kept, and one per append; none for a replay.

    The sink gets each record as text without a newline.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def appended(self, scope: Scope, admission: Admission, receipt: Receipt) -> None:
        place = {"tenant": scope.tenant, "user": scope.user, "conversation": scope.conversation}
        new = receipt.kept if receipt.new is None else receipt.new
        if receipt.kept and not new:
            return
        stored = [draft for draft in admission.drafts if draft.id in new]  # not what was erased before
        for draft in stored:
            kind = "UserMessage" if draft.role == "user" else "ModelResponse"
            field = "text" if draft.modality == "text" else "summary"
            self._emit({"event": kind, **place, "id": draft.id, "modality": draft.modality, field: draft.content})
        self._emit({"event": "append", **place, **receipt.as_dict(), "kept": list(new)})

    def _emit(self, values: dict[str, object]) -> None:
        """The messages are stored by now: a log that cannot be written must not make the caller store them again."""
        try:
            self._sink(json.dumps(values))
        except OSError as error:
            _log.error("the outward log was not written (%s)", type(error).__name__)


_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)  # its digits are no personal number
_LONGEST = 128


@lru_cache(maxsize=10_000)
def logged_id(value: str) -> str:
    if _UUID.fullmatch(value):
        return value
    if len(value) <= _LONGEST and value.isprintable() and redact(value).text == value:
        return value
    return "#" + hashlib.blake2b(value.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
