"""A conversation gets its language once, from the first message of the user that tells it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from threadkeep.errors import StoreError
from threadkeep.model import Admission, Draft, History, Receipt
from threadkeep.ports.language import CERTAIN, LanguageDetector, LanguageRules
from threadkeep.scope import Scope

_Place = tuple[str, str, str | None]
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
    language: str | None = None  # of the talk
    unclear: int = 0


class _Known(NamedTuple):
    seq: int
    language: str | None
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
        self._known: OrderedDict[_Place, _Known] = OrderedDict()

    def rules(self, scope: Scope) -> LanguageRules:
        return self._languages.of(scope.tenant)

    async def of(self, scope: Scope, latest_of: LatestOf) -> str | None:
        """The language of a talk that has one by now, read at most once; None where no detector is used."""
        if self._detector is None:
            return None
        known = self._known.get(_place(scope)) or await self._read(scope, latest_of)
        return known and known.language

    async def named(
        self, scope: Scope, admission: Admission, latest_of: LatestOf, languages: Sequence[str] | None = None
    ) -> Named:
        """The detector sees redacted text only. A message too short to tell leaves the talk open.

        `languages` are the only ones it may be in, where there are any; otherwise the tenant's.
        """
        known = self._known.get(_place(scope))
        if self._detector is None or not _may_tell(admission) or (known and known.language):
            return _as_known(admission, known)
        known = known or await self._read(scope, latest_of)
        if known is None:
            return Named(admission)
        if known.language:
            return _as_known(admission, known)
        allowed = languages or self._languages.of(scope.tenant).choice
        told = await self._told(self._detector, allowed, admission) if known.is_worth_asking() else None
        return Named(told or admission, known.seq, _given(told) if told else None, known.unclear + 1)

    async def _read(self, scope: Scope, latest_of: LatestOf) -> _Known | None:
        """None where no store answers: the append itself may still find one that takes it."""
        try:
            latest = await latest_of(scope, 1)
        except StoreError:
            return None
        known = _Known(latest.messages[-1].seq if latest.messages else 0, latest.language or None)
        self._remember(_place(scope), known)
        return known

    async def _told(
        self, detector: LanguageDetector, allowed: Sequence[str] | None, admission: Admission
    ) -> Admission | None:
        """With the language on the first message that tells it; None when none does."""
        for place, draft in enumerate(admission.drafts):
            if _is_users_text(draft):
                detection = await detector.detect(draft.content, allowed)
                if detection.confidence >= CERTAIN:
                    return _with_language(admission, place, detection.tag)
        return None

    def stored(self, scope: Scope, named: Named, receipt: Receipt) -> None:
        if named.known_at is None or receipt.seq != named.known_at + len(receipt.kept):
            self._known.pop(_place(scope), None)
            return
        self._remember(_place(scope), _Known(receipt.seq, named.language, named.unclear))

    def _remember(self, place: _Place, known: _Known) -> None:
        self._known[place] = known
        self._known.move_to_end(place)
        if len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)

    def forget(self, scope: Scope) -> None:
        """What is erased has no language any more."""
        parts = 2 if scope.conversation is None else 3
        for place in [one for one in self._known if one[:parts] == _place(scope)[:parts]]:
            del self._known[place]


def _place(scope: Scope) -> _Place:
    return scope.tenant, scope.user, scope.conversation


def _as_known(admission: Admission, known: _Known | None) -> Named:
    if known is None:
        return Named(admission)
    return Named(admission, known.seq, _given(admission) or known.language, known.unclear)


def _given(admission: Admission) -> str | None:
    return next((draft.language for draft in admission.drafts if draft.language), None)


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
