"""API keys that exist while nobody is asked for one: a store that was down at the start tells it later."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from threadkeep.errors import StoreUnavailable, Unauthenticated
from threadkeep.identity.api_keys import new_key
from threadkeep.identity.authenticator import Authenticator
from threadkeep.identity.principal import LOCAL
from threadkeep.ports.clock import system_clock
from threadkeep.ports.keys import ApiKey

SECRET = "k" * 32


class Keys:
    """A `KeyStore` that is down until it is brought up."""

    def __init__(self, *kept: ApiKey) -> None:
        self.kept = kept
        self.is_up = False
        self.asked = 0

    async def all(self, tenant: str | None = None) -> Sequence[ApiKey]:
        self.asked += 1
        if not self.is_up:
            raise StoreUnavailable("down")
        return self.kept


async def test_a_store_that_comes_back_with_keys_closes_the_service() -> None:
    keys, now = Keys(new_key(SECRET, system_clock(), ("default", "ann"))[1]), [0.0]
    identities = Authenticator(keys, monotonic=lambda: now[0])  # pyright: ignore[reportArgumentType]
    assert await identities.identify(None, None) == LOCAL
    keys.is_up, now[0] = True, 10.0
    for _ in range(2):
        with pytest.raises(Unauthenticated):
            await identities.identify(None, None)


async def test_a_store_without_keys_is_asked_once_and_one_that_is_down_every_five_seconds() -> None:
    keys, now = Keys(), [0.0]
    identities = Authenticator(keys, monotonic=lambda: now[0])  # pyright: ignore[reportArgumentType]
    for now[0] in (0.0, 1.0, 2.0, 6.0):
        assert await identities.identify(None, None) == LOCAL
    assert keys.asked == 2
    keys.is_up = True
    for now[0] in (12.0, 30.0, 60.0):
        assert await identities.identify(None, None) == LOCAL
    assert keys.asked == 3


async def test_whoever_asks_for_no_authentication_is_not_asked_again() -> None:
    keys = Keys(new_key(SECRET, system_clock(), ("default", "ann"))[1])
    keys.is_up = True
    assert await Authenticator(keys, no_auth=True).identify(None, None) == LOCAL  # pyright: ignore[reportArgumentType]
    assert keys.asked == 0
