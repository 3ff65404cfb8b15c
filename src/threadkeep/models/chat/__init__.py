"""Chat models: through LangChain, or offline by quoting what was found; and how long their answers are waited for."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast

from threadkeep.errors import ModelTimeout, ModelUnavailable
from threadkeep.ports.chat import ChatReply

REFUSED = frozenset((400, 401, 403, 404, 413, 422))  # statuses of a request that fails again
_OBJECT = re.compile(r"\{.*\}", re.DOTALL)


def json_object_in(answer: str) -> dict[str, Any]:
    """The JSON object in a model's answer, which may have prose around it; empty where there is none."""
    found = _OBJECT.search(answer)
    try:
        values: Any = json.loads(found[0]) if found else None
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", values) if isinstance(values, dict) else {}


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds for one answer, all attempts together; a failed attempt is repeated after 0.5, 1, 2 … seconds."""

    seconds: float = 60
    retries: int = 2
    first_pause: float = 0.5

    async def answer(self, name: str, ask: Callable[[], Awaitable[ChatReply]]) -> ChatReply:
        """Raise `ModelTimeout`, and what `ask` raises last; only `ModelUnavailable` is worth another attempt."""
        try:
            async with asyncio.timeout(self.seconds):
                for attempt in range(self.retries):
                    try:
                        return await ask()
                    except ModelUnavailable:
                        await asyncio.sleep(self.first_pause * 2**attempt)
                return await ask()
        except TimeoutError:
            raise ModelTimeout(f"{name} took longer than {self.seconds:g} seconds") from None
