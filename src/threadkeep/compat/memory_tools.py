"""The memory tools of an ADK-style agent: they work on plain dict events, on ADK's, and on any session-like object."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from threading import Lock
from typing import Any, Protocol, cast

from threadkeep.adapters.remembering import Remembering
from threadkeep.adapters.stores_thread import StoresThread, borrowed
from threadkeep.errors import InvalidInput, TooLarge
from threadkeep.events import ModelResponse, UserMessage
from threadkeep.memory import Memory
from threadkeep.policy.redact import RedactionRules, Redactor
from threadkeep.policy.session_events import is_persistable, kept_events, kept_messages, session_record
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.resilience.loops import in_running_loop, log_failure, outlasting
from threadkeep.scope import DEFAULT_TENANT, DEFAULT_USER, Scope
from threadkeep.sessions.scratch import DEFAULT_TTL_SECONDS, NAMESPACES, ExpiringValues, check_ttl
from threadkeep.settings import load_settings

_log = logging.getLogger("threadkeep.compat")
_redactor = Redactor(RedactionRules(placeholder="plain"))
# Callers know this form of an address from their own code; it allows hosts that no mail could reach, such as `x_y.com`.
# It starts only where a run of such characters does: a long run without an `@` is walked once, not once per character.
_ADDRESS_LIKE = re.compile(r"(?<![\w.%+-])[\w.%+-]++@[\w.-]+\.[A-Za-z]{2,}")


def redact(text: str) -> str:
    """The text with personal data and secrets replaced by `[REDACTED]`."""
    return _ADDRESS_LIKE.sub("[REDACTED]", _redactor(text).text) if text else text


def is_persistable_event(e: Any) -> bool:
    """User text, a voice or image message that has its summary, and model text; nothing else. ADK's `Event` will do."""
    return any(map(is_persistable, _session_events(e)))


def before_persist(events: Iterable[Any]) -> list[dict[str, Any]]:
    """What may be written of these events: redacted, with only the fields that are allowed to stay.

    An ADK `Event` may give two: what the user typed beside a picture, and the picture's summary.
    """
    return kept_events(_shaped(events), redact)


def persist_memory_from_session(session: Any) -> None:
    """Build the session's memory record from what may be kept and hand it to `session.memory.upsert`, if there is one;
    without one, store it where `DATABASE_URL` and `REDIS_URL` say. ADK's `Session` will do.

    `session` needs `id` and `events`; `state`, `startedAt`, `endedAt`, `memory` and `user_id` are used when present.
    The archive keeps the events' order and `ts`, and of a session that is given again only what is new.
    Inside a running loop it returns at once and what fails is logged; anywhere else it returns when all is stored.
    """
    memory = getattr(session, "memory", None)
    if memory is None and _is_adks(session, "sessions.session", "Session"):
        from threadkeep.adapters.adk import persist_memory_from_session as begin

        begin(session)
        return
    if memory is None:
        memory = MemoryService.of_environment(getattr(session, "user_id", None) or DEFAULT_USER)
    events = _shaped(session.events)
    if isinstance(memory, MemoryService):  # the record's three lists have neither order nor times
        memory.upsert(_record(session, ()) | {"events": kept_messages(events, redact)})
    else:
        memory.upsert(_record(session, events))


