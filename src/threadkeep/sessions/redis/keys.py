"""Every key, in one place.

The default tenant and user stand in no key: `sessions:<sessionId>` and `conv:<conversation_id>:latest` are literal.
Otherwise the place reads `@<tenant>:<user>:<conversation>`, tenant and user percent-escaped, so that no two scopes
share a key; a conversation id of the default user that itself begins with `@` is written in full for the same reason.
What stays after an erasure, receipts and the erasure itself, is named by a digest.
On a cluster the tag `{pNN}` comes before anything a caller chose: braces in ids cannot move a key to another slot.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from threadkeep.scope import DEFAULT_TENANT, Scope

DEFAULT_USER = "default"
PARTITIONS = 64
_OURS = "threadkeep"
_ESCAPES = str.maketrans({"%": "%25", ":": "%3A"})


@dataclass(frozen=True, slots=True)
class Keys:
    """`for_talk` gives the keys in the order in which `lua/common.lua` names them."""

    cluster: bool = False

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(_tag(number) for number in range(PARTITIONS)) if self.cluster else ("",)

    def tag(self, scope: Scope) -> str:
        return _tag(int.from_bytes(scope.digest()[:8], "big") % PARTITIONS) if self.cluster else ""

    def for_talk(self, scope: Scope, tag: str | None = None) -> tuple[str, ...]:
        """In the partition of `tag`, or in its own."""
        tag = self.tag(scope) if tag is None else tag
        return _for_talk(scope.tenant, scope.user, scope.require_conversation(), tag)

    def for_reading(self, scope: Scope) -> tuple[str, ...]:
        keys = self.for_talk(scope)
        return keys[0], keys[2], keys[3], keys[4], keys[8], keys[9], f"{keys[11]}:front"

    def session(self, scope: Scope) -> str:
        return self.for_talk(scope)[0]

    def latest(self, scope: Scope) -> str:
        return self.for_talk(scope)[1]

    def for_user(self, scope: Scope, tag: str) -> tuple[str, str]:
        """The user's erasures, and the user's talks, within one partition."""
        return user_record(scope.tenant, scope.user, tag), talks(scope.tenant, scope.user, tag)

    def journal(self, tag: str) -> str:
        return f"{_OURS}:{tag}journal"

    def meta(self, tag: str, place: str) -> str:
        return f"{_OURS}:{tag}meta:{place}"

    def of_session(self, tag: str, meta: str) -> tuple[str, ...]:
        """What makes up the hot session whose counter is at `meta`; not what waits, nor what was erased."""
        here = meta.removeprefix(self.meta(tag, ""))
        return meta, f"sessions:{tag}{here}", *(f"{_OURS}:{tag}{kind}:{here}" for kind in ("window", "ids", "turn"))

    def front(self, tag: str) -> str:
        """Which archive stands behind this store."""
        return f"{self.journal(tag)}:front"

    def dead(self, tag: str) -> str:
        return f"{_OURS}:{tag}dead"

    def for_streams(self, tag: str) -> tuple[str, ...]:
        """As `for_talk`, for an entry that does not say whose it is: only the streams are ever touched."""
        return (*(f"{_OURS}:{tag}nobody",) * 11, self.journal(tag), self.dead(tag))

    def value(self, kind: str, scope: Scope, name: str) -> str:
        """Of scratch or of a slot. The name may tell something, so only its digest stands here."""
        return f"{_OURS}:{self.tag(scope)}{kind}:{scope.digest().hex()}:{scope.digest('name', name).hex()}"

    def values(self, kind: str, scope: Scope, tag: str) -> str:
        """Which values of a kind the user has, within one partition."""
        return f"{_OURS}:{tag}{kind}-of:{scope.whole_user.digest().hex()}"


def _tag(number: int) -> str:
    return f"{{p{number:02}}}:"


def place(tenant: str, user: str, conversation: str) -> str:
    if (tenant, user) == (DEFAULT_TENANT, DEFAULT_USER) and not conversation.startswith("@"):
        return conversation
    return f"@{tenant.translate(_ESCAPES)}:{user.translate(_ESCAPES)}:{conversation}"


def user_record(tenant: str, user: str, tag: str) -> str:
    return f"{_OURS}:{tag}erased:{Scope(tenant, user).digest().hex()}"


def talks(tenant: str, user: str, tag: str) -> str:
    return f"{_OURS}:{tag}talks:{Scope(tenant, user).digest().hex()}"


@lru_cache(maxsize=4_096)
def _for_talk(tenant: str, user: str, conversation: str, tag: str) -> tuple[str, ...]:
    here, digest = place(tenant, user, conversation), Scope(tenant, user, conversation).digest().hex()
    ours = f"{_OURS}:{tag}"
    return (
        f"sessions:{tag}{here}",
        f"conv:{tag}{here}:latest",
        *(f"{ours}{kind}:{here}" for kind in ("meta", "window", "pending", "ids", "turn")),
        f"{ours}receipts:{digest}",
        f"{ours}erased:{digest}",
        user_record(tenant, user, tag),
        talks(tenant, user, tag),
        f"{ours}journal",
        f"{ours}dead",
    )
