"""The journal on Redis Streams: one stream, or on a cluster one for each partition.

An entry is stream fields, each plain text or JSON, under a version.
`v` is 1. `scope` is `[tenant, user, conversation]`; `generation` a number,
empty when the archive was down and it was not known; `key` and `payload` digests in hexadecimal,
`key` empty when the append had none; `receipt` the receipt that was answered; `messages` a list of
`{"seq", "id", "role", "content", "ts"}` with `origin`, `stored_at`, `modality`, `language` and `meta` where they are
not the defaults, and `exact` (base64) where JSON cannot carry the content. A dead letter has `reason` and `parked`
(milliseconds) besides.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from threadkeep.errors import InvalidScope
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.journal import DeadLetter, Depth, JournalEntry
from threadkeep.scope import Scope
from threadkeep.sessions.redis import scripts
from threadkeep.sessions.redis.client import RedisClient, pairs_in
from threadkeep.sessions.redis.encoding import (
    NO_ANSWERS,
    HotOptions,
    messages_from_json,
    read_receipt,
    to_json,
    tombstone,
)
from threadkeep.sessions.redis.scripts import Argument

VERSION = b"1"
Fields = Mapping[bytes, bytes]
_MALFORMED = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, InvalidScope)


class UnreadableEntry(ValueError):
    """Its message says what is wrong and quotes nothing of the entry."""


def read_entry(id: str, fields: Fields) -> JournalEntry:
    """Raises `UnreadableEntry`."""
    if fields.get(b"v") != VERSION:
        raise UnreadableEntry("the entry is of a version that this Threadkeep does not know")
    try:
        tenant, user, conversation = json.loads(fields[b"scope"])
        generation = fields[b"generation"]
        return JournalEntry(
            id=id,
            scope=Scope(tenant, user, conversation, int(generation) if generation else None),
            messages=messages_from_json(fields[b"messages"]),
            receipt=read_receipt(fields[b"receipt"]),
            payload=bytes.fromhex(fields[b"payload"].decode()),
            key=bytes.fromhex(fields[b"key"].decode()) or None,
            queued_at=moment_of(id),
        )
    except _MALFORMED as error:  # whatever stands there, it becomes one dead letter and no more
        raise UnreadableEntry(f"the entry cannot be read ({type(error).__name__})") from error


def scope_in(fields: Fields) -> Scope | None:
    """Whose entry it is, also where the rest of it cannot be read."""
    try:
        tenant, user, conversation = json.loads(fields[b"scope"])
        scope = Scope(tenant, user, conversation)
        scope.require_conversation()
    except _MALFORMED:
        return None
    return scope


def read_dead_letter(id: str, fields: Fields) -> DeadLetter:
    try:
        entry = read_entry(id, fields)
    except UnreadableEntry:
        entry = None
    reason = fields.get(b"reason", b"").decode("utf-8", "replace")
    return DeadLetter(id, reason, _when(int(fields.get(b"parked", b"0"))), entry)


def moment_of(id: str) -> datetime:
    """A stream id begins with the server's time in milliseconds."""
    return _when(int(id.rpartition("/")[2].partition("-")[0]))


def _when(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1_000, UTC)


_LONGEST_REASON = 500
_LOOK_AGAIN = 0.05  # on a cluster no single command can wait for all partitions
_AT_ONCE = 32
_FIRST = "0-0"


