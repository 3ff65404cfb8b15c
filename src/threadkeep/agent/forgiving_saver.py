"""A saver whose store may be away: the turn is answered all the same, without a checkpoint, and the log says so."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple

from threadkeep.adapters.langgraph import ThreadkeepSaver
from threadkeep.errors import ScopeErased, StoreError, ThreadkeepError

_log = logging.getLogger("threadkeep.assistant")


class ForgivingSaver(ThreadkeepSaver):
    """In what a graph asks of a saver in its async form. A thread that was erased meanwhile is left erased."""

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        try:
            return await super().aget_tuple(config)
        except StoreError as error:
            _without(error)
            return None

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        try:
            return await super().aput(config, checkpoint, metadata, new_versions)
        except (StoreError, ScopeErased) as error:
            _without(error)
            return config

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        try:
            await super().aput_writes(config, writes, task_id, task_path)
        except (StoreError, ScopeErased) as error:
            _without(error)

    async def aend_turn(self, config: RunnableConfig, *, abandon: bool = False) -> bool:
        """What could not be ended goes on resting under the turn's key, until it is swept up."""
        try:
            return await super().aend_turn(config, abandon=abandon)
        except ThreadkeepError as error:
            _without(error)
            return False


def _without(error: Exception) -> None:
    _log.warning("a turn goes on without its checkpoint: %s (%s)", error, type(error).__name__)
