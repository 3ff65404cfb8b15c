"""What the service needs besides a memory: who its callers are and their keys, its limits, its media models."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from threadkeep.compose.memory import open_database
from threadkeep.compose.optional import part
from threadkeep.core.media import Media, MediaLimits
from threadkeep.errors import InvalidSetting
from threadkeep.identity.api_keys import SqlKeys
from threadkeep.identity.authenticator import Authenticator, Tokens
from threadkeep.models.language import SUPPORTED
from threadkeep.ports.keys import KeyStore
from threadkeep.ports.models import MediaModality, MediaSummariser
from threadkeep.settings import Settings, load_settings

if TYPE_CHECKING:
    from threadkeep.sessions.redis.values import RedisWindows


def authentication_is_configured(settings: Settings) -> bool:
    return any((settings.api_key_secret, settings.jwt_secret, settings.jwt_jwks))


async def refuse_forgotten_authentication(identities: Authenticator, allow: str) -> None:
    """Raise `InvalidSetting` where keys were made and no setting requires them: every caller would own the
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
    if settings.jwt_secret is None and settings.jwt_jwks is None:
        return None
    tokens = part("identity.tokens", "service", "authentication by tokens")
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


def windows_at(url: str | None, timeout: float) -> RedisWindows | None:
    """None where this process counts by itself."""
    if url is None:
        return None
    from threadkeep.sessions.redis.client import RedisClient, RedisOptions
    from threadkeep.sessions.redis.values import RedisWindows

    return RedisWindows(RedisClient(url, RedisOptions(timeout)))


def media_for(settings: Settings | None = None) -> Media:
    """The caller closes it. Raises `InvalidSetting`, and `MissingExtra` for a provider's package."""
    settings = settings or load_settings()
    made: dict[MediaModality, MediaSummariser] = {}
    choices: dict[MediaModality, tuple[str, str]] = {
        "voice": ("THREADKEEP_VOICE_MODEL", settings.voice_model),
        "image": ("THREADKEEP_IMAGE_MODEL", settings.image_model),
    }
    for modality, (setting, chosen) in choices.items():
        if chosen == "offline":
            made[modality] = _offline(modality, settings)
        elif chosen != "none":
            made[modality] = _hosted(setting, chosen, settings)
    limits = MediaLimits(settings.max_audio_bytes, settings.max_image_bytes, settings.max_image_pixels)
    return Media(made, limits)


def _offline(modality: MediaModality, settings: Settings) -> MediaSummariser:
    if modality == "voice":
        from threadkeep.models.media.voice import WhisperVoice

        return WhisperVoice(settings.languages or SUPPORTED, settings.max_audio_seconds)
    from threadkeep.models.media.text_in_image import TesseractImages

    return TesseractImages(settings.languages or SUPPORTED, settings.media_timeout_seconds, settings.max_image_pixels)


def _hosted(setting: str, chosen: str, settings: Settings) -> MediaSummariser:
    from threadkeep.models.chat.choice import ChatChoice, chat_model_for
    from threadkeep.models.chat.offline import OfflineModel
    from threadkeep.models.media.hosted import HostedMedia

    choice = ChatChoice(
        chosen,
        settings.media_timeout_seconds,
        settings.chat_retries,
        settings.chat_base_url,
        settings.ollama_host,
        settings.ollama_port,
    )
    try:
        return HostedMedia(chat_model_for(choice, OfflineModel({})), settings.max_audio_seconds)
    except InvalidSetting:
        raise InvalidSetting(setting, "names no model", "use offline, none, or a provider's: gemini:…") from None
