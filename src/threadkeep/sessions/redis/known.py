"""An append that the archive has the last word on: a replay, a retry of what was erased, another payload."""

from __future__ import annotations

from dataclasses import dataclass, replace

from threadkeep.errors import Conflict, ScopeErased, StoreUnavailable
from threadkeep.model import Admission, Receipt
from threadkeep.ports.hot import AskArchive, Hot, Seed
from threadkeep.scope import Scope

AWAY = Seed(last_seq=-1)  # what a script is told when the archive does not answer


@dataclass(slots=True)
class Question:
    """About one append."""

    ask: AskArchive
    scope: Scope
    admission: Admission
    key: str | None
    away: StoreUnavailable | None = None

    async def __call__(self, must: bool) -> Seed:
        """What the archive says; raises `ArchiveKnows` when that decides it."""
        try:
            ids = () if self.admission.new_ids else [draft.id for draft in self.admission.drafts]
            seed = await self.ask(self.scope, ids, self.key)
        except StoreUnavailable as error:
            self.away = error
            return AWAY if must else Seed()  # the worker will find out what it knows
        check_against(seed, self.admission)
        return seed


class ArchiveKnows(Exception):
    """Not an error: the receipt to answer with, or what is left to append without the messages that were erased."""

    def __init__(self, receipt: Receipt | None, rest: Admission) -> None:
        super().__init__()
        self.receipt = receipt
        self.rest = rest


def check_against(seed: Seed, admission: Admission) -> None:
    """Raises `ArchiveKnows`, `Conflict` and `ScopeErased`, as an archive would by itself."""
    if seed.key_erased:
        raise ScopeErased("what this idempotency key had stored was erased; nothing was stored again")
    if seed.receipt is not None:
        if seed.payload != admission.digest:
            raise Conflict("this idempotency key was used for another payload; use a new key")
        raise ArchiveKnows(replace(seed.receipt, replayed=True), admission)
    gone = {index for index, draft in enumerate(admission.drafts) if draft.id in seed.erased}
    if gone:
        rest = without(admission, gone)
        nothing = not rest.drafts and not seed.last_seq  # not even the empty conversation comes back
        raise ArchiveKnows(
            Receipt("queued", 0, (), rest.refused, rest.stripped, rest.redacted) if nothing else None, rest
        )


def without(admission: Admission, gone: set[int]) -> Admission:
    """Messages that were erased one by one are not kept again; the receipt says so."""
    left = tuple(draft for index, draft in enumerate(admission.drafts) if index not in gone)
    refused = {**admission.refused, "erased": admission.refused.get("erased", 0) + len(gone)}
    return replace(admission, drafts=left, refused=refused)


def still_standing(hot: Hot, seed: Seed) -> Hot:
    """Of what is hot, all that the archive was not told to forget."""
    if (hot.scope.generation or 0) < seed.generation:
        return replace(hot, scope=hot.scope.at(seed.generation), window=(), pending=(), last_seq=0, language=None)
    window, pending = (tuple(one for one in some if one.id not in seed.erased) for some in (hot.window, hot.pending))
    return replace(hot, window=window, pending=pending)


def indices(listed: bytes) -> set[int]:
    """As a script answers them."""
    return {int(index) for index in listed.split()}
