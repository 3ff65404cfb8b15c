"""A saver whose store may be away: the turn is answered all the same, without a checkpoint, and the log says so."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)

from threadkeep.errors import ScopeErased, StoreError

_log = logging.getLogger("threadkeep.assistant")


class ForgivingSaver(BaseCheckpointSaver[str]):
    """What the graph needs of a saver, in its async form. A thread that was erased meanwhile is left erased."""

    def __init__(self, saver: BaseCheckpointSaver[str]) -> None:
        super().__init__(serde=saver.serde)
        self._saver = saver

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        try:
            return await self._saver.aget_tuple(config)
        except StoreError as error:
            _without(error)
            return None

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        async for found in self._saver.alist(config, filter=filter, before=before, limit=limit):
            yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        try:
            return await self._saver.aput(config, checkpoint, metadata, new_versions)
        except (StoreError, ScopeErased) as error:
            _without(error)
            return config

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        try:
            await self._saver.aput_writes(config, writes, task_id, task_path)
        except (StoreError, ScopeErased) as error:
            _without(error)

    def get_next_version(self, current: str | None, channel: None) -> str:
        return self._saver.get_next_version(current, channel)


def _without(error: Exception) -> None:
    _log.warning("a turn goes on without its checkpoint: %s (%s)", error, type(error).__name__)
