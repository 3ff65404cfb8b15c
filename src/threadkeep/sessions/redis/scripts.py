"""The Lua scripts, read once, with the digest a server knows each by; and the names of the keys that they are given.

The default tenant and user stand in no key: `sessions:<sessionId>` and `conv:<conversation_id>:latest` are literal.
Otherwise the key names it `@<tenant>:<user>:<conversation>`, tenant and user percent-escaped, so that no two scopes
share a key; a conversation id of the default user that itself begins with `@` is written in full for the same reason.
What stays after an erasure, receipts and the erasure itself, is named by a digest.
On a cluster the tag `{pNN}` comes before anything a caller chose: braces in ids cannot move a key to another slot.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files

from threadkeep.scope import DEFAULT_TENANT, DEFAULT_USER, Scope

Argument = str | bytes | int | float
_FOLDER = files("threadkeep.sessions.redis") / "lua"


@dataclass(frozen=True, slots=True)
class Script:
    name: str
    text: str = field(repr=False)
    sha: str


def _read(name: str) -> str:
    return (_FOLDER / f"{name}.lua").read_text("utf-8")


def _script(name: str, flags: str = "", before: str = "") -> Script:
    """The shebang makes the server check memory and disk before the script runs, so it never stops half-way."""
    first = f"#!lua flags={flags}\n" if flags else "#!lua\n"
    text = first + before + _read(name)
    return Script(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


_TALK = _read("common")
_SESSION = _TALK + _read("turn") + _read("session")
# What frees room must work when there is none.
APPEND = _script("append", before=_SESSION)
REFRESH = _script("refresh", before=_SESSION)
TOUCH = _script("touch", before=_SESSION)
REFLECT = _script("reflect", before=_SESSION)
RESTATE = _script("restate", before=_SESSION)
SEED = _script("seed", before=_TALK)
READ = _script("read", "no-writes", _TALK)
ERASE = _script("erase", "allow-oom", _TALK)
ERASE_MESSAGE = _script("erase_message", "allow-oom", _SESSION)
ERASE_USER = _script("erase_user", "allow-oom")
SETTLE = _script("settle", "allow-oom", _TALK)
EVICT = _script("evict", "allow-oom", _TALK)
MOVE = _script("move", "allow-oom", _TALK)
CLAIM = _script("claim", "allow-oom")
GIVE_BACK = _script("give_back", "allow-oom")
RETIRE = _script("retire", "allow-oom")
FRONT = _script("front")
DETACH = _script("detach", "allow-oom")
LEAVE = _script("leave", "allow-oom")
CLEAR = _script("clear", "allow-oom")
DEPTH = _script("depth", "no-writes")
TAKES = _script("takes")
CALL = _script("call")
KEEP_VALUE = _script("keep_value")
DROP_VALUES = _script("drop_values", "allow-oom")
HOLD = _script("hold")
KEEP_TURN = _script("keep_turn")
NEXT_MOMENT = _script("next_moment")
SETTLE_TURNS = _script("settle_turns", "allow-oom")
REPLAY_TURNS = _script("replay_turns")


PARTITIONS = 64
_OURS = "threadkeep"
_OF_OTHERS = ("{", "turn-clock:", "limits:")
_IN_FULL = f"@{DEFAULT_TENANT}:{DEFAULT_USER}:"
_ESCAPES = str.maketrans({"%": "%25", ":": "%3A"})


@dataclass(frozen=True, slots=True)
class Keys:
    """`for_conversation` gives the keys in the order in which `lua/common.lua` names them."""

    cluster: bool = False

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(_tag(number) for number in range(PARTITIONS)) if self.cluster else ("",)

    def tag(self, scope: Scope) -> str:
        return _tag(int.from_bytes(scope.digest()[:8], "big") % PARTITIONS) if self.cluster else ""

    def for_conversation(self, scope: Scope, tag: str | None = None) -> tuple[str, ...]:
        """In the partition of `tag`, or in its own."""
        tag = self.tag(scope) if tag is None else tag
        return _for_conversation(scope.tenant, scope.user, scope.require_conversation(), tag)

    def session(self, scope: Scope) -> str:
        return self.for_conversation(scope)[0]

    def latest(self, scope: Scope) -> str:
        return self.for_conversation(scope)[1]

    def for_user(self, scope: Scope, tag: str) -> tuple[str, str]:
        """The user's erasures and conversations within one partition."""
        return user_record(scope.tenant, scope.user, tag), conversations(scope.tenant, scope.user, tag)

    def journal(self, tag: str) -> str:
        return f"{_OURS}:{tag}journal"

    def meta(self, tag: str, name: str) -> str:
        return f"{_OURS}:{tag}meta:{name}"

    def of_session(self, tag: str, here: str) -> tuple[str, str, str]:
        """The document, the latest turn and the counter of the conversation that keys name `here`."""
        return f"sessions:{tag}{here}", f"conv:{tag}{here}:latest", self.meta(tag, here)

    def tag_in(self, key: str) -> str | None:
        """The partition of a key of the archive's own, `threadkeep:…`; None of a key that is not the archive's.

        Mapped mode's queue and clocks and the rate limits share the prefix, and belong to no archive.
        """
        name = key.removeprefix(f"{_OURS}:")
        if name == key:
            return None
        if self.cluster:
            return _tag_before(name)
        return None if name.startswith(_OF_OTHERS) else ""

    def conversation_in(self, latest: str) -> tuple[str, str] | None:
        """Return tag and name of the conversation in a latest turn's key; None if it may not be an archive's.

        Mapped mode and other applications write `conv:<conversation_id>:latest` too, where an id that looks like such
        a name stands behind `@default:default:`.
        """
        name = latest.removeprefix("conv:").removesuffix(":latest")
        tag = _tag_before(name) if self.cluster else ""
        if tag is None or not (self.cluster or name.startswith("@")) or name.startswith(_IN_FULL):
            return None
        return tag, name.removeprefix(tag)

    def front(self, tag: str) -> str:
        """Which archive stands behind this store."""
        return f"{self.journal(tag)}:front"

    def dead(self, tag: str) -> str:
        return f"{_OURS}:{tag}dead"

    def for_streams(self, tag: str) -> tuple[str, ...]:
        """As `for_conversation`, for an entry that does not say whose it is: only the streams are ever touched."""
        return (*(f"{_OURS}:{tag}nobody",) * 11, self.journal(tag), self.dead(tag))

    def value(self, kind: str, scope: Scope, name: str) -> str:
        """Of scratch or of a slot. The name may be personal, so the key has only its digest."""
        return f"{_OURS}:{self.tag(scope)}{kind}:{scope.digest().hex()}:{scope.digest('name', name).hex()}"

    def values(self, kind: str, scope: Scope, tag: str) -> str:
        """Which values of a kind the user has, within one partition."""
        return f"{_OURS}:{tag}{kind}-of:{scope.whole_user.digest().hex()}"