class RedisJournal:
    """`stale_seconds`: an entry that a consumer has held for so long is taken to be a dead one's.

    `silent_seconds`: a consumer that holds nothing and has not claimed for so long is taken to be dead.
    """

    def __init__(
        self,
        client: RedisClient,
        options: HotOptions = HotOptions(),  # noqa: B008
        stale_seconds: float = 10,
        clock: Clock = system_clock,
        silent_seconds: float = 600,
    ) -> None:
        self._client = client
        self._frame = options.frame()
        self._stale_seconds = stale_seconds
        self._silent_seconds = silent_seconds
        self._clock = clock
        self._partitions: tuple[tuple[str, Stream], ...] = ()  # by tag
        self._next = 0  # the partition to begin with, so that none is always last

    async def claim(self, consumer: str, count: int, wait: float = 0) -> Sequence[JournalEntry]:
        deadline = asyncio.get_running_loop().time() + wait
        while True:
            found = await self._sweep(consumer, count)
            left = deadline - asyncio.get_running_loop().time()
            if found or left <= 0:
                return found
            await self._wait_for_more(left)

    async def standing(self, entries: Sequence[JournalEntry]) -> Sequence[JournalEntry]:
        keys = (await self._client.link()).keys

        async def stands(entry: JournalEntry) -> bool:
            tag, sid = _parts(entry.id)
            return bool(await self._client.command("XRANGE", keys.journal(tag), sid, sid))

        answers = await asyncio.gather(*map(stands, entries))
        return [entry for entry, there in zip(entries, answers, strict=True) if there]

    async def settle(self, entries: Sequence[JournalEntry]) -> None:
        by_scope: dict[Scope, list[JournalEntry]] = defaultdict(list)
        for entry in entries:
            by_scope[entry.scope].append(entry)
        some = asyncio.Semaphore(_AT_ONCE)

        async def one(scope: Scope, settled: list[JournalEntry]) -> None:
            async with some:
                await self._on_conversation(scripts.SETTLE, scope, _settled(settled))

        await asyncio.gather(*(one(scope, settled) for scope, settled in by_scope.items()))

    async def evict(self, scope: Scope) -> None:
        await self._on_conversation(scripts.EVICT, scope, ())

    async def erase(self, scope: Scope, message_ids: Sequence[str]) -> None:
        for id_ in message_ids:
            await self._on_conversation(scripts.ERASE_MESSAGE, scope, [to_json(id_), tombstone(scope, id_)])

    async def park(self, entry: JournalEntry, reason: str) -> bool:
        return await self._move("park", entry.id, entry.scope, _seqs(entry), reason)

    async def give_back(self, consumer: str) -> int:
        streams = await self._streams()
        return sum(await asyncio.gather(*(stream.give_back(consumer) for _, stream in streams)))

    async def retire(self, consumer: str | None = None) -> int:
        streams = await self._streams()
        return sum(await asyncio.gather(*(stream.retire(consumer) for _, stream in streams)))

    async def depth(self) -> Depth:
        parts = await asyncio.gather(*(stream.depth() for _, stream in await self._streams()))
        return Depth(
            sum(part.entries for part in parts),
            sum(part.claimed for part in parts),
            sum(part.dead for part in parts),
            max(part.oldest_seconds for part in parts),
        )

    async def unsettled(self, of: Mapping[str, str] | None = None) -> Mapping[str, str]:
        """By partition, the id of the newest entry."""
        keys = (await self._client.link()).keys
        tags = keys.tags if of is None else tuple(of)
        found = await asyncio.gather(*(self._unsettled_in(keys.journal(tag), (of or {}).get(tag)) for tag in tags))
        return {tag: sid for tag, sid in zip(tags, found, strict=True) if sid}

    async def _unsettled_in(self, stream: str, up_to: str | None) -> str | None:
        if up_to is None:
            newest: list[Any] = await self._client.command("XREVRANGE", stream, "+", "-", "COUNT", 1)
            return newest[0][0].decode() if newest else None
        return up_to if await self._client.command("XRANGE", stream, "-", up_to, "COUNT", 1) else None

    async def dead(self, limit: int = 100) -> Sequence[DeadLetter]:
        streams = await self._streams()
        parts = await asyncio.gather(*(stream.dead_letters(limit) for _, stream in streams))
        letters = [
            read_dead_letter(_id(tag, sid), fields)
            for (tag, _), part in zip(streams, parts, strict=True)
            for sid, fields in part
        ]
        return sorted(letters, key=lambda letter: letter.parked_at)[:limit]

    async def replay(self, ids: Sequence[str]) -> int:
        return await self._each("replay", ids)

    async def drop(self, ids: Sequence[str]) -> int:
        return await self._each("drop", ids)

    async def close(self) -> None:
        await self._client.close()

    async def _streams(self) -> tuple[tuple[str, Stream], ...]:
        if not self._partitions:
            keys = (await self._client.link()).keys
            stale, silent = self._stale_seconds, self._silent_seconds
            self._partitions = tuple(
                (tag, Stream(self._client, keys.journal(tag), keys.dead(tag), stale, silent)) for tag in keys.tags
            )
        return self._partitions

    async def _sweep(self, consumer: str, count: int) -> list[JournalEntry]:
        """Claim from every partition once, beginning where the last sweep had enough."""
        streams = await self._streams()
        found: list[JournalEntry] = []
        for turn in range(len(streams)):
            tag, stream = streams[(self._next + turn) % len(streams)]
            found += await self._readable(tag, await stream.claim(consumer, count - len(found)))
            if len(found) >= count:
                self._next = (self._next + turn + 1) % len(streams)
                break
        return found

    async def _readable(self, tag: str, entries: list[tuple[bytes, Fields]]) -> list[JournalEntry]:
        found: list[JournalEntry] = []
        for sid, fields in entries:
            id = _id(tag, sid)
            try:
                found.append(read_entry(id, fields))
            except UnreadableEntry as problem:
                await self._move("park", id, scope_in(fields), reason=str(problem))
        return found

    async def _wait_for_more(self, seconds: float) -> None:
        (_, first), *others = await self._streams()
        if others:
            await asyncio.sleep(min(seconds, _LOOK_AGAIN))
        else:
            await first.wait_for_more(seconds)

    async def _each(self, action: str, ids: Iterable[str]) -> int:
        keys = (await self._client.link()).keys
        moved = 0
        for id in ids:
            tag, sid = _parts(id)
            rows: list[Any] = await self._client.command("XRANGE", keys.dead(tag), sid, sid)
            for _, fields in rows:
                named = pairs_in(fields)
                moved += await self._move(action, id, scope_in(named), _seqs(read_dead_letter(id, named).entry))
        return moved

    async def _move(
        self, action: str, id: str, scope: Scope | None, seqs: Sequence[int] = (), reason: str = ""
    ) -> bool:
        """Move an entry with what is pending of it, so that an erase finds the dead letter.

        Pending messages are found by `seq` or, where those cannot be read, by the entry's id.
        """
        tag, sid = _parts(id)
        moment = int(self._clock().timestamp() * 1_000)
        own = (action, sid, reason[:_LONGEST_REASON], moment)
        if scope is None:
            keys = (await self._client.link()).keys.for_streams(tag)
            reply = await self._client.run(scripts.MOVE, keys, self._arguments("", own))
        else:
            reply = await self._on_conversation(scripts.MOVE, scope, (*own, *seqs))
        return reply[0] == b"ok"

    async def _on_conversation(self, script: scripts.Script, scope: Scope, own: Sequence[Argument]) -> list[Any]:
        keys = (await self._client.link()).keys.for_conversation(scope)
        return await self._client.run(script, keys, self._arguments(scope.require_conversation(), own))

    def _arguments(self, conversation: str, own: Sequence[Argument]) -> tuple[Argument, ...]:
        return (*self._frame, conversation, b"", b"", *NO_ANSWERS, *own)


