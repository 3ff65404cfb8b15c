"""Admitted messages for tests that speak to a store directly, without the policy in front of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import count
from typing import Any

import uuid_utils

from threadkeep.model import Admission, Draft, HistoryRange, Message, Receipt
from threadkeep.policy.admit import digest_of
from threadkeep.ports.archive import Archive
from threadkeep.ports.index import TermIndex, Turn
from threadkeep.recall.candidates import evidence_for
from threadkeep.recall.question import Question
from threadkeep.scope import Scope
from threadkeep.testing.clock import START

_numbers = count()


def new_scope(tenant: str = "shop", user: str | None = None, conversation: str = "c1") -> Scope:
    """A conversation of a new user, so that a store may be shared between tests."""
    return Scope(tenant, user or f"u-{uuid_utils.uuid7()}", conversation)


def draft(content: str, id: str | None = None, *, ts: datetime = START, **more: Any) -> Draft:
    """A user's message with an id of its own, unless one is given."""
    return Draft(id=id or str(uuid_utils.uuid7()), role=more.pop("role", "user"), content=content, ts=ts, **more)


def admitted(*drafts: Draft | str, refused: Mapping[str, int] | None = None) -> Admission:
    """What policy would have handed on; a plain string is a user's message."""
    made = tuple(draft(one) if isinstance(one, str) else one for one in drafts)
    return Admission(made, digest_of(made, refused or {}), refused or {})


async def say(archive: Archive, scope: Scope, *texts: str) -> Receipt:
    """Append the texts as one turn."""
    return await archive.append(scope, admitted(*texts))


async def kept(archive: Archive, scope: Scope) -> tuple[Message, ...]:
    """Everything the conversation holds, in order."""
    return (await archive.messages(scope, HistoryRange())).messages


async def texts(archive: Archive, scope: Scope) -> list[str]:
    return [message.content for message in await kept(archive, scope)]


async def found(index: TermIndex, scope: Scope, text: str) -> list[Turn]:
    """Turns that hold one of the words, by the search that `Memory` makes and its normalisation of words."""
    evidence = await evidence_for(Question(text), index, scope)
    return [turn for turn in evidence.turns if turn.counts]


def a_tenant() -> str:
    """A new tenant, for tests that name their users."""
    return f"t-{uuid_utils.uuid7()}"


def a_word() -> str:
    """One that no other message holds."""
    return f"word{next(_numbers)}x"
