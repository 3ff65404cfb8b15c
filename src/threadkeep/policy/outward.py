"""The log that leaves the house: JSON events about what was kept, and nothing that was not.

It takes an `Admission`, which only `admit` can make, so text that policy refused has no way in.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable

from threadkeep.model import Admission, Receipt
from threadkeep.scope import Scope

Sink = Callable[[str], None]
_log = logging.getLogger(__name__)


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
