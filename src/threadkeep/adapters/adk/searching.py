"""What an app's own conversations of a user say to a question, however much other apps know of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

from threadkeep.adapters.adk.belonging import is_of_app
from threadkeep.compose_agents import AgentStores
from threadkeep.model import Hit
from threadkeep.recall.candidates import MOST_CANDIDATES
from threadkeep.scope import Scope

_LOOKED_THROUGH = 3  # times as many as are given out: some may be another app's
_MOST_LISTED = 200  # conversations of the user, the latest
_MOST_ASKED = 50  # of them, one by one


async def found_in_app(stores: AgentStores, user: Scope, app: str, query: str, most: int) -> list[Hit]:
    """Best first. Where other apps' messages took the places of the app's own, its latest conversations are asked one
    by one, and what they add stands behind."""
    looked_through = most * _LOOKED_THROUGH
    recalled = await stores.memory.recall(user, query, k=looked_through)
    names = {hit.conversation for hit in recalled.hits}
    own = {name: await is_of_app(stores.rows, user.with_conversation(name), app) for name in names}
    hits = [hit for hit in recalled.hits if own[hit.conversation]]
    nothing_was_cut = len(recalled.hits) < min(looked_through, MOST_CANDIDATES)
    if len(hits) < min(most, len(recalled.hits)) and not nothing_was_cut:
        hits += await _one_by_one(stores, user, app, query, {(hit.conversation, hit.message_id) for hit in hits}, most)
    return hits[:most]


async def _one_by_one(
    stores: AgentStores, user: Scope, app: str, query: str, known: set[tuple[str, str]], most: int
) -> list[Hit]:
    more: list[Hit] = []
    async for name in _conversations(stores, user, app):
        more += (await stores.memory.recall(user, query, k=most, conversation=name)).hits
    new = [hit for hit in more if (hit.conversation, hit.message_id) not in known]
    return sorted(new, key=lambda hit: -hit.score)


async def _conversations(stores: AgentStores, user: Scope, app: str) -> AsyncIterator[str]:
    left = _MOST_ASKED
    for listed in await stores.memory.conversations(user, limit=_MOST_LISTED):
        if left and await is_of_app(stores.rows, user.with_conversation(listed.conversation), app):
            left -= 1
            yield listed.conversation
