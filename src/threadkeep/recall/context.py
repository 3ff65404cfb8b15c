"""What a model is given to read: the hits, what stands beside them, and where the talk is now, within a budget.

Room goes to what is worth most: the hits, best first; then, while fewer than `k` messages were recalled, the message
before and the message after each of them; then the newest messages of the conversation at hand. Nothing stands there
twice, all of it in the order it was said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from threadkeep.model import Hit, Message, Recalled
from threadkeep.ports.evidence import Evidence, Place
from threadkeep.recall.render import CountTokens, Quoted, fence, most_tokens_in, room_in, writer


def assembled(
    hits: Sequence[Hit],
    evidence: Evidence,
    recent: Sequence[Message] = (),
    talk: str | None = None,
    budget: int | None = None,
    tokens_in: CountTokens = most_tokens_in,
    k: int | None = None,
) -> Recalled:
    """`recent` are the newest messages of `talk`, the conversation at hand; they are no part of the `k` recalled ones.

    A long hit that does not fit does not keep a shorter one out; those for which there was no room are counted in
    `left_out`, and the text says how many they were.
    """
    room = room_in(budget, tokens_in)
    kept = [hit for hit in hits if room.takes(_of_hit(hit, talk))]
    if not kept:
        return Recalled((), "", len(hits))
    window = {Place(talk, message.seq) for message in recent} if talk is not None else set[Place]()
    beside = (one for one in _around(kept, evidence, talk) if one.place not in window and room.takes(one))
    most = 2 * len(kept)
    around = list(islice(beside, most if k is None else min(most, k - len(kept))))
    newest = [one for one in _newest(recent, talk) if room.takes(one)]
    lines = {one.place: one for one in (*newest, *around, *(_of_hit(hit, talk) for hit in kept))}
    return Recalled(tuple(kept), fence(lines.values(), len(hits) - len(kept)), len(hits) - len(kept))


def _of_hit(hit: Hit, talk: str | None) -> Quoted:
    return Quoted(
        hit.ts,
        Place(hit.conversation, hit.seq),
        writer(hit.role, hit.origin),
        hit.content,
        talk in (None, hit.conversation),
    )


def _around(hits: Sequence[Hit], evidence: Evidence, talk: str | None) -> Iterator[Quoted]:
    turns = {turn.place: turn for turn in evidence.turns}
    seen = {Place(hit.conversation, hit.seq) for hit in hits}
    for hit in hits:
        for place in (Place(hit.conversation, hit.seq - 1), Place(hit.conversation, hit.seq + 1)):
            if place in turns and place not in seen:
                seen.add(place)
                yield _of_message(turns[place].message, place, talk)


def _newest(recent: Iterable[Message], talk: str | None) -> Iterator[Quoted]:
    if talk is not None:
        for message in sorted(recent, key=lambda message: -message.seq):
            yield _of_message(message, Place(talk, message.seq), talk)


def _of_message(message: Message, place: Place, talk: str | None) -> Quoted:
    return Quoted(
        message.ts, place, writer(message.role, message.origin), message.content, talk in (None, place.conversation)
    )
