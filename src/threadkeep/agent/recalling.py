"""What the user said that bears on the question, in this talk or in all, but for what the model is shown anyway."""

from __future__ import annotations

from dataclasses import dataclass

from threadkeep.agent.parts import AssistantParts, Documents
from threadkeep.agent.turn import Turn
from threadkeep.model import Hit
from threadkeep.ports.chat import Snippet
from threadkeep.ports.evidence import Place
from threadkeep.recall.render import Quoted, fence, room_in, writer
from threadkeep.scope import ANONYMOUS, DEFAULT_USER

_SHARED = frozenset((DEFAULT_USER, ANONYMOUS))  # by all whom nobody named: what one of them said is nobody else's


@dataclass(frozen=True, slots=True)
class _Seen:
    ids: frozenset[str]

    def holds(self, hit: Hit) -> bool:
        return hit.message_id in self.ids


async def recalled(parts: AssistantParts, turn: Turn, question: str) -> Documents:
    """Recall ranks by freshness and by conversation; the messages of the window would only stand there twice."""
    config = parts.folder.config
    seen = _Seen(frozenset([*(one.id for one in turn.prior), turn.user_message_id or ""]))
    if not question.strip():
        return Documents()
    of_all = config.recall_scope == "user" and turn.scope.user not in _SHARED
    found = await parts.memory.recall(
        turn.scope.whole_user,
        question,
        k=config.recalled + len(turn.prior) + 1,
        conversation=None if of_all else turn.scope.conversation,
    )
    hits = [hit for hit in found.hits if not seen.holds(hit)][: config.recalled]
    room = room_in(config.budgets.memory, parts.count_tokens)
    kept = [hit for hit in hits if room.takes(_quoted(hit, turn))]
    text = fence([_quoted(hit, turn) for hit in kept], len(hits) - len(kept)) if kept else ""
    snippets = [Snippet(hit.content, f"message:{hit.message_id}", "memory") for hit in kept if _tells_of_the_user(hit)]
    return Documents(text, snippets)


def _tells_of_the_user(hit: Hit) -> bool:
    """Their own words, or a note about them; what an assistant once answered is quoted to nobody as a fact."""
    return hit.role == "user" or (hit.origin is not None and hit.origin.is_note)


def _quoted(hit: Hit, turn: Turn) -> Quoted:
    place = Place(hit.conversation, hit.seq)
    return Quoted(hit.ts, place, writer(hit.role, hit.origin), hit.content, hit.conversation == turn.scope.conversation)
