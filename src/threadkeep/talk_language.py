"""A conversation gets its language once, from the first message of the user that tells it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace

from threadkeep.model import Admission, Draft, History, Receipt
from threadkeep.ports.language import CERTAIN, LanguageDetector, LanguageRules
from threadkeep.scope import Scope

LatestOf = Callable[[Scope, int], Awaitable[History]]  # a scope and how many messages of it

_MOST_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class TenantLanguages:
    everyone: LanguageRules = field(default_factory=LanguageRules)
    own: Mapping[str, LanguageRules] = field(default_factory=dict[str, LanguageRules])  # by tenant

    def of(self, tenant: str) -> LanguageRules:
        return self.own.get(tenant, self.everyone)


@dataclass(frozen=True, slots=True)
class Named:
    """An admission with the language told, and up to which `seq` the talk is known to have one (None: it has none)."""

    admission: Admission
    known_at: int | None = None


class TalkLanguage:
    """Asks the detector only about talks that have no language: it may be a model that costs money.

    Whether a talk has one is read once, not on every append: it is remembered for as long as its `seq` shows that
    nobody else has written to it. Another process's message, or an erase, breaks the count, and it is read anew.
    """

    def __init__(self, detector: LanguageDetector | None, languages: TenantLanguages | None = None) -> None:
        self._detector = detector
        self._languages = languages or TenantLanguages()
        self._known: OrderedDict[tuple[str, str, str | None], int] = OrderedDict()

    async def named(self, scope: Scope, admission: Admission, latest_of: LatestOf) -> Named:
        """The detector sees redacted text only. A message too short to tell leaves the talk open."""
        known_at = self._known.get(_place(scope))
        if self._detector is None or known_at is not None or not _may_tell(admission):
            return Named(admission, known_at)
        latest = await latest_of(scope, 1)
        last = latest.messages[-1].seq if latest.messages else 0
        told = admission if latest.language else await self._told(self._detector, scope, admission)
        return Named(told or admission, None if told is None else last)

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
        self._known[place] = receipt.seq
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
