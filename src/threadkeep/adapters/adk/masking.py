"""What a session said, for those outside: masked by the rules the archive keeps it under."""

from __future__ import annotations

from collections.abc import Callable

from threadkeep.compose.adapters import AgentStores
from threadkeep.compose.policy import admission_rules
from threadkeep.errors import StoreUnavailable
from threadkeep.scope import Scope
from threadkeep.settings import load_settings

Masked = Callable[[str], str]


async def masked_at(stores: AgentStores, scope: Scope) -> Masked:
    """With the operator's rules, for the tenant and the conversation's current language."""
    redactor = stores.memory.redactor_at(scope)
    try:
        language = (await stores.memory.history(scope, 1)).language or None
    except StoreUnavailable:  # as an append does then
        language = None
    return lambda text: redactor(text, language).text


def masked_anywhere() -> Masked:
    """With the operator's rules, where nothing else is known of whose it is."""
    redactor = admission_rules(load_settings()).redactor
    return lambda text: redactor(text).text
