"""The reflection module's part of Redis: the latest turn under its literal key, and a queue of turns to be stored.

`conv:<conversation_id>:latest` knows no tenant, so whose it is stands in the value, and only they may replace it.
The queue is a stream of its own beside the journal: at least once, with dead letters for what was given up on.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from threadkeep.errors import Conflict, StoreUnavailable
from threadkeep.ports.journal import Depth, ParkedTurn, QueuedTurn, TurnRecord, latest_of
from threadkeep.scope import DEFAULT_TENANT, DEFAULT_USER
from threadkeep.sessions.redis import scripts
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.sessions.redis.encoding import json_object, to_json
from threadkeep.sessions.redis.journal import Fields, Stream

QUEUE, DEAD = "threadkeep:{turns}:queue", "threadkeep:{turns}:dead"
_MOST_RACES = 64
_SILENT_SECONDS = 600
_SHOWN_AS = {"user_id": "user_id", "user_message": "user_msg", "assistant_message": "assistant_msg"}
_LIKE_A_FULL_NAME = re.compile(r"@|\{p\d\d\}:")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def latest_key(conversation_id: str) -> str:
    """Return the literal key; an id that looks like another user's key (see `keys`) is written in full."""
    whose = f"@{DEFAULT_TENANT}:{DEFAULT_USER}:" if _LIKE_A_FULL_NAME.match(conversation_id) else ""
    return f"conv:{whose}{conversation_id}:latest"


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """What the literal key shows, and the time that was given out last: of the very same turn, or of another."""

    value: dict[str, Any] | None
    began: str | None
    same: bool

    def turn(self, conversation_id: str) -> dict[str, Any]:
        """What is shown, with its time; where they are of the same turn."""
        value = self.value or {}
        said = {name: value.get(shown) for name, shown in _SHOWN_AS.items()}
        return {"conversation_id": conversation_id, **said, "created_at": self.began}

    def may_be(self, turn: Mapping[str, Any]) -> bool:
        """Return whether the turn may be the latest, as far as is known here."""
        if self.value is not None:
            return _mark_of_shown(self.value) == _mark_of(turn)
        return self.began is None or turn["created_at"] >= self.began


