"""Every setting, in one place. The environment wins over `threadkeep.toml`, which wins over the defaults.

A key of the file that is not known, and a variable that is nearly a known one, is refused: a misspelled
`THREADKEEP_JWT_SECRET` would otherwise leave the service open without a word.

Names without a prefix are the ones applications already use; ours start with `THREADKEEP_`.
"""

from __future__ import annotations

import difflib
import logging
import os
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field, IPvAnyNetwork, StringConstraints, ValidationError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from threadkeep.errors import InvalidSetting, closest, fix_for, keys_beside

_A_CENTURY_OF_MINUTES = 52_560_000
_A_CENTURY_OF_SECONDS = 60 * _A_CENTURY_OF_MINUTES
CONFIG_FILE = "threadkeep.toml"
CONFIG_FILE_VARIABLE = "THREADKEEP_CONFIG"
TOKEN_VARIABLE = "THREADKEEP_TOKEN"  # no setting: the credential of `threadkeep mcp --gateway`
_PREFIX = "THREADKEEP"
_BEGINS_ALIKE = 0.85  # THREADKEP and THREAD_KEEP do, THREADPOOL (0.7) does not
# What Kubernetes sets in every pod for a service called `threadkeep` or `threadkeep-<something>`.
_OF_KUBERNETES = re.compile(
    r"THREADKEEP(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_PORT_OF_KUBERNETES = re.compile(r"(tcp|udp|sctp)://.+")
_log = logging.getLogger("threadkeep.settings")
_warned_of: set[str] = set()


def _named(name: str, default: Any, **limits: Any) -> Any:
    """A setting known by an environment name of its own, and in TOML by the same in lower case."""
    return Field(default, validation_alias=AliasChoices(name, name.lower()), **limits)


def _ours(name: str, default: Any, **limits: Any) -> Any:
    return Field(default, validation_alias=AliasChoices(f"THREADKEEP_{name}", name.lower()), **limits)


def _split(value: Any) -> Any:
    """`vi,pl` in the environment, a list in TOML."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


LanguageTag = Annotated[str, StringConstraints(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$")]
LanguageTags = Annotated[tuple[LanguageTag, ...], NoDecode, BeforeValidator(_split)]

Region = Annotated[str, StringConstraints(pattern=r"^[A-Z]{2}$")]
Regions = Annotated[tuple[Region, ...], NoDecode, BeforeValidator(_split)]


Origin = Annotated[str, StringConstraints(pattern=r"^https?://[^/\s*]+$")]
Origins = Annotated[tuple[Origin, ...], NoDecode, BeforeValidator(_split)]
Host = Annotated[str, StringConstraints(pattern=r"^[^/\s*:]+(:\d{1,5})?$")]
Hosts = Annotated[tuple[Host, ...], NoDecode, BeforeValidator(_split)]
Networks = Annotated[tuple[IPvAnyNetwork, ...], NoDecode, BeforeValidator(_split)]
RateLimit = Annotated[str, StringConstraints(pattern=r"^[1-9]\d{0,6}/(second|minute|hour|day)$")]


class TenantLanguage(BaseModel, frozen=True, extra="forbid"):
    """What one tenant speaks, where it is not what all speak."""

    languages: tuple[LanguageTag, ...] = Field(min_length=1)
    default: LanguageTag | None = None


class Settings(BaseSettings):
    model_config = SettingsConfigDict(extra="ignore", case_sensitive=True, env_ignore_empty=True, frozen=True)

    database_url: str = _named("DATABASE_URL", "sqlite:///./database/sqlite.db")
    redis_url: str | None = _named("REDIS_URL", None)

    session_max_messages: int = _named("SESSION_MAX_MESSAGES", 20, ge=1)
    session_max_chars: int | None = _named("SESSION_MAX_CHARS", None, ge=1)
    session_ttl_min: float = _named("SESSION_TTL_MIN", 60, gt=0, le=_A_CENTURY_OF_MINUTES)

    session_carried_over: bool = _ours("SESSION_CARRIED_OVER", False)

    memory_redis_ttl_seconds: int = _named("MEMORY_REDIS_TTL_SECONDS", 172_800, ge=1, le=_A_CENTURY_OF_SECONDS)
    memory_flush_batch_size: int = _named("MEMORY_FLUSH_BATCH_SIZE", 100, ge=1)
    memory_table_map: dict[str, str | None] = _named(
        "MEMORY_TABLE_MAP", {"conversations": "conversations", "memories": "memories"}
    )
    tokenizer_name: str = _named("TOKENIZER_NAME", "cl100k_base")

    chroma_path: str = _named("CHROMA_PATH", "./database/chroma_db")
    ollama_host: str = _named("OLLAMA_HOST", "localhost")
    ollama_port: int = _named("OLLAMA_PORT", 11_434, ge=1, le=65_535)
    persona_path: str = _named("PERSONA_PATH", "./prompts/system_persona_vi.md")
    persona_max_chars: int = _named("PERSONA_MAX_CHARS", 4_000, ge=1)
    intent_confidence_threshold: float = _named("INTENT_CONFIDENCE_THRESHOLD", 0.5, ge=0, le=1)
    gemini_model: str = _named("GEMINI_MODEL", "gemini-flash-latest")
    gemini_model_lang: str = _named("GEMINI_MODEL_LANG", "gemini-flash-lite-latest")

    languages: LanguageTags = _ours("LANGUAGES", ())
    default_language: LanguageTag | None = _ours("DEFAULT_LANGUAGE", None)
    tenant_languages: dict[str, TenantLanguage] = _ours("TENANT_LANGUAGES", {})

    max_message_bytes: int = _ours("MAX_MESSAGE_BYTES", 1_048_576, ge=1)
    redaction_style: Literal["typed", "plain"] = _ours("REDACTION_STYLE", "typed")
    redaction_rules: str | None = _ours("REDACTION_RULES", None)
    redaction_key: str | None = _ours("REDACTION_KEY", None, min_length=16)
    tombstone_key: str | None = _ours("TOMBSTONE_KEY", None, min_length=16)
    redaction_names: Literal["off", "rules", "model"] = _ours("REDACTION_NAMES", "off")
    redaction_regions: Regions = _ours("REDACTION_REGIONS", ())
    tenant_regions: dict[str, tuple[Region, ...]] = _ours("TENANT_REGIONS", {})
    outward_log: str | None = _ours("OUTWARD_LOG", None)

    embedder: str = _ours("EMBEDDER", "auto")
    vector_store: Literal["auto", "archive", "chroma"] = _ours("VECTOR_STORE", "auto")
    knowledge_redaction: bool = _ours("KNOWLEDGE_REDACTION", False)
    semantic_cache: Literal["auto", "memory", "redis", "none"] = _ours("SEMANTIC_CACHE", "auto")
    semantic_cache_similarity: float = _ours("SEMANTIC_CACHE_SIMILARITY", 0.95, gt=0, le=1)
    rewriter: str = _ours("REWRITER", "auto")
    rewriter_timeout_seconds: float = _ours("REWRITER_TIMEOUT_SECONDS", 10, gt=0)
    semantic_cache_ttl_seconds: float = _ours("SEMANTIC_CACHE_TTL_SECONDS", 3_600, gt=0)
    embedder_key: str | None = _ours("EMBEDDER_KEY", None)
    embedder_timeout_seconds: float = _ours("EMBEDDER_TIMEOUT_SECONDS", 30, gt=0)

    assistant: str | None = _ours("ASSISTANT", None)
    chat_model: str | None = _ours("CHAT_MODEL", None)
    chat_base_url: str | None = _ours("CHAT_BASE_URL", None)
    chat_timeout_seconds: float = _ours("CHAT_TIMEOUT_SECONDS", 60, gt=0)
    chat_retries: int = _ours("CHAT_RETRIES", 2, ge=0, le=10)

    durability: Literal["fast", "durable"] = _ours("DURABILITY", "fast")
    redis_rewrite_after_erase: bool = _ours("REDIS_REWRITE_AFTER_ERASE", False)
    redis_timeout_seconds: float = _ours("REDIS_TIMEOUT_SECONDS", 2, gt=0)
    slot_key: str | None = _ours("SLOT_KEY", None)
    flush_stale_seconds: float = _ours("FLUSH_STALE_SECONDS", 10, gt=0)
    lag_log_seconds: float = _ours("LAG_LOG_SECONDS", 60, gt=0)

    metrics: Literal["auto", "on", "off"] = _ours("METRICS", "auto")
    metrics_fresh_seconds: float = _ours("METRICS_FRESH_SECONDS", 30, ge=0)
    prometheus_multiproc_dir: str | None = _named("PROMETHEUS_MULTIPROC_DIR", None)

    api_key_secret: str | None = _ours("API_KEY_SECRET", None, min_length=32)
    jwt_secret: str | None = _ours("JWT_SECRET", None, min_length=32)
    jwt_jwks: str | None = _ours("JWT_JWKS", None)
    jwt_jwks_over_http: bool = _ours("JWT_JWKS_OVER_HTTP", False)
    jwt_audience: str | None = _ours("JWT_AUDIENCE", None)
    jwt_issuer: str | None = _ours("JWT_ISSUER", None)
    jwt_skew_seconds: float = _ours("JWT_SKEW_SECONDS", 60, ge=0, le=600)
    cors_origins: Origins = _ours("CORS_ORIGINS", ())
    mcp_hosts: Hosts = _ours("MCP_HOSTS", ())
    max_header_bytes: int = _ours("MAX_HEADER_BYTES", 32_768, ge=1_024, le=16_777_216)
    max_headers: int = _ours("MAX_HEADERS", 100, ge=10, le=10_000)
    max_url_bytes: int = _ours("MAX_URL_BYTES", 16_384, ge=256, le=16_777_216)
    header_timeout_seconds: float = _ours("HEADER_TIMEOUT_SECONDS", 10, gt=0, le=3_600)
    body_timeout_seconds: float = _ours("BODY_TIMEOUT_SECONDS", 60, gt=0, le=3_600)
    max_connections: int = _ours("MAX_CONNECTIONS", 500, ge=1)
    rate_limit: RateLimit | None = _ours("RATE_LIMIT", None)
    chat_rate_limit: RateLimit = _ours("CHAT_RATE_LIMIT", "30/minute")
    chat_caller_rate_limit: RateLimit = _ours("CHAT_CALLER_RATE_LIMIT", "600/minute")
    chat_address_rate_limit: RateLimit = _ours("CHAT_ADDRESS_RATE_LIMIT", "120/minute")
    trusted_proxies: Networks = _ours("TRUSTED_PROXIES", ())
    max_chat_bytes: int = _ours("MAX_CHAT_BYTES", 65_536, ge=1)
    max_audio_bytes: int = _ours("MAX_AUDIO_BYTES", 4_194_304, ge=1)
    max_audio_seconds: float = _ours("MAX_AUDIO_SECONDS", 120, gt=0, le=3_600)
    max_image_bytes: int = _ours("MAX_IMAGE_BYTES", 4_194_304, ge=1)
    max_image_pixels: int = _ours("MAX_IMAGE_PIXELS", 16_000_000, ge=1)
    voice_model: str = _ours("VOICE_MODEL", "offline")
    image_model: str = _ours("IMAGE_MODEL", "offline")
    media_timeout_seconds: float = _ours("MEDIA_TIMEOUT_SECONDS", 60, gt=0)
    knowledge_path: str = _ours("KNOWLEDGE_PATH", "./knowledge")

    thread_idle_days: float = _ours("THREAD_IDLE_DAYS", 30, gt=0, le=36_500)
    thread_grace_days: float = _ours("THREAD_GRACE_DAYS", 7, ge=0, le=36_500)
    turn_retention_days: float = _ours("TURN_RETENTION_DAYS", 90, gt=0, le=36_500)
    memory_retention_days: float | None = _ours("MEMORY_RETENTION_DAYS", None, gt=0, le=36_500)
    retention_time: str = _ours("RETENTION_TIME", "00:00", pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")

    auto_migrate: bool = _ours("AUTO_MIGRATE", True)
    pool_size: int = _ours("POOL_SIZE", 10, ge=1)
    pool_overflow: int = _ours("POOL_OVERFLOW", 10, ge=0)
    pool_wait_seconds: float = _ours("POOL_WAIT_SECONDS", 10, gt=0)
    connect_timeout_seconds: float = _ours("CONNECT_TIMEOUT_SECONDS", 5, gt=0)
    store_timeout_seconds: float = _ours("STORE_TIMEOUT_SECONDS", 30, gt=0)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        _check_variables()
        return init_settings, env_settings, InitSettingsSource(settings_cls, _checked(read_config_file()))


def config_file() -> Path:
    return Path(os.path.expanduser(os.environ.get(CONFIG_FILE_VARIABLE) or CONFIG_FILE))


def read_config_file() -> dict[str, Any]:
    """Nothing where there is none; some editors mark theirs as UTF-8. Raises `ValueError` on what is no TOML.

    One that was named, or exists and cannot be read, is not passed over: it may say what is to be masked, or who
    may call. Raises `InvalidSetting`.
    """
    named = bool(os.environ.get(CONFIG_FILE_VARIABLE))
    try:
        text = config_file().read_text("utf-8-sig")
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not named:
            return {}
        problem = f"{config_file()} cannot be read ({error.strerror})"
        raise InvalidSetting(
            CONFIG_FILE_VARIABLE if named else CONFIG_FILE, problem, "check its path and its rights"
        ) from None
    return tomllib.loads(text)


def load_settings(*, warn: bool = True) -> Settings:
    """Raises `InvalidSetting` naming the variable, never its value: that may be a password.

    Logs each variable that begins like ours and is no setting, once a process; not with `warn=False`.
    """
    try:
        settings = Settings()
        if warn:
            warn_of_unknown_variables()
        return settings
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        if first["type"] == "extra_forbidden":
            raise _unknown_within(first["loc"]) from None
        name = str(first["loc"][0]) if first["loc"] else "settings"
        raise InvalidSetting(name, first["msg"], "correct it in the environment or in threadkeep.toml") from None
    except SettingsError as error:
        raise InvalidSetting(_variable_in(error), "is not valid JSON", "correct it in the environment") from None
    except ValueError as error:
        raise InvalidSetting(str(config_file()), str(error), "correct the file: it is not valid TOML") from None


def setting_names() -> dict[str, list[str]]:
    """Return the names each field goes by: in the environment, and in the file."""
    return {
        name: [str(one) for one in field.validation_alias.choices]
        for name, field in Settings.model_fields.items()
        if isinstance(field.validation_alias, AliasChoices)
    }


def unknown_variables() -> list[str]:
    """Return the variables that begin like ours and are no setting, without Kubernetes' own and empty ones."""
    known = {*_variables()}
    return sorted(name for name, value in os.environ.items() if value and name not in known and _is_meant(name, value))


def warn_of_unknown_variables() -> None:
    for name in unknown_variables():
        if name not in _warned_of:
            _warned_of.add(name)
            _log.warning("%s is not a setting; it has no effect", name)


def _variables() -> list[str]:
    return [*(names[0] for names in setting_names().values()), CONFIG_FILE_VARIABLE, TOKEN_VARIABLE]


def _is_meant(name: str, value: str) -> bool:
    """Return whether a variable was probably meant for us: its letters begin nearly as our prefix does."""
    if _OF_KUBERNETES.fullmatch(name) or (name.endswith("_PORT") and _PORT_OF_KUBERNETES.fullmatch(value)):
        return False
    return difflib.SequenceMatcher(None, _letters(name)[: len(_PREFIX)], _PREFIX).ratio() > _BEGINS_ALIKE


def _letters(name: str) -> str:
    return name.replace("_", "").replace("-", "").upper()


def _check_variables() -> None:
    """Raise `InvalidSetting` for a variable that is nearly a known one.

    They are compared by what stands behind the prefix, which would make all of ours look alike.
    """
    known = {_letters(name).removeprefix(_PREFIX): name for name in _variables()}
    for name in unknown_variables():
        if (found := closest(_letters(name)[len(_PREFIX) :], known)) is not None:
            raise InvalidSetting(name, "is not a setting", f"did you mean {known[found]}?")


def _checked(values: dict[str, Any]) -> dict[str, Any]:
    """Raise `InvalidSetting` for a key or a section of the file that is not known."""
    known = {name for names in setting_names().values() for name in names}
    for name in values.keys() - known:
        alike = closest(name, (one for one in known if one.isupper() == name.isupper()))
        fix = f"did you mean {alike}?" if alike else "remove it; the reference lists every setting"
        raise InvalidSetting(name, f"is not a setting; it stands in {config_file()}", fix)
    return values


def _unknown_within(location: tuple[str | int, ...]) -> InvalidSetting:
    """For a key inside of a setting that is a table."""
    fix = fix_for(str(location[-1]), keys_beside(Settings, location))
    return InvalidSetting(".".join(map(str, location)), "is not known", fix)


def _variable_in(error: SettingsError) -> str:
    """The library names the field; the operator knows the variable."""
    for name, field in Settings.model_fields.items():
        if f'"{name}"' in str(error) and isinstance(field.validation_alias, AliasChoices):
            return str(field.validation_alias.choices[0])
    return "settings"
