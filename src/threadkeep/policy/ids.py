"""Message ids: uuid7, or derived from the idempotency key so that a retry makes the same ones."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass, replace
from datetime import datetime

import uuid_utils

from threadkeep.model import Draft
from threadkeep.policy.fields import NO_ID, NO_TIME
from threadkeep.scope import Scope, length_prefixed


@dataclass(frozen=True, slots=True)
class MessageIds:
    scope: Scope
    key: str | None = None

    def secret(self) -> bytes | None:
        """What keys the payload's fingerprint; None without an idempotency key."""
        return None if self.key is None else self.scope.digest("payload", self.key)

    def begun(self, id_: str, ts: datetime, now: datetime) -> tuple[str, datetime]:
        """What the caller left out is filled in at once, unless a fingerprint must first be made of what was given."""
        if self.key is not None:
            return id_, ts
        return (str(uuid_utils.uuid7()) if id_ == NO_ID else id_), (now if ts is NO_TIME else ts)

    def complete(self, draft: Draft, index: int, now: datetime) -> Draft:
        """The draft with an id and a time, where the caller gave none."""
        id_ = self._new(index) if draft.id == NO_ID else draft.id
        ts = now if draft.ts == NO_TIME else draft.ts
        return replace(draft, id=id_, ts=ts)

    def _new(self, index: int) -> str:
        parts = (self.scope.tenant, self.scope.user, self.scope.conversation or "", self.key or "", str(index))
        digest = hashlib.sha256(length_prefixed(parts)).digest()
        # RFC 9562 version 8: an id of our own making, with the version and variant bits where they belong.
        number = int.from_bytes(digest[:16], "big") & ~(0xF << 76) & ~(0x3 << 62)
        return str(uuid.UUID(int=number | 0x8 << 76 | 0x2 << 62))
