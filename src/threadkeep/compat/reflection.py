"""The reflection module's functions under their own names. They work on one `MemoryModule`, made at the first call from
the environment, or by `configure`.

`MEMORY_CONFIG_PATH` names `config.json`; without it every table and column has the name it has here.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar, cast

from threadkeep.archive.mapped.config import MappedConfig, switched_on
from threadkeep.archive.mapped.io_contract import checked_count, checked_id, checked_object
from threadkeep.compat.turn_keeping import TurnKeeping
from threadkeep.compose.mapped import mapped_config, named_config
from threadkeep.errors import InvalidInput, InvalidSetting, ThreadkeepError
from threadkeep.models.tokens import pack_token_record, tokenize_text
from threadkeep.resilience.breaker import Breaker
from threadkeep.resilience.loops import LoopThread, in_running_loop, log_failure
from threadkeep.settings import Settings, load_settings

__all__ = [
    "MemoryModule",
    "close",
    "configure",
    "flush_once",
    "health",
    "load_recent_context",
    "memory_module",
    "pack_token_record",
    "persist_long_term",
    "store_conversation",
    "store_reflection",
    "store_short_term",
    "tokenize_text",
    "validate_and_normalize",
]

_changing = Lock()
_module: MemoryModule | None = None


def configure(
    config_path: str | None = None, redis_url: str | None = None, database_url: str | None = None
) -> MemoryModule:
    """What is not given here comes from the environment. A module that was in use is closed."""
    global _module
    made = MemoryModule(config_path or named_config(), redis_url, database_url)
    with _changing:
        before, _module = _module, made
    if before is not None:
        before.close()
    return made


def memory_module() -> MemoryModule:
    global _module
    with _changing:
        if _module is None:
            _module = MemoryModule(named_config())
        return _module


def store_short_term(
    conversation_id: str,
    user_id: str,
    user_msg: str | None,
    assistant_msg: str | None,
    reflection: dict[str, Any] | None,
) -> None:
    memory_module().store_short_term(conversation_id, user_id, user_msg, assistant_msg, reflection)


def load_recent_context(conversation_id: str) -> dict[str, Any] | None:
    return memory_module().load_recent_context(conversation_id)


def persist_long_term(records: Sequence[Mapping[str, Any]]) -> int:
    return memory_module().persist_long_term(records)


def store_conversation(
    conversation_id: str,
    user_id: str,
    user_msg: str | None,
    assistant_msg: str | None,
    reflection: dict[str, Any] | None,
) -> None:
    memory_module().store_conversation(conversation_id, user_id, user_msg, assistant_msg, reflection)


def store_reflection(conversation_id: str, user_id: str, reflection: dict[str, Any]) -> None:
    memory_module().store_reflection(conversation_id, user_id, reflection)


def validate_and_normalize(payload: Mapping[str, Any]) -> dict[str, Any]:
    return memory_module().validate_and_normalize(payload)


def flush_once(batch: int | None = None) -> int:
    return memory_module().flush_once(batch)


def health() -> dict[str, Any]:
    return memory_module().health()


def close() -> None:
    """Finish the work that was begun and close the connections; the next call opens them again."""
    global _module
    with _changing:
        before, _module = _module, None
    if before is not None:
        before.close()


T = TypeVar("T")
Work = Callable[[TurnKeeping], Coroutine[Any, Any, T]]
Reflection = Mapping[str, Any]
_log = logging.getLogger("threadkeep.memory")
_PATIENCE_IN_A_LOOP = 0.05  # seconds that a read may hold up the caller's event loop, and that not often
_PATIENCE_TO_CONNECT = 1.0  # the first read of a process: an agent would start each time without its memory


class MemoryModule:
    """Safe to share between threads. Nothing is read or opened before the first call.

    Storing from inside a running event loop returns at once; the turn is stored behind it, in order, and a failure is
    logged. Anywhere else it returns when the turn is kept, or raises. With `"enabled": false` every call does nothing.
    The first call of a process loads the driver of Redis and the tokenizer's vocabulary, wherever it comes from.
    """

    def __init__(
        self,
        config_path: str | Path | None = None,
        redis_url: str | None = None,
        database_url: str | None = None,
        *,
        settings: Settings | None = None,
        claim_after: float = 30,
    ) -> None:
        self._config_path = None if config_path is None else str(config_path)
        self._urls = {"redis_url": redis_url, "database_url": database_url}
        self._given = settings
        self._claim_after = claim_after
        self._thread = LoopThread(at_exit=self._end_worker)
        self._in_loops = Breaker("The latest turn's Redis", failures=1, first_pause=1.0, longest_pause=30.0)
        self._asked_in_a_loop = False
        self._running: Future[None] | None = None
        self._changing = Lock()
        self._made: TurnKeeping | None = None
        self._process = 0

    @cached_property
    def settings(self) -> Settings:
        settings = self._given or load_settings()
        return settings.model_copy(update={name: url for name, url in self._urls.items() if url is not None})

    @cached_property
    def config(self) -> MappedConfig:
        """Raises `InvalidSetting`."""
        return mapped_config(self.settings, self._config_path)

    @cached_property
    def enabled(self) -> bool:
        """Read before all else: a module that is off minds no other setting. Raises `InvalidSetting`."""
        return switched_on(self._config_path)

    @property
    def _keeping(self) -> TurnKeeping:
        """A forked child has one of its own: connections do not survive the fork."""
        with self._changing:
            if self._made is None or self._process != os.getpid():
                made = TurnKeeping(self.settings, self.config, self._claim_after)
                made.load()  # here: a loop that imports for a second answers no read in time
                self._made, self._process = made, os.getpid()
                self._running, self._asked_in_a_loop = None, False  # the parent's
            return self._made

    def store_short_term(
        self,
        conversation_id: str,
        user_id: str,
        user_msg: str | None,
        assistant_msg: str | None,
        reflection: Reflection | None,
    ) -> None:
        """Show the conversation's latest turn, redacted, for `MEMORY_REDIS_TTL_SECONDS`. While Redis is down it is not
        shown, and a warning is logged. Raises `Conflict` when the conversation is another user's."""
        if self.enabled:
            payload = _payload(conversation_id, user_id, user_msg, assistant_msg, reflection)
            self._store(lambda keeping: keeping.keep_latest(payload))

    def load_recent_context(self, conversation_id: str) -> dict[str, Any] | None:
        """Return the latest turn, or None. While Redis is down it is read from the table.

        A plain function cannot wait for an answer and let the caller's event loop run on. In a running loop it waits
        for 50 ms at most, the first time for a second; a Redis that is slower counts as one that has nothing, and is
        then not waited for again before a pause has passed. `await asyncio.to_thread(load_recent_context, id)` holds up
        no loop at all.
        """
        if not self.enabled:
            return None
        if in_running_loop():
            return self._latest_in_a_loop(conversation_id)
        return self._result(lambda keeping: keeping.latest(conversation_id))

    def _latest_in_a_loop(self, conversation_id: str) -> dict[str, Any] | None:
        """An agent answers without memory rather than late, or not at all."""
        if not self._in_loops.allows():
            return None
        asked = self._begin(lambda keeping: keeping.latest(conversation_id))
        patience = _PATIENCE_IN_A_LOOP if self._asked_in_a_loop else _PATIENCE_TO_CONNECT
        self._asked_in_a_loop = True
        try:
            found = asked.result(patience)
        except (ThreadkeepError, TimeoutError) as error:
            self._in_loops.failed(error)  # the call continues: its connection may be open for the next
            _log.warning("the latest turn could not be read: %s", type(error).__name__)
            return None
        self._in_loops.succeeded()
        return found

    def persist_long_term(self, records: Sequence[Mapping[str, Any]]) -> int:
        """Into the mapped tables, all or none; how many stand there. It waits for the database: a coroutine should call
        it through `asyncio.to_thread`. Raises `InvalidInput` naming `records[i].field`."""
        if not self.enabled:
            return 0
        unchecked: Any = records
        if not isinstance(unchecked, Iterable) or isinstance(unchecked, str | bytes | Mapping):
            raise InvalidInput("records", "is no list", "give a list of objects")
        given = [dict(checked_object(f"records[{place}]", record)) for place, record in enumerate(records)]
        return self._result(lambda keeping: keeping.persist(given))

    def store_conversation(
        self,
        conversation_id: str,
        user_id: str,
        user_msg: str | None,
        assistant_msg: str | None,
        reflection: Reflection | None,
    ) -> None:
        """As `store_short_term`, and into the queue that the flush worker empties into the mapped tables."""
        if self.enabled:
            payload = _payload(conversation_id, user_id, user_msg, assistant_msg, reflection)
            self._store(lambda keeping: keeping.keep_and_queue(payload))

    def store_reflection(self, conversation_id: str, user_id: str, reflection: Reflection) -> None:
        """One that comes after its turn: the conversation's latest turn and its row get it; nothing else changes."""
        if self.enabled:
            _check_ids(conversation_id, user_id)
            given = dict(checked_object("reflection", reflection))
            self._store(lambda keeping: keeping.reflect(conversation_id, user_id, given))

    def validate_and_normalize(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Raises `InvalidInput` naming the field."""
        return cast("dict[str, Any]", self._keeping.contract.validate_and_normalize(payload))

    def load_long_term(self, conversation_id: str, limit: int = 20) -> list[dict[str, Any]]:
        """The conversation's latest stored turns, oldest first, their texts read from the tokens; a row that was not
        stored here has none."""
        if not self.enabled:
            return []
        most = checked_count("limit", limit, least=0)
        return cast("list[dict[str, Any]]", self._result(lambda keeping: keeping.recent(conversation_id, most)))

    def flush_once(self, batch: int | None = None) -> int:
        """Store up to `batch` (`MEMORY_FLUSH_BATCH_SIZE`) queued turns; how many were. Raises a lasting outage."""
        if not self.enabled:
            return 0
        most = None if batch is None else checked_count("batch", batch)
        return self._result(lambda keeping: keeping.flush_once(most))

    def start_worker(self) -> None:
        """Keep storing queued turns, on the module's own thread, until `close`. What ends it before is logged."""
        if self.enabled and self._running is None:
            self._running = self._begin(lambda keeping: keeping.flush_on())
            self._running.add_done_callback(partial(log_failure, what="the worker has stopped"))

    def parked(self, most: int = 100) -> list[dict[str, str]]:
        """Turns that were given up on, and why."""
        if not self.enabled:
            return []
        limit = checked_count("most", most)
        found = self._result(lambda keeping: keeping.parked(limit))
        return [{"id": turn.id, "reason": turn.reason, "record": turn.record} for turn in found]

    def replay_parked(self) -> int:
        """Once more into the queue; how many."""
        return self._result(lambda keeping: keeping.replay()) if self.enabled else 0

    def health(self) -> dict[str, Any]:
        """Return `status`: `ok`, `degraded`, `failed` or `disabled`. A setting that cannot be used is reported as a
        store that is down is: nothing is raised."""
        try:
            if not self.enabled:
                return {"enabled": False, "status": "disabled"}
            return self._result(lambda keeping: keeping.health())
        except InvalidSetting as error:
            return {"enabled": None, "status": "failed", "error": str(error)}

    def close(self) -> None:
        """Finish the work that was begun, then close the connections. Closing twice is allowed."""
        self._end_worker()
        self._thread.finish()
        if self._made is not None and self._process == os.getpid():
            self._result(lambda keeping: keeping.close())
        self._made = None
        self._thread.stop()

    def _end_worker(self) -> None:
        running, self._running = self._running, None
        if running is not None and self._process == os.getpid():
            self._result(lambda keeping: keeping.stop_flushing())
            wait([running])  # why it failed, if it did, was logged

    def _begin(self, work: Work[T]) -> Future[T]:
        return self._thread.start(work(self._keeping))

    def _result(self, work: Work[T]) -> T:
        return self._begin(work).result()

    def _store(self, work: Work[Any]) -> None:
        begun = self._begin(work)
        if in_running_loop():
            begun.add_done_callback(log_failure)
        else:
            begun.result()


def _payload(
    conversation_id: str,
    user_id: str,
    user_msg: str | None,
    assistant_msg: str | None,
    reflection: Reflection | None,
) -> dict[str, Any]:
    """Raises `InvalidInput` for a missing id at once, also where the rest happens behind the caller."""
    payload = {
        "conversation_id": conversation_id,
        "user_id": user_id,
        "user_message": user_msg,
        "assistant_message": assistant_msg,
        "reflection": reflection,
    }
    _check_ids(conversation_id, user_id)
    return payload


def _check_ids(conversation_id: str, user_id: str) -> None:
    given = {"conversation_id": conversation_id, "user_id": user_id}
    for field in given:
        checked_id(given, field)
