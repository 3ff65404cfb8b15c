"""The language of a conversation: requested, carried on, detected from the message, or the default, in that order."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from threadkeep.models.language.requested import requested_language
from threadkeep.models.language.scripts import script_in
from threadkeep.models.language.tags import closest
from threadkeep.ports.language import CERTAIN, LanguageDetector, LanguageRules, as_tag

_log = logging.getLogger("threadkeep.language")
Source = Literal["requested", "session", "detected", "script", "default", "unknown"]


@dataclass(frozen=True, slots=True)
class Decision:
    tag: str | None
    source: Source

    @property
    def settled(self) -> str | None:
        """What to keep for the conversation; None for a default or a guess by the script, as the next message may
        decide it."""
        return self.tag if self.source in ("requested", "session", "detected") else None


def spoken_as(tag: str | None, languages: Sequence[str]) -> str | None:
    """Which of `languages` a tag means (`en-GB` is their `en`); itself where there are none, and any is spoken."""
    named = as_tag(tag)
    return closest({one: one for one in languages}, named) if languages and named else named


async def decide(text: str, session: str | None, rules: LanguageRules, detector: LanguageDetector) -> Decision:
    """The language to answer `text` in.

    The detector is called only when the session has no language and the user requests none: a session's language is
    carried, whatever a later message looks like, unless `rules` do not have it. A message too short to decide falls
    back to the default, which is not to be kept: the detector is called again until one message decides. Where it is
    written in a script that the default is not, the guess of the detector is taken instead, and not kept either.
    """
    if requested := requested_language(text, rules.choice):
        return Decision(requested, "requested")
    if session and spoken_as(session, rules.allowed):
        _log.info("language detection skipped: the session is held in %s", session)
        return Decision(session, "session")
    detection = await detector.detect(text, rules.choice)
    if detection.confidence >= CERTAIN:
        return Decision(detection.tag, "detected")
    if rules.default and detection.confidence and script_in(detection.tag) != script_in(rules.default):
        return Decision(detection.tag, "script")
    return Decision(rules.default, "default" if rules.default else "unknown")
