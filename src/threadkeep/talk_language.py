"""A conversation gets its language once, from the first message of the user that tells it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from threadkeep.errors import StoreUnavailable
from threadkeep.model import Admission, Draft, History, Receipt
from threadkeep.ports.language import CERTAIN, LanguageDetector, LanguageRules
from threadkeep.scope import Scope

LatestOf = Callable[[Scope, int], Awaitable[History]]  # a scope and how many messages of it

_MOST_REMEMBERED = 10_000
_ASKED_EVERY_TIME = 8  # appends that told nothing; after them only every doubling is asked about


@dataclass(frozen=True, slots=True)
class TenantLanguages:
    everyone: LanguageRules = field(default_factory=LanguageRules)
    own: Mapping[str, LanguageRules] = field(default_factory=dict[str, LanguageRules])  # by tenant

    def of(self, tenant: str) -> LanguageRules:
        return self.own.get(tenant, self.everyone)


@dataclass(frozen=True, slots=True)
class Named:
    """An admission with the language told, and what is known of the talk up to `known_at` (None: nothing is)."""

    admission: Admission
    known_at: int | None = None
    has_language: bool = False
    unclear: int = 0


class _Known(NamedTuple):
    seq: int
    has_language: bool
    unclear: int = 0  # appends so far that told no language

    def is_worth_asking(self) -> bool:
        """Who has said nothing clear for long seldom does next: the detector's cost must not stay on every turn."""
        return self.unclear < _ASKED_EVERY_TIME or self.unclear.bit_count() == 1


class TalkLanguage:
    """Asks the detector only about talks that have no language, ever more seldom: it may be a model that costs money.

    Whether a talk has one is read once, not on every append: it is remembered for as long as its `seq` shows that
    nobody else has written to it. Another process's message, or an erase, breaks the count, and it is read anew.
    """

    def __init__(self, detector: LanguageDetector | None, languages: TenantLanguages | None = None) -> None:
        self._detector = detector
        self._languages = languages or TenantLanguages()
        self._known: OrderedDict[tuple[str, str, str | None], _Known] = OrderedDict()

    async def named(self, scope: Scope, admission: Admission, latest_of: LatestOf) -> Named:
        """The detector sees redacted text only. A message too short to tell leaves the talk open."""
        known = self._known.get(_place(scope))
        if self._detector is None or not _may_tell(admission) or (known and known.has_language):
            return _as_known(admission, known)
        if known is None:
            try:
                latest = await latest_of(scope, 1)
            except StoreUnavailable:
                return Named(admission)  # the append itself may still find a store that takes it
            known = _Known(latest.messages[-1].seq if latest.messages else 0, bool(latest.language))
        if known.has_language:
            return _as_known(admission, known)
        told = await self._told(self._detector, scope, admission) if known.is_worth_asking() else None
        return Named(told or admission, known.seq, told is not None, known.unclear + 1)

    async def _told(self, detector: LanguageDetector, scope: Scope, admission: Admission) -> Admission | None:
        """With the language on the first message that tells it; None when none does."""
        allowed = self._languages.of(scope.tenant).allowed
        for place, draft in enumerate(admission.drafts):
            if _is_users_text(draft):
                detection = await detector.detect(draft.content, allowed)
                if detection.confidence >= CERTAIN:
                    return _with_language(admission, place, detection.tag)
        return None

    def stored(self, scope: Scope, named: Named, receipt: Receipt) -> None:
        place = _place(scope)
        if named.known_at is None or receipt.seq != named.known_at + len(receipt.kept):
            self._known.pop(place, None)
            return
        self._known[place] = _Known(receipt.seq, named.has_language, named.unclear)
        self._known.move_to_end(place)
        if len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)

    def forget(self, scope: Scope) -> None:
        """What is erased has no language any more."""
        parts = 2 if scope.conversation is None else 3
        for place in [one for one in self._known if one[:parts] == _place(scope)[:parts]]:
            del self._known[place]


def _place(scope: Scope) -> tuple[str, str, str | None]:
    return scope.tenant, scope.user, scope.conversation


def _as_known(admission: Admission, known: _Known | None) -> Named:
    return Named(admission) if known is None else Named(admission, known.seq, known.has_language, known.unclear)


def _is_users_text(draft: Draft) -> bool:
    return draft.role == "user" and draft.modality == "text"


def _may_tell(admission: Admission) -> bool:
    """Where the caller names a language, there is nothing to find out."""
    return any(map(_is_users_text, admission.drafts)) and not any(draft.language for draft in admission.drafts)


def _with_language(admission: Admission, place: int, tag: str) -> Admission:
    """The digest stays as it was: a retry, which asks no detector any more, is the same payload."""
    drafts = list(admission.drafts)
    drafts[place] = replace(drafts[place], language=tag)
    return replace(admission, drafts=tuple(drafts))