def _tag(number: int) -> str:
    return f"{{p{number:02}}}:"


def _tag_before(name: str) -> str | None:
    tag = name[: len(_tag(0))]
    return tag if tag in _TAGS else None


_TAGS = frozenset(map(_tag, range(PARTITIONS)))


def name_in_keys(tenant: str, user: str, conversation: str) -> str:
    if (tenant, user) == (DEFAULT_TENANT, DEFAULT_USER) and not conversation.startswith("@"):
        return conversation
    return f"@{tenant.translate(_ESCAPES)}:{user.translate(_ESCAPES)}:{conversation}"


def user_record(tenant: str, user: str, tag: str) -> str:
    return f"{_OURS}:{tag}erased:{Scope(tenant, user).digest().hex()}"


def conversations(tenant: str, user: str, tag: str) -> str:
    return f"{_OURS}:{tag}talks:{Scope(tenant, user).digest().hex()}"


@lru_cache(maxsize=4_096)
def _for_conversation(tenant: str, user: str, conversation: str, tag: str) -> tuple[str, ...]:
    here, digest = name_in_keys(tenant, user, conversation), Scope(tenant, user, conversation).digest().hex()
    ours = f"{_OURS}:{tag}"
    return (
        f"sessions:{tag}{here}",
        f"conv:{tag}{here}:latest",
        *(f"{ours}{kind}:{here}" for kind in ("meta", "window", "pending", "ids", "turn")),
        f"{ours}receipts:{digest}",
        f"{ours}erased:{digest}",
        user_record(tenant, user, tag),
        conversations(tenant, user, tag),
        f"{ours}journal",
        f"{ours}dead",
    )
