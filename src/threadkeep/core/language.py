"""A conversation gets its language once, from the first message of the user that shows it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from cachetools import LRUCache

from threadkeep.errors import StoreError
from threadkeep.model import Admission, Draft, History, Receipt
from threadkeep.ports.models import CERTAIN, LanguageDetector, LanguageRules
from threadkeep.scope import Scope

_Key = tuple[str, str, str | None]
LatestOf = Callable[[Scope, int], Awaitable[History]]  # a scope and how many messages of it

_MOST_REMEMBERED = 10_000
_ALWAYS_DETECTED = 8  # appends without a clear language; after them only every doubling is looked at


@dataclass(frozen=True, slots=True)
class TenantLanguages:
    everyone: LanguageRules = field(default_factory=LanguageRules)
    own: Mapping[str, LanguageRules] = field(default_factory=dict[str, LanguageRules])  # by tenant

    def of(self, tenant: str) -> LanguageRules:
        return self.own.get(tenant, self.everyone)


@dataclass(frozen=True, slots=True)
class Named:
    """An admission with its language, and what is known of the conversation up to `known_at` (None: nothing is)."""

    admission: Admission
    known_at: int | None = None
    language: str | None = None  # of the conversation
    unclear: int = 0


class _Known(NamedTuple):
    seq: int
    language: str | None
    unclear: int = 0  # appends so far that showed no language

    @property
    def is_worth_detecting(self) -> bool:
        """A user whose messages were unclear for long seldom writes a clear one: detection must not cost every turn."""
        return self.unclear < _ALWAYS_DETECTED or self.unclear.bit_count() == 1


class ConversationLanguage:
    """Runs the detector only on conversations without a language, ever more seldom: a model may cost money.

    Whether a conversation has one is read once, not on every append: it is remembered while its `seq` shows that
    no other process has written to it. Another process's message, or an erase, breaks the count, and it is read anew.
    """

    def __init__(self, detector: LanguageDetector | None, languages: TenantLanguages | None = None) -> None:
        self._detector = detector
        self._languages = languages or TenantLanguages()
        self._known: LRUCache[_Key, _Known] = LRUCache(_MOST_REMEMBERED)

    def rules(self, scope: Scope) -> LanguageRules:
        return self._languages.of(scope.tenant)

    async def of(self, scope: Scope, latest_of: LatestOf) -> str | None:
        """The language of a conversation that has one by now, read at most once; None where no detector is used."""
        if self._detector is None:
            return None
        known = self._known.get(_key(scope)) or await self._read(scope, latest_of)
        return known and known.language

    async def named(
        self, scope: Scope, admission: Admission, latest_of: LatestOf, languages: Sequence[str] | None = None
    ) -> Named:
        """The detector sees redacted text only. A message too short to be sure of leaves the conversation without one.

        `languages` are the only ones it may be in, where there are any; otherwise the tenant's.
        """
        known = self._known.get(_key(scope))
        if self._detector is None or not _may_show(admission) or (known and known.language):
            return _as_known(admission, known)
        known = known or await self._read(scope, latest_of)
        if known is None:
            return Named(admission)
        if known.language:
            return _as_known(admission, known)
        allowed = languages or self._languages.of(scope.tenant).choice
        found = await self._detected(self._detector, allowed, admission) if known.is_worth_detecting else None
        return Named(found or admission, known.seq, _given(found) if found else None, known.unclear + 1)

    async def _read(self, scope: Scope, latest_of: LatestOf) -> _Known | None:
        """None where no store answers: the append itself may still find one that takes it."""
        try:
            latest = await latest_of(scope, 1)
        except StoreError:
            return None
        known = _Known(latest.messages[-1].seq if latest.messages else 0, latest.language or None)
        self._known[_key(scope)] = known
        return known

    async def _detected(
        self, detector: LanguageDetector, allowed: Sequence[str] | None, admission: Admission
    ) -> Admission | None:
        """With the language on the first message that shows it; None when none does."""
        for index, draft in enumerate(admission.drafts):
            if _is_users_text(draft):
                detection = await detector.detect(draft.content, allowed)
                if detection.confidence >= CERTAIN:
                    # The digest stays as it was: a retry, for which no detector runs any more, is the same payload.
                    drafts = list(admission.drafts)
                    drafts[index] = replace(draft, language=detection.tag)
                    return replace(admission, drafts=tuple(drafts))
        return None

    def stored(self, scope: Scope, named: Named, receipt: Receipt) -> None:
        if named.known_at is None or receipt.seq != named.known_at + len(receipt.kept):
            self._known.pop(_key(scope), None)
            return
        self._known[_key(scope)] = _Known(receipt.seq, named.language, named.unclear)

    def forget(self, scope: Scope) -> None:
        """What is erased has no language any more."""
        parts = 2 if scope.conversation is None else 3
        for key in [one for one in self._known if one[:parts] == _key(scope)[:parts]]:
            del self._known[key]


def _key(scope: Scope) -> _Key:
    return scope.tenant, scope.user, scope.conversation


def _as_known(admission: Admission, known: _Known | None) -> Named:
    if known is None:
        return Named(admission)
    return Named(admission, known.seq, _given(admission) or known.language, known.unclear)


def _given(admission: Admission) -> str | None:
    return next((draft.language for draft in admission.drafts if draft.language), None)


def _is_users_text(draft: Draft) -> bool:
    return draft.role == "user" and draft.modality == "text"


def _may_show(admission: Admission) -> bool:
    """Where the caller names a language, there is nothing to find out."""
    return any(map(_is_users_text, admission.drafts)) and not any(draft.language for draft in admission.drafts)