def _record(session: Any, events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return session_record(
        session.id,
        events,
        redact,
        getattr(session, "state", None),
        getattr(session, "startedAt", None),
        getattr(session, "endedAt", None),
    )


def _shaped(events: Iterable[Any]) -> list[Mapping[str, Any]]:
    return [shaped for event in events for shaped in _session_events(event)]


def _session_events(event: Any) -> Sequence[Mapping[str, Any]]:
    if isinstance(event, Mapping):
        return [cast("Mapping[str, Any]", event)]
    if _is_adks(event, "events.event", "Event"):
        from threadkeep.adapters.adk.events import session_events

        return session_events(event)
    return []


def _is_adks(value: Any, module: str, name: str) -> bool:
    """Whether it is that class of ADK, without importing ADK: an object of it means that ADK is loaded."""
    adk = sys.modules.get(f"google.adk.{module}")
    return adk is not None and isinstance(value, getattr(adk, name))


def put_tool_cache(state: Any, key: str, value: Any, ttl_seconds: int = 900) -> None:
    """Keep a tool's result for the next turns: under `tool.temp.`, with a TTL, never persisted. ADK's `State` will do.

    Raises `InvalidInput` for a state without `set`, and for a TTL of more than half an hour.
    """
    if _is_adks(state, "sessions.state", "State"):
        from threadkeep.adapters.adk import put_tool_cache as put

        put(state, key, value, ttl_seconds)
        return
    if not hasattr(state, "set"):
        raise InvalidInput(
            "state", "has no set(…)", "give threadkeep.compat.State, or what ADK gives a tool: tool_context.state"
        )
    state.set(f"tool.temp.{key}", value, ttl=ttl_seconds, persist=False, ephemeral=True)


class State:
    """Lives in this process only. `tool.temp.*`, `retrieval.cache.*` and `features.*` expire and cannot persist."""

    def __init__(self, clock: Clock = system_clock, never_persist: Iterable[str] = ()) -> None:
        """`never_persist` flags further namespaces, written `name.*`, beside the three that always are."""
        self._scratch = ExpiringValues(clock)
        self._facts: dict[str, Any] = {}
        flagged = tuple(never_persist)
        if any(len(namespace) < 3 or not namespace.endswith(".*") for namespace in flagged):
            raise InvalidInput("never_persist", "names no namespace", "write it as name.*")
        self._namespaces = (*NAMESPACES, *(namespace.removesuffix("*") for namespace in flagged))

    def set(
        self,
        name: str,
        value: Any,
        ttl: float | None = None,
        persist: bool = False,
        ephemeral: bool = True,
        *,
        ttlMs: float | None = None,
    ) -> None:
        """`ttl` in seconds or `ttlMs`; a scratch value with neither gets fifteen minutes. Raises `InvalidInput`."""
        if not name.startswith(self._namespaces):
            self._facts[name] = value
            return
        if persist or not ephemeral:
            raise InvalidInput("persist", f"{name} is scratch state", "leave persist=False and ephemeral=True")
        if ttl is None:
            ttl = DEFAULT_TTL_SECONDS if ttlMs is None else ttlMs / 1000
        check_ttl(ttl)
        self._scratch.put(name, value, ttl)

    def get(self, name: str, default: Any = None) -> Any:
        found = self._scratch.get(name) if name.startswith(self._namespaces) else self._facts.get(name)
        return default if found is None else found


_OurEvent = UserMessage | ModelResponse
_BY_POSITION = re.compile(r"(user|media|model)-([0-9]+)-([0-9a-f]{8})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECONDS = 1e11  # a number of seconds that is as large lies beyond the year 5000
_PAGE = 1_000


class StartsWork(Protocol):
    """`SyncMemory`, or what opens a memory when it is first needed."""

    def start(self, work: Callable[[Memory], Coroutine[Any, Any, None]]) -> Future[None]: ...


class MemoryService:
    """`session.memory` for `persist_memory_from_session`: a record goes in, the archive holds its messages.

    Upserts are idempotent: a message's id is made of its time and text, so what is stored is not stored again.

    A record's `events`, which `persist_memory_from_session` gives, are kept in their order and with their `ts`; of its
    three lists, questions and answers are interleaved, pair by pair. An event without `ts` is known by its position in
    the session; where the session has lost its oldest events, by how it continues what is stored. It is stored with the
    record's `endedAt`, a conversation's first message with `startedAt`. The record's intent, and a summary of
    what is kept of the session, outlive its messages.

    Called from a running event loop, `upsert` returns at once and the record is stored behind it, in order; `flush`
    waits for it, and `asyncio.run` does not end before. Called from anywhere else it returns when the record is stored.
    """

    def __init__(self, memory: StartsWork, user: str, tenant: str = DEFAULT_TENANT) -> None:
        self._memory = memory
        self._remembering = Remembering()
        self._scope = Scope(tenant, user)
        self._last: Future[None] | None = None
        self._stored: dict[str, tuple[int | None, list[str]]] = {}  # by session: its generation, and ids in order

    @classmethod
    def of_environment(cls, user: str) -> MemoryService:
        """One for each user, `DATABASE_URL` and `REDIS_URL`, open until the process ends."""
        settings = load_settings()
        urls = settings.database_url, settings.redis_url
        with _making:
            if urls not in _opened:
                _opened[urls] = _OpenedLater(borrowed(None))
            return _services.setdefault((*urls, user), cls(_opened[urls], user))

    def upsert(self, record: Mapping[str, Any]) -> None:
        """Raises `InvalidInput` when the record names no session."""
        session_id = record.get("sessionId")
        if not isinstance(session_id, str):
            raise InvalidInput("sessionId", "is missing", "a record names its session")
        scope = self._scope.with_conversation(session_id)
        before = self._last
        self._last = self._memory.start(lambda memory: self._upsert(memory, scope, record, before))
        if in_running_loop():
            waiting = asyncio.ensure_future(outlasting(self._last))
            _behind.add(waiting)
            waiting.add_done_callback(_stored)
        else:
            self._last.result()

    def flush(self, timeout: float | None = 30) -> None:
        """Wait until every record handed in is stored; raises what the last one raised."""
        if self._last is not None:
            self._last.result(timeout)

    async def _upsert(
        self, memory: Memory, scope: Scope, record: Mapping[str, Any], before: Future[None] | None
    ) -> None:
        if before is not None:
            await asyncio.wait([asyncio.wrap_future(before)])
        known = await self._known(memory, scope)
        meta: Mapping[str, Any] = record.get("meta") or {}
        started, ended = _moment(meta.get("startedAt")), _moment(meta.get("endedAt"))
        first = ended if known or started is None else started
        events = _new_in(record, known)
        events = [one if one.ts else replace(one, ts=ended if number else first) for number, one in enumerate(events)]
        if events:
            await _append(memory, scope, events)
            known += [event.id for event in events if event.id]
        await self._remembering.keep(memory, scope, meta.get("intent"), meta.get("locale"))

    async def _known(self, memory: Memory, scope: Scope) -> list[str]:
        """Ids that are stored, in order; this service's own stay among them unless the conversation is erased."""
        page = await memory.history(scope, limit=1)
        generation, session_id = page.scope.generation, scope.require_conversation()
        if session_id not in self._stored or self._stored[session_id][0] != generation:
            ids: list[str] = [message.id for message in page.messages]
            while page.before is not None:
                page = await memory.history(scope, limit=_PAGE, before=page.before)
                ids = [*(message.id for message in page.messages), *ids]
            self._stored[session_id] = (generation, ids)
        return self._stored[session_id][1]


async def _append(memory: Memory, scope: Scope, events: Sequence[_OurEvent]) -> None:
    """Store the events; one that is too large is left out and logged, and costs no other."""
    try:
        await memory.append(scope, events)
    except TooLarge as error:
        if len(events) == 1:
            _log.warning("a message is left out of memory: %s", error)
            return
        half = len(events) // 2
        await _append(memory, scope, events[:half])
        await _append(memory, scope, events[half:])


def _new_in(record: Mapping[str, Any], known: Sequence[str]) -> list[_OurEvent]:
    stored, new = set(known), list[_OurEvent]()
    for event, by_position in _named(record, known):
        if event.ts is not None and by_position in stored:
            # An earlier version stored it, and all before it: what of that is not stored now was erased.
            new.clear()
        elif event.id not in stored:
            new.append(event)
    return new


def _named(record: Mapping[str, Any], known: Sequence[str]) -> Iterator[tuple[_OurEvent, str]]:
    """Events, and the ids they had in earlier versions. Equal time and text, or equal position and text, give the same
    id: a stored event is not stored again, and an erased one stays erased.

    Another text at a position, as in a new conversation under an old session id, is another message.
    """
    given, times = _given(record), Counter[str]()
    texts = [_text(one) for one in given]
    for one, (kind, digest), by_position in zip(given, texts, _by_position(texts, known), strict=True):
        id_, ts = by_position, _moment(one.get("ts"))
        if ts is not None:
            id_ = f"{kind}-at-{(ts - _EPOCH) // timedelta(microseconds=1)}-{digest}"
            times[id_] += 1
            id_ += f"-{times[id_]}" if times[id_] > 1 else ""
        yield _event(one, id_, ts), by_position


def _given(record: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    if "events" in record:
        return record["events"]
    questions = [{"kind": "UserMessage", "text": text} for text in record.get("user_messages") or ()]
    questions += [{"kind": "UserMessage", **item} for item in record.get("user_media_summaries") or ()]
    answers = [{"kind": "ModelResponse", "text": text} for text in record.get("model_responses") or ()]
    return [one for pair in zip_longest(questions, answers) for one in pair if one is not None]


def _text(given: Mapping[str, Any]) -> tuple[str, str]:
    """Its kind, and a digest of its text."""
    said = "media" if "summary" in given else "user"
    text = str(given["summary"] if "summary" in given else given["text"])
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return "model" if given["kind"] == "ModelResponse" else said, digest


def _by_position(texts: list[tuple[str, str]], known: Sequence[str]) -> list[str]:
    """Ids by position. A session may have lost its oldest events: it then starts where most of its ids are known."""
    placed = [match.groups() for id_ in known if (match := _BY_POSITION.fullmatch(id_))]
    starts = [Counter[str]()]
    for start, (first, _, digest) in enumerate(placed):
        if [(first, digest)] == texts[:1]:
            before = {kind: int(position) + 1 for kind, position, _ in placed[:start]}
            starts.append(Counter(before | {kind: int(position) for kind, position, _ in reversed(placed[start:])}))
    stored = set(known)
    return max((_ids(texts, positions) for positions in starts), key=lambda ids: len(stored.intersection(ids)))


def _ids(texts: Sequence[tuple[str, str]], positions: Counter[str]) -> list[str]:
    ids: list[str] = []
    for kind, digest in texts:
        ids.append(f"{kind}-{positions[kind]}-{digest}")
        positions[kind] += 1
    return ids


def _event(given: Mapping[str, Any], id_: str, ts: datetime | None) -> _OurEvent:
    if given["kind"] == "ModelResponse":
        return ModelResponse(given["text"], id=id_, ts=ts)
    if "summary" not in given:
        return UserMessage(given["text"], id=id_, ts=ts)
    facts: Mapping[str, Any] = given.get("meta") or {}
    meta = {key: value for key, value in facts.items() if value is not None}
    return UserMessage(modality=given["modality"], summary=given["summary"], meta=meta, id=id_, ts=ts)


def _moment(given: Any) -> datetime | None:
    """Of seconds or milliseconds since 1970, a datetime or ISO 8601; UTC where no zone is named."""
    try:
        if isinstance(given, int | float) and not isinstance(given, bool):
            seconds = given / 1_000 if abs(given) >= _MILLISECONDS else given
            return _EPOCH + timedelta(seconds=seconds)
        found = datetime.fromisoformat(given) if isinstance(given, str) else given
        if isinstance(found, datetime):
            return found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    return None


class _OpenedLater:
    def __init__(self, stores: StoresThread) -> None:
        self._stores = stores

    def start(self, work: Callable[[Memory], Coroutine[Any, Any, None]]) -> Future[None]:
        return self._stores.begin(lambda stores: work(stores.memory))


_making = Lock()
_opened: dict[tuple[str, str | None], _OpenedLater] = {}
_services: dict[tuple[str, str | None, str], MemoryService] = {}
_behind: set[asyncio.Task[None]] = set()  # a task without a reference may be collected before it is done


def _stored(waiting: asyncio.Task[None]) -> None:
    _behind.discard(waiting)
    log_failure(waiting, "a memory record was not stored")
