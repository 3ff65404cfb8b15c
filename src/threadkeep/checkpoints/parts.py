"""Large data in parts that any server takes in one packet, and whole again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

from threadkeep.ports.checkpoints import Page, StoredCheckpoint, Write
from threadkeep.ports.threads import unescaped

PART_BYTES = 1 << 20

# Columns of a checkpoint's row, then of a write that hangs on it: the rows of a LEFT JOIN.
CHECKPOINT = "c.thread_id, c.checkpoint_ns, c.checkpoint_id, c.parent_checkpoint_id, c.checkpoint_blob, c.metadata_blob"
WRITE = "w.task_id, w.idx, w.part, w.task_path, w.channel, w.data"
# Of a statement that begins with `thread`, which locks the thread's row: read before any other row is looked at.
THREAD_HELD = "(SELECT count(*) FROM thread) >= 0"


def parts_of(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Numbered from 0; there is always one."""
    if len(data) <= PART_BYTES:
        yield 0, data
        return
    for number, start in enumerate(range(0, len(data), PART_BYTES)):
        yield number, data[start : start + PART_BYTES]


def pages_of(rows: Iterable[Any]) -> list[Page]:
    """Return pages from rows of list id, start, stop and data, in the order of list id, start and part."""
    pages: list[Page] = []
    last_list, last_start = b"", -1
    for list_id, start, stop, data in rows:
        if start == last_start and list_id == last_list:
            pages[-1] = Page(last_list, start, stop, pages[-1].data + data)
        else:
            last_list, last_start = bytes(list_id), start
            pages.append(Page(last_list, start, stop, bytes(data)))
    return pages


def checkpoint_of(row: Any, writes: Iterable[Any] = ()) -> StoredCheckpoint:
    """From the six columns of `CHECKPOINT`, and rows of `WRITE`."""
    thread, ns, id_, parent, body, metadata = row
    return StoredCheckpoint(
        unescaped(text_of(thread)),
        unescaped(text_of(ns)),
        unescaped(text_of(id_)),
        None if parent is None else unescaped(text_of(parent)),
        bytes(body),
        bytes(metadata),
        writes_of(writes),
    )


def joined(rows: Iterable[Any]) -> list[StoredCheckpoint]:
    """From rows of `CHECKPOINT` and `WRITE` together, those of one checkpoint side by side."""
    found: list[tuple[Any, list[Any]]] = []
    for row in rows:
        if not found or found[-1][0][:3] != row[:3]:
            found.append((row, []))
        if row[6] is not None:
            found[-1][1].append(row[6:])
    return [checkpoint_of(row[:6], writes) for row, writes in found]


def writes_of(rows: Iterable[Any]) -> tuple[Write, ...]:
    """In the order in which a run applies them, as Python orders text."""
    writes: list[Write] = []
    for task_id, idx, part, task_path, channel, data in sorted(rows, key=itemgetter(0, 1, 2)):
        if part:
            last = writes[-1]
            writes[-1] = Write(last.task_id, last.idx, last.task_path, last.channel, last.data + data)
        else:
            names = (unescaped(text_of(name)) for name in (task_id, task_path, channel))
            id_, path, channel_ = names
            writes.append(Write(id_, idx, path, channel_, bytes(data)))
    writes.sort(key=lambda write: (write.task_path, write.task_id, write.idx))
    return tuple(writes)


def text_of(value: str | bytes) -> str:
    return value if isinstance(value, str) else bytes(value).decode()
