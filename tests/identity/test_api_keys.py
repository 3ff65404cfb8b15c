"""API keys: shown once, kept as a digest, refused once revoked or expired, on every database."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.servers.server import Server
from threadkeep import Settings
from threadkeep.compose.service import open_keys
from threadkeep.errors import InvalidInput, InvalidScope, StoreUnavailable, Unauthenticated
from threadkeep.identity.api_keys import holds, new_key, prefix_of
from threadkeep.identity.authenticator import Authenticator
from threadkeep.identity.principal import LOCAL
from threadkeep.policy.redact import redact
from threadkeep.ports.clock import system_clock
from threadkeep.ports.keys import ApiKey, KeyStore
from threadkeep.testing.clock import FakeClock
from threadkeep.testing.traces import Traces

SECRET = "s" * 32
DAY = timedelta(days=1)


def made(user: str | None = "ann", **more: object) -> tuple[str, ApiKey]:
    return new_key(SECRET, system_clock(), ("shop", user), **more)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("before", ["here is ", "threadkeep_console=", "key:", "我的"])
def test_a_key_in_a_message_is_masked(before: str) -> None:
    for _ in range(20):
        key, _kept = made()
        assert redact(f"{before}{key} ok").text == f"{before}[REDACTED:SECRET] ok"


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgres", marks=pytest.mark.server("postgres")),
        pytest.param("mariadb", marks=pytest.mark.server("mariadb")),
    ]
)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[KeyStore]:
    url = f"sqlite:///{tmp_path}/keys.db"
    if request.param != "sqlite":
        server: Server = request.getfixturevalue(f"{request.param}_server")
        server.wipe()
        url = server.url
    async with open_keys(url, Settings()) as keys:
        yield keys


async def test_a_key_is_found_by_its_prefix_as_it_was_added(store: KeyStore) -> None:
    key, kept = made(name="front desk – ż", expires_at=system_clock() + DAY, permissions=frozenset({"read"}))
    await store.add(kept)

    found = await store.find(prefix_of(key) or "")

    assert found == kept
    assert await store.find("nosuchprefix") is None


async def test_keys_are_listed_by_tenant_byte_for_byte_oldest_first(store: KeyStore) -> None:
    ours = [made()[1], made(None)[1]]
    other = new_key(SECRET, system_clock(), ("Shop", "ann"))[1]
    for one in (*ours, other):
        await store.add(one)

    assert [one.prefix for one in await store.all("shop")] == [one.prefix for one in ours]
    assert len(await store.all()) == 3


async def test_a_revoked_key_keeps_the_time_it_was_revoked_at(store: KeyStore) -> None:
    key, kept = made()
    await store.add(kept)
    first = system_clock()

    assert await store.revoke(kept.prefix, first)
    assert await store.revoke(kept.prefix, first + DAY)
    assert not await store.revoke("nosuchprefix", first)

    found = await store.find(kept.prefix)
    assert found is not None
    assert found.revoked_at == first
    assert not holds(key, found, SECRET, first)


async def test_the_key_itself_is_in_no_file(tmp_path: Path) -> None:
    key, kept = made()
    async with open_keys(f"sqlite:///{tmp_path}/keys.db", Settings()) as keys:
        await keys.add(kept)
        assert Traces([key, key.split("_", 2)[2]]).in_folder(tmp_path) == set()
        assert Traces([kept.prefix]).in_folder(tmp_path) != set()


def test_a_key_holds_only_whole_under_its_secret_and_before_its_end() -> None:
    now = system_clock()
    key, kept = made(expires_at=now + DAY)

    assert holds(key, kept, SECRET, now)
    assert not holds(key, kept, SECRET, now + DAY)
    assert not holds(key[:-1] + ("A" if key[-1] != "A" else "B"), kept, SECRET, now)
    assert not holds(key, kept, "t" * 32, now)
    assert repr(kept.digest) not in repr(kept)


@pytest.mark.parametrize(
    "text", ["", "tk_", "tk_short_x", "Bearer abc", "tk_" + "a" * 12 + "_" + "ż" * 43, "x" * 10_000]
)
def test_what_cannot_be_a_key_has_no_prefix(text: str) -> None:
    assert prefix_of(text) is None


def test_bad_wishes_are_refused_before_a_key_is_made() -> None:
    with pytest.raises(InvalidScope):
        made("")
    with pytest.raises(InvalidInput):
        made(name="x\n")
    with pytest.raises(InvalidInput):
        made(expires_at=system_clock() - DAY)


class Flaky:
    """A store of one key that can be away."""

    def __init__(self, kept: ApiKey | None) -> None:
        self.kept, self.away, self.asked = kept, False, 0

    async def find(self, prefix: str) -> ApiKey | None:
        self.asked += 1
        if self.away:
            raise StoreUnavailable("away")
        return self.kept if self.kept and self.kept.prefix == prefix else None


async def test_without_anything_configured_everybody_is_the_machines_owner() -> None:
    who = await Authenticator().identify(None, "for-the-tools")

    assert (who.role, who.tenant, who.user, who.token) == ("SUPER_ADMIN", LOCAL.tenant, LOCAL.user, "for-the-tools")


async def test_a_key_is_taken_for_its_owner_and_a_bearer_beside_it_is_for_the_tools() -> None:
    key, kept = made()

    who = await Authenticator(Flaky(kept), SECRET).identify(key, "a.b.c")  # pyright: ignore[reportArgumentType]

    assert (who.tenant, who.user, who.role, who.token) == ("shop", "ann", "USER", "a.b.c")


@pytest.mark.parametrize("given", [None, "", "tk_x", "tk_" + "a" * 12 + "_" + "a" * 43])
async def test_no_key_or_a_wrong_one_is_refused(given: str | None) -> None:
    authenticator = Authenticator(Flaky(made()[1]), SECRET)  # pyright: ignore[reportArgumentType]
    with pytest.raises(Unauthenticated):
        await authenticator.identify(given, None)


async def test_a_revoked_key_is_refused_within_seconds_and_the_last_word_stands_while_the_store_is_away() -> None:
    key, kept = made()
    now = [0.0]
    store = Flaky(kept)
    authenticator = Authenticator(store, SECRET, clock=FakeClock(), monotonic=lambda: now[0])  # pyright: ignore[reportArgumentType]

    await authenticator.identify(key, None)
    await authenticator.identify(key, None)
    assert store.asked == 1

    now[0], store.away = 60.0, True
    await authenticator.identify(key, None)
    now[0] = 2_000.0
    with pytest.raises(StoreUnavailable):
        await authenticator.identify(key, None)

    store.away, store.kept = False, None
    with pytest.raises(Unauthenticated):
        await authenticator.identify(key, None)