class RedisTurns:
    """`claim_after` is how long, in seconds, a turn may rest with a worker before another takes it over."""

    def __init__(self, client: RedisClient, ttl_seconds: float, claim_after: float = 30) -> None:
        self._client = client
        self._ttl = int(ttl_seconds * 1_000)
        self._queue = Stream(client, QUEUE, DEAD, claim_after, _SILENT_SECONDS)

    async def next_moment(self, record: TurnRecord) -> str:
        """The turn's time, or as little later as makes it later than any turn of this conversation before."""
        now = (datetime.fromisoformat(record["created_at"]) - _EPOCH) // _MICROSECOND
        arguments = [now, self._ttl, _mark_of(record)]
        moment = await self._client.run(scripts.NEXT_MOMENT, [_clock_key(record["conversation_id"])], arguments)
        return _time_of(moment)

    async def keep_latest(self, record: TurnRecord) -> None:
        """Raises `Conflict` when the conversation is another user's; nothing is written then."""
        key, value = latest_key(record["conversation_id"]), to_json(latest_of(record))
        seen = b""
        for _ in range(_MOST_RACES):
            digest = hashlib.sha1(seen, usedforsecurity=False).hexdigest() if seen else ""
            reply = await self._client.run(scripts.KEEP_TURN, [key], [digest, value, self._ttl])
            if reply[0] == b"kept":
                return
            seen = reply[1]
            owner = (json_object(seen) or {}).get("user_id")
            if owner is not None and owner != record["user_id"]:
                raise Conflict("this conversation_id belongs to another user_id; use a new conversation_id")
        raise StoreUnavailable("too many others are writing to this conversation; try again")

    async def set_latest_reflection(self, record: TurnRecord) -> bool:
        """A reflection that came after its turn. False when another turn is shown, or none; slides no TTL."""
        key = latest_key(record["conversation_id"])
        for _ in range(_MOST_RACES):
            held = await self._client.command("GET", key)
            found = json_object(held)
            if held is None or found is None or _mark_of_shown(found) != _mark_of(record):
                return False
            left = int(await self._client.command("PTTL", key))
            kept: Any = found.get("token_data")
            tokens: dict[str, Any] = {
                **(kept if isinstance(kept, dict) else {}),
                "reflection": record["token_data"]["reflection"],
            }
            value = found | {"reflection": record["reflection"], "token_data": tokens}
            digest = hashlib.sha1(held, usedforsecurity=False).hexdigest()
            reply = await self._client.run(scripts.KEEP_TURN, [key], [digest, to_json(value), max(1, left)])
            if reply[0] == b"kept":
                return True
        raise StoreUnavailable("too many others are writing to this conversation; try again")

    async def shown(self, conversation_id: str) -> ShownTurn:
        moment, _, mark = (await self._client.command("GET", _clock_key(conversation_id)) or b"").partition(b" ")
        value = await self.latest(conversation_id)
        same = value is not None and _mark_of_shown(value).encode() == mark
        return ShownTurn(value, _time_of(moment) if moment.isdigit() else None, same)

    async def latest(self, conversation_id: str) -> dict[str, Any] | None:
        return json_object(await self._client.command("GET", latest_key(conversation_id)))

    async def enqueue(self, record: TurnRecord) -> None:
        await self._client.command("XADD", QUEUE, "*", "record", to_json(record))

    async def claim(self, consumer: str, count: int, wait: float = 0) -> Sequence[QueuedTurn]:
        entries = await self._queue.claim(consumer, count)
        if not entries and wait > 0:
            await self._queue.wait_for_more(wait)
            entries = await self._queue.claim(consumer, count)
        return [QueuedTurn(sid.decode(), json_object(fields.get(b"record"))) for sid, fields in entries]

    async def settle(self, entries: Sequence[QueuedTurn]) -> None:
        await self._settle("", entries)

    async def park(self, entry: QueuedTurn, reason: str) -> bool:
        return await self._settle(reason, [entry]) > 0

    async def _settle(self, reason: str, entries: Sequence[QueuedTurn]) -> int:
        ids = (turn.id for turn in entries)
        return int(await self._client.run(scripts.SETTLE_TURNS, [QUEUE, DEAD], [reason, *ids]))

    async def give_back(self, consumer: str) -> int:
        return await self._queue.give_back(consumer)

    async def retire(self, consumer: str | None = None) -> int:
        return await self._queue.retire(consumer)

    async def parked(self, most: int = 100) -> list[ParkedTurn]:
        """Return the dead letters, oldest first."""

        def text(fields: Fields, name: bytes) -> str:
            return fields.get(name, b"").decode("utf-8", "replace")

        return [
            ParkedTurn(sid.decode(), text(fields, b"reason"), text(fields, b"record"))
            for sid, fields in await self._queue.dead_letters(most)
        ]

    async def replay(self, most: int = 1_000) -> int:
        """Put dead letters back into the queue; return how many there were."""
        return int(await self._client.run(scripts.REPLAY_TURNS, [DEAD, QUEUE], [most]))

    async def depth(self) -> Depth:
        return await self._queue.depth()

    async def check_writes(self) -> None:
        """Writes nothing. Raises what a turn would be refused with."""
        for key in (QUEUE, latest_key("health")):
            await self._client.run(scripts.TAKES, (key,) * 12, ())

    async def close(self) -> None:
        await self._client.close()


def _clock_key(conversation_id: str) -> str:
    return f"threadkeep:turn-clock:{conversation_id}"


def _time_of(moment: bytes) -> str:
    return (_EPOCH + timedelta(0, 0, int(moment))).isoformat()


def _mark_of(turn: Mapping[str, Any]) -> str:
    """Return a digest of owner and texts: the same for a turn and for what is shown of it, whatever its reflection."""
    said = json.dumps([turn.get(name) for name in _SHOWN_AS])
    return hashlib.sha1(said.encode(), usedforsecurity=False).hexdigest()


def _mark_of_shown(value: Mapping[str, Any]) -> str:
    return _mark_of({name: value.get(shown) for name, shown in _SHOWN_AS.items()})
