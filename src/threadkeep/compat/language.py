"""Language detection under the name a chat service's router calls it by."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from threadkeep.compose.memory import redaction_rules
from threadkeep.models.language import ModelDetector, OfflineDetector, decide
from threadkeep.policy.redact import Redactor
from threadkeep.ports.language import LanguageRules
from threadkeep.settings import Settings, load_settings

AskModel = Callable[[str, str], Awaitable[str | None]]  # the model's name and a prompt, to its answer


async def detect_language_bcp47(
    text: str, ask_model: AskModel | None = None, settings: Settings | None = None
) -> str | None:
    """The BCP-47 tag of a new session's first message, in the form that `THREADKEEP_LANGUAGES` has it, if set.

    With `ask_model` the model that `GEMINI_MODEL_LANG` names decides, given the message as memory would keep it;
    without it, or when it fails, the offline detector. A message too short to decide is in
    `THREADKEEP_DEFAULT_LANGUAGE`, or in none: nothing is stored for the session then, and the next message decides.
    """
    settings = settings or load_settings()
    rules = LanguageRules(settings.languages, settings.default_language)
    detector = ModelDetector(partial(ask_model, settings.gemini_model_lang)) if ask_model else OfflineDetector()
    if ask_model:
        text = Redactor(redaction_rules(settings))(text).text
    return (await decide(text, None, rules, detector)).tag
