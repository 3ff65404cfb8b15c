"""Settings to whoever tells callers apart, and a URL to the keys they carry."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib import import_module

from threadkeep.compose import open_database
from threadkeep.errors import InvalidSetting, MissingExtra
from threadkeep.identity.authenticator import Authenticator, Tokens
from threadkeep.identity.key_store import SqlKeys
from threadkeep.ports.keys import KeyStore
from threadkeep.settings import Settings


def authentication_is_configured(settings: Settings) -> bool:
    return any((settings.api_key_secret, settings.jwt_secret, settings.jwt_jwks))


async def refuse_forgotten_authentication(identities: Authenticator, allow: str) -> None:
    """Raise `InvalidSetting` where keys were made and no setting asks callers for them: every caller would own the
    store. `allow` is how to run like that on purpose."""
    if not await identities.forgotten():
        return
    fix = f"set it to the secret that the keys were made with, or {allow} to let this machine in without one"
    raise InvalidSetting("THREADKEEP_API_KEY_SECRET", "is not set, and API keys exist", fix)


def without_authentication(settings: Settings) -> Settings:
    return settings.model_copy(update={"api_key_secret": None, "jwt_secret": None, "jwt_jwks": None})


def authenticator(settings: Settings, keys: KeyStore | None, *, no_auth: bool = False) -> Authenticator:
    """Raises `InvalidSetting` and `MissingExtra`."""
    return Authenticator(keys, settings.api_key_secret, _tokens(settings), no_auth=no_auth)


def _tokens(settings: Settings) -> Tokens | None:
    """Imported only now: tokens need an extra that a service with keys alone does without."""
    if settings.jwt_secret is None and settings.jwt_jwks is None:
        return None
    try:
        tokens = import_module("threadkeep.identity.tokens")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("threadkeep"):
            raise
        raise MissingExtra("service", "authentication by tokens") from None
    rules = tokens.TokenRules(
        secret=settings.jwt_secret,
        key_set=settings.jwt_jwks,
        key_set_over_http=settings.jwt_jwks_over_http,
        audience=settings.jwt_audience,
        issuer=settings.jwt_issuer,
        skew_seconds=settings.jwt_skew_seconds,
    )
    return tokens.TokenVerifier(rules)


def key_secret(settings: Settings) -> str:
    if settings.api_key_secret is None:
        fix = "set it to 32 or more random characters, the same for every process: openssl rand -hex 32"
        raise InvalidSetting("THREADKEEP_API_KEY_SECRET", "is not set", fix)
    return settings.api_key_secret


@asynccontextmanager
async def open_keys(url: str, settings: Settings) -> AsyncGenerator[KeyStore]:
    """Open and up to date. Raises the `StoreError` that says why it would not open."""
    keys = SqlKeys(await open_database(url, settings), owned=True)
    try:
        yield keys
    finally:
        await keys.close()
