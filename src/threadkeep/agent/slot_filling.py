"""Values that redaction masks and a tool will need later in the talk: into their slots, as they are said."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

from threadkeep.errors import StoreError
from threadkeep.ports.slots import Slots
from threadkeep.scope import Scope

_log = logging.getLogger("threadkeep.assistant")


async def fill_slots(slots: Slots, scope: Scope, text: str, redacted: Any, types: Collection[str], ttl: float) -> None:
    """The last one of each type in the message; a store that is away costs the tool its value, and the user nothing."""
    values = {kind: text[start:end] for start, end, kind in getattr(redacted, "spans", ()) if kind in types}
    for kind, value in values.items():
        try:
            await slots.put(scope, kind, value, ttl)
        except StoreError as error:
            _log.warning("a value for tools was not kept (%s)", type(error).__name__)
