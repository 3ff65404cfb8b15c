"""A saver's verbs under one set of names, whether its asynchronous or its synchronous methods are meant.

The synchronous ones are called right here, inside the test's running loop: they must not wait for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6

Open = Callable[..., Awaitable["Verbs"]]
_steps = itertools.count()


class Verbs:
    def __init__(self, saver: Any, mode: str) -> None:
        self.saver = saver
        self._mode = mode

    async def call(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        if self._mode == "async":
            return await getattr(self.saver, f"a{verb}")(*args, **kwargs)
        return getattr(self.saver, verb)(*args, **kwargs)

    async def get(self, config: dict[str, Any]) -> CheckpointTuple | None:
        return await self.call("get_tuple", config)

    async def list(self, config: dict[str, Any] | None, **kwargs: Any) -> list[CheckpointTuple]:
        if self._mode == "async":
            return [one async for one in self.saver.alist(config, **kwargs)]
        return list(self.saver.list(config, **kwargs))

    async def put(
        self,
        config: dict[str, Any],
        values: dict[str, Any],
        *,
        new: Sequence[str] | None = None,
        versions: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        id: str | None = None,
    ) -> dict[str, Any]:
        """A checkpoint with these values; all of them new unless said."""
        step = next(_steps)
        versions = versions or dict.fromkeys(values, f"{step:032}.{0.5:016}")
        checkpoint = empty_checkpoint() | {
            "id": id or str(uuid6(clock_seq=step % 1000)),
            "channel_values": values,
            "channel_versions": versions,
        }
        fresh = {channel: versions[channel] for channel in (versions if new is None else new)}
        return await self.call("put", config, checkpoint, metadata or {"source": "loop", "step": step}, fresh)

    async def values(self, config: dict[str, Any]) -> dict[str, Any]:
        found = await self.get(config)
        assert found is not None
        return found.checkpoint["channel_values"]


def verbs_of(saver: BaseCheckpointSaver[Any], mode: str) -> Verbs:
    return Verbs(saver, mode)


def thread(thread_id: str, ns: str = "", **more: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, **more}}
