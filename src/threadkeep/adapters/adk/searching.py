"""What an app's own conversations of a user say to a question, however much other apps know of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import islice

from threadkeep.adapters.adk.belonging import is_of_app
from threadkeep.compose.adapters import AgentStores
from threadkeep.model import Hit
from threadkeep.ports.reflections import MOST_EVIDENCE
from threadkeep.recall.candidates import MOST_CANDIDATES
from threadkeep.recall.question import Question
from threadkeep.recall.sessions import as_hit, in_turns, sessions_on
from threadkeep.scope import Scope

_LOOKED_THROUGH = 3  # times as many as are given out: some may be another app's
_MOST_LISTED = 200  # conversations of the user, the latest
_MOST_ASKED = 50  # of them, one by one
_MOST_SUMMARIES = 1_000  # of the user's sessions, the latest


async def found_in_app(stores: AgentStores, user: Scope, app: str, query: str, most: int) -> list[Hit]:
    """Best first: what was said, and between it sessions whose turns are kept no longer, by their summaries."""
    said = await _said_in_app(stores, user, app, query, most)
    return [*islice(in_turns(said, await _sessions_of_app(stores, user, app, query, most)), most)]


async def _sessions_of_app(stores: AgentStores, user: Scope, app: str, query: str, most: int) -> list[Hit]:
    """Of which not all is there any more that the summary was made of."""
    kept = await stores.memory.reflections(user, "session", _MOST_SUMMARIES)
    found: list[Hit] = []
    for hit in map(as_hit, await asyncio.to_thread(sessions_on, Question(query), kept)):
        place = user.with_conversation(hit.conversation)
        if len(found) < most and await is_of_app(stores.rows, place, app) and not await _is_whole(stores, place, hit):
            found.append(hit)
    return found


async def _is_whole(stores: AgentStores, place: Scope, summary: Hit) -> bool:
    history = await stores.memory.history(place, MOST_EVIDENCE)
    return {one.id for one in history.messages}.issuperset(summary.why["made_of"])


async def _said_in_app(stores: AgentStores, user: Scope, app: str, query: str, most: int) -> list[Hit]:
    """Where other apps' messages took the places of the app's own, its latest conversations are asked one by one, and
    what they add stands behind."""
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
        if left and listed.messages and await is_of_app(stores.rows, user.with_conversation(listed.conversation), app):
            left -= 1
            yield listed.conversation