def _seqs(entry: JournalEntry | None) -> list[int]:
    return [message.seq for message in entry.messages] if entry else []


def _settled(entries: Sequence[JournalEntry]) -> list[Argument]:
    own: list[Argument] = []
    for entry in entries:
        own += [_parts(entry.id)[1], len(entry.messages), *(message.seq for message in entry.messages)]
    return own


def _id(tag: str, sid: bytes) -> str:
    """`p07/1700000000000-0` on a cluster, the stream's own id elsewhere."""
    return f"{tag[1:-2]}/{sid.decode()}" if tag else sid.decode()


def _parts(id: str) -> tuple[str, str]:
    partition, _, sid = id.rpartition("/")
    return (f"{{{partition}}}:" if partition else "", sid)


class Stream:
    """`stale_seconds`: an entry that a consumer has held for so long is taken to be a dead consumer's.

    `silent_seconds`: a consumer that holds nothing and has not claimed for so long is taken to be dead.
    """

    def __init__(self, client: RedisClient, key: str, dead: str, stale_seconds: float, silent_seconds: float) -> None:
        self.key = key
        self.dead = dead
        self._client = client
        self._stale = int(stale_seconds * 1_000)
        self._silent = int(silent_seconds * 1_000)
        self._cursor: str | bytes = _FIRST
        self._last: str | bytes = _FIRST

    async def claim(self, consumer: str, count: int) -> list[tuple[bytes, Fields]]:
        """Return ids and fields. The group is made where there is none, from the first entry on."""
        arguments = (consumer, count, self._stale, self._cursor)
        entries, self._cursor, self._last = await self._client.run(scripts.CLAIM, (self.key,), arguments)
        return [(sid, pairs_in(fields)) for sid, fields in entries]

    async def wait_for_more(self, seconds: float) -> None:
        """Wait for an entry that came after the last claim, or for the time after which another may be stale."""
        wait = min(seconds, self._stale / 1_000)
        words = ("XREAD", "COUNT", 1, "BLOCK", max(1, int(wait * 1_000)), "STREAMS", self.key, self._last)
        await self._client.command(*words, wait=wait)

    async def give_back(self, consumer: str) -> int:
        return int(await self._client.run(scripts.GIVE_BACK, (self.key,), (consumer, self._stale)))

    async def retire(self, consumer: str | None) -> int:
        return int(await self._client.run(scripts.RETIRE, (self.key,), (consumer or "", self._silent)))

    async def depth(self) -> Depth:
        entries, claimed, dead, oldest = await self._client.run(scripts.DEPTH, (self.key, self.dead), ())
        return Depth(entries, claimed, dead, oldest / 1_000)

    async def dead_letters(self, limit: int) -> list[tuple[bytes, Fields]]:
        rows: list[Any] = await self._client.command("XRANGE", self.dead, "-", "+", "COUNT", limit)
        return [(sid, pairs_in(fields)) for sid, fields in rows]
