"""The journal on Redis Streams: one stream, or on a cluster one for each partition."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.journal import DeadLetter, Depth, JournalEntry
from threadkeep.scope import Scope
from threadkeep.sessions.redis import scripts
from threadkeep.sessions.redis.arguments import NO_ANSWERS, HotOptions, tombstone
from threadkeep.sessions.redis.client import RedisClient
from threadkeep.sessions.redis.encode import to_json
from threadkeep.sessions.redis.entry import Fields, UnreadableEntry, read_dead_letter, read_entry, scope_in
from threadkeep.sessions.redis.keys import Keys
from threadkeep.sessions.redis.wire import Argument

_LONGEST_REASON = 500
_FIRST = "0-0"
_LOOK_AGAIN = 0.05  # on a cluster no single command can wait for all partitions
_AT_ONCE = 32


class RedisJournal:
    """`stale_seconds`: an entry that a worker has held for so long is taken for a dead worker's.

    `silent_seconds`: a worker without work that has not been heard of for so long is taken to be gone.
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
        self._idle = int(stale_seconds * 1_000)
        self._silent = int(silent_seconds * 1_000)
        self._clock = clock
        self._cursors: dict[str, str] = {}
        self._next = 0  # the partition to begin with, so that none is always last

    async def claim(self, consumer: str, count: int, wait: float = 0) -> Sequence[JournalEntry]:
        deadline = asyncio.get_running_loop().time() + wait
        while True:
            found, last = await self._sweep(consumer, count)
            left = deadline - asyncio.get_running_loop().time()
            if found or left <= 0:
                return found
            await self._wait_for_more(last, left)

    async def standing(self, entries: Sequence[JournalEntry]) -> Sequence[JournalEntry]:
        keys = (await self._client.link()).keys

        async def stands(entry: JournalEntry) -> bool:
            tag, sid = _parts(entry.id)
            return bool(await self._client.command("XRANGE", keys.journal(tag), sid, sid))

        answers = await asyncio.gather(*map(stands, entries))
        return [entry for entry, there in zip(entries, answers, strict=True) if there]

    async def settle(self, entries: Sequence[JournalEntry]) -> None:
        by_talk: dict[Scope, list[JournalEntry]] = defaultdict(list)
        for entry in entries:
            by_talk[entry.scope].append(entry)
        some = asyncio.Semaphore(_AT_ONCE)

        async def one(scope: Scope, settled: list[JournalEntry]) -> None:
            async with some:
                await self._on_talk(scripts.SETTLE, scope, _settled(settled))

        await asyncio.gather(*(one(scope, settled) for scope, settled in by_talk.items()))

    async def evict(self, scope: Scope) -> None:
        await self._on_talk(scripts.EVICT, scope, ())

    async def erase(self, scope: Scope, message_ids: Sequence[str]) -> None:
        for id_ in message_ids:
            await self._on_talk(scripts.ERASE_MESSAGE, scope, [to_json(id_), tombstone(scope, id_)])

    async def park(self, entry: JournalEntry, reason: str) -> bool:
        return await self._move("park", entry.id, entry.scope, _seqs(entry), reason)

    async def retire(self, consumer: str | None = None) -> int:
        keys = (await self._client.link()).keys
        own = (consumer or "", self._silent)
        found = await asyncio.gather(
            *(self._client.run(scripts.RETIRE, (keys.journal(tag),), own) for tag in keys.tags)
        )
        return sum(found)

    async def depth(self) -> Depth:
        keys = (await self._client.link()).keys
        found = await asyncio.gather(
            *(self._client.run(scripts.DEPTH, (keys.journal(tag), keys.dead(tag)), ()) for tag in keys.tags)
        )
        entries, claimed, dead = (sum(part[i] for part in found) for i in range(3))
        return Depth(entries, claimed, dead, max(part[3] for part in found) / 1_000)

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
        keys = (await self._client.link()).keys
        parts = await asyncio.gather(*(self._dead_in(keys, tag, limit) for tag in keys.tags))
        return sorted((letter for part in parts for letter in part), key=lambda letter: letter.parked_at)[:limit]

    async def replay(self, ids: Sequence[str]) -> int:
        return await self._each("replay", ids)

    async def drop(self, ids: Sequence[str]) -> int:
        return await self._each("drop", ids)

    async def close(self) -> None:
        await self._client.close()

    async def _sweep(self, consumer: str, count: int) -> tuple[list[JournalEntry], str]:
        """Every partition once, beginning where the last sweep had enough."""
        keys = (await self._client.link()).keys
        found: list[JournalEntry] = []
        last, tags = _FIRST, keys.tags
        for turn in range(len(tags)):
            tag = tags[(self._next + turn) % len(tags)]
            arguments = (consumer, count - len(found), self._idle, self._cursors.get(tag, _FIRST))
            entries, cursor, last = await self._client.run(scripts.CLAIM, (keys.journal(tag),), arguments)
            self._cursors[tag] = cursor
            found += await self._readable(tag, entries)
            if len(found) >= count:
                self._next = (self._next + turn + 1) % len(tags)
                break
        return found, last

    async def _readable(self, tag: str, entries: list[Any]) -> list[JournalEntry]:
        found: list[JournalEntry] = []
        for sid, fields in entries:
            id, named = _id(tag, sid), _fields(fields)
            try:
                found.append(read_entry(id, named))
            except UnreadableEntry as problem:
                await self._move("park", id, scope_in(named), reason=str(problem))
        return found

    async def _wait_for_more(self, last: str, seconds: float) -> None:
        link = await self._client.link()
        if link.keys.cluster:
            await asyncio.sleep(min(seconds, _LOOK_AGAIN))
            return
        # Entries of a dead worker wake nobody up: look for them again after a while.
        wait = min(seconds, self._idle / 1_000)
        words = ("XREAD", "COUNT", 1, "BLOCK", max(1, int(wait * 1_000)), "STREAMS", link.keys.journal(""), last)
        await self._client.command(*words, wait=wait)

    async def _dead_in(self, keys: Keys, tag: str, limit: int) -> list[DeadLetter]:
        rows: list[Any] = await self._client.command("XRANGE", keys.dead(tag), "-", "+", "COUNT", limit)
        return [read_dead_letter(_id(tag, sid), _fields(fields)) for sid, fields in rows]

    async def _each(self, action: str, ids: Iterable[str]) -> int:
        keys = (await self._client.link()).keys
        moved = 0
        for id in ids:
            tag, sid = _parts(id)
            rows: list[Any] = await self._client.command("XRANGE", keys.dead(tag), sid, sid)
            for _, fields in rows:
                named = _fields(fields)
                moved += await self._move(action, id, scope_in(named), _seqs(read_dead_letter(id, named).entry))
        return moved

    async def _move(
        self, action: str, id: str, scope: Scope | None, seqs: Sequence[int] = (), reason: str = ""
    ) -> bool:
        """With what is pending of it, by its numbers or, where nobody can read those, by the entry's id: an erase finds
        a dead letter by that."""
        tag, sid = _parts(id)
        moment = int(self._clock().timestamp() * 1_000)
        own = (action, sid, reason[:_LONGEST_REASON], moment)
        if scope is None:
            keys = (await self._client.link()).keys.for_streams(tag)
            reply = await self._client.run(scripts.MOVE, keys, self._arguments("", own))
        else:
            reply = await self._on_talk(scripts.MOVE, scope, (*own, *seqs))
        return reply[0] == b"ok"

    async def _on_talk(self, script: scripts.Script, scope: Scope, own: Sequence[Argument]) -> list[Any]:
        keys = (await self._client.link()).keys.for_talk(scope)
        return await self._client.run(script, keys, self._arguments(scope.require_conversation(), own))

    def _arguments(self, talk: str, own: Sequence[Argument]) -> tuple[Argument, ...]:
        return (*self._frame, talk, b"", b"", *NO_ANSWERS, *own)


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


def _fields(fields: Any) -> Fields:
    """As a script answers them (a flat list), or as redis-py reads them (a mapping)."""
    if isinstance(fields, Mapping):
        return fields  # pyright: ignore[reportUnknownVariableType]
    return dict(zip(fields[::2], fields[1::2], strict=True))
