"""A journal entry on the wire: stream fields, each plain text or JSON, under a version.

`v` is 1. `scope` is `[tenant, user, conversation]`; `generation` a number,
empty when the archive was away and nobody could tell; `key` and `payload` digests in hexadecimal,
`key` empty when the append had none; `receipt` the receipt that was answered; `messages` a list of
`{"seq", "id", "role", "content", "ts"}` with `origin`, `stored_at`, `modality`, `language` and `meta` where they are
not the defaults, and `exact` (base64) where JSON cannot carry the content. A dead letter has `reason` and `parked`
(milliseconds) besides.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from threadkeep.errors import InvalidScope
from threadkeep.model import Admission, Receipt
from threadkeep.ports.journal import DeadLetter, JournalEntry
from threadkeep.scope import Scope
from threadkeep.sessions.redis.encode import messages_from_json, to_json

VERSION = b"1"
Fields = Mapping[bytes, bytes]
_MALFORMED = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, InvalidScope)


class UnreadableEntry(ValueError):
    """Says what is wrong, never what stands in it."""


def scope_field(scope: Scope) -> bytes:
    return to_json([scope.tenant, scope.user, scope.conversation])


def receipt_tail(admission: Admission) -> bytes:
    """A receipt without what only the script knows: its status and `seq` come before this."""
    return b'"kept":[%b],"refused":%b,"stripped":%b,"redacted":%b}' % (
        b",".join([to_json(draft.id) for draft in admission.drafts]),
        to_json(dict(admission.refused)) if admission.refused else b"{}",
        to_json(dict(admission.stripped)) if admission.stripped else b"{}",
        to_json(dict(admission.redacted)) if admission.redacted else b"{}",
    )


def read_receipt(text: bytes) -> Receipt:
    values: dict[str, Any] = json.loads(text)
    values["kept"] = tuple(values["kept"])
    return Receipt(**values)


def _generation(field: bytes) -> int | None:
    return int(field) if field else None


def read_entry(id: str, fields: Fields) -> JournalEntry:
    """Raises `UnreadableEntry`."""
    if fields.get(b"v") != VERSION:
        raise UnreadableEntry("the entry is of a version that this Threadkeep does not know")
    try:
        tenant, user, conversation = json.loads(fields[b"scope"])
        return JournalEntry(
            id=id,
            scope=Scope(tenant, user, conversation, _generation(fields[b"generation"])),
            messages=messages_from_json(fields[b"messages"]),
            receipt=read_receipt(fields[b"receipt"]),
            payload=bytes.fromhex(fields[b"payload"].decode()),
            key=bytes.fromhex(fields[b"key"].decode()) or None,
            queued_at=moment_of(id),
        )
    except _MALFORMED as error:  # whatever somebody wrote there, it is one dead letter and no more
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
