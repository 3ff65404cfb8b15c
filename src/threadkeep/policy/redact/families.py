"""Every rule family that ships, in one list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from threadkeep.policy.redact import (
    address_en,
    address_fr,
    address_latin,
    address_pl,
    address_vi,
    address_zh,
    banking,
    births,
    cards,
    commands,
    documents,
    emails,
    ids,
    names,
    network,
    one_time,
    passwords,
    phones,
    places,
    secret_context,
    seed_phrases,
    spelled,
    tokens,
    urls,
    wallets,
    wrapped,
)

if TYPE_CHECKING:
    from threadkeep.policy.redact.rule import Family

BUILT_IN: Final[tuple[Family, ...]] = (
    *emails.FAMILIES,
    *tokens.FAMILIES,
    *passwords.FAMILIES,
    *one_time.FAMILIES,
    *secret_context.FAMILIES,
    *seed_phrases.FAMILIES,
    *commands.FAMILIES,
    *urls.FAMILIES,
    *cards.FAMILIES,
    *banking.FAMILIES,
    *ids.FAMILIES,
    *documents.FAMILIES,
    *births.FAMILIES,
    *places.FAMILIES,
    *wallets.FAMILIES,
    *network.FAMILIES,
    *phones.FAMILIES,
    *spelled.FAMILIES,
    *wrapped.FAMILIES,
    *address_en.FAMILIES,
    *address_fr.FAMILIES,
    *address_latin.FAMILIES,
    *address_pl.FAMILIES,
    *address_vi.FAMILIES,
    *address_zh.FAMILIES,
    *names.FAMILIES,
)
