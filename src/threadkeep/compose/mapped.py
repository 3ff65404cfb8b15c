"""The parts of the reflection module, each imported only when it is first needed: both stores are optional extras."""

from __future__ import annotations

import os
from types import ModuleType
from typing import TYPE_CHECKING, cast

from threadkeep.archive.mapped.config import FIELDS as FIELDS  # named here for other parts
from threadkeep.archive.mapped.config import MappedConfig
from threadkeep.archive.mapped.config import switched_on as switched_on  # named here for other parts
from threadkeep.archive.mapped.io_contract import Decode, IoContract, Pack
from threadkeep.compose.memory import redaction_rules
from threadkeep.compose.optional import part
from threadkeep.errors import InvalidSetting
from threadkeep.models.tokens import decode, tokenizer
from threadkeep.policy.redact import Redactor
from threadkeep.ports.clock import Clock
from threadkeep.settings import Settings

if TYPE_CHECKING:
    from threadkeep.archive.mapped.table import MappedTables
    from threadkeep.sessions.redis.turns import RedisTurns

CONFIG_PATH_VARIABLE = "MEMORY_CONFIG_PATH"


def turn_contract(settings: Settings, now: Clock) -> IoContract:
    redactor = Redactor(redaction_rules(settings))
    return IoContract(
        redact=lambda text: redactor(text).text,
        pack=cast("Pack", tokenizer(settings.tokenizer_name).record),
        decode=decode,
        now=now,
        max_bytes=settings.max_message_bytes,
    )


def redis_turns(settings: Settings, claim_after: float) -> RedisTurns:
    """Raises `InvalidSetting` when no Redis is named. Nothing is connected yet."""
    if settings.redis_url is None:
        raise InvalidSetting("REDIS_URL", "is not set", "use redis://:password@host:6379/0")
    client, turns = load_redis()
    options = client.RedisOptions(timeout=settings.redis_timeout_seconds)
    opened = client.RedisClient(settings.redis_url, options)
    return turns.RedisTurns(opened, settings.memory_redis_ttl_seconds, claim_after)


def load_redis() -> tuple[ModuleType, ModuleType]:
    """Import the driver of Redis, which takes up to a second. Raises `MissingExtra`."""
    client, turns = (part(f"sessions.redis.{name}", "redis", "redis://") for name in ("client", "turns"))
    return client, turns


def mapped_tables(settings: Settings, config: MappedConfig) -> MappedTables:
    """Raises `InvalidSetting` when the URL names no server database. Nothing is connected yet."""
    extra = "mysql" if settings.database_url.startswith(("mysql", "mariadb")) else "postgres"
    composed = part("compose.server", extra, "a mapped table")
    table = part("archive.mapped.table", extra, "a mapped table")
    try:
        database = composed.sql_database(settings.database_url, settings)
    except InvalidSetting as error:
        raise InvalidSetting("DATABASE_URL", error.problem, error.fix) from None
    return table.MappedTables(database, config, cast("Decode", decode))


def named_config() -> str | None:
    """Return the path of `config.json` that the environment names."""
    return os.environ.get(CONFIG_PATH_VARIABLE)


def mapped_config(settings: Settings, path: str | None) -> MappedConfig:
    """`MEMORY_TABLE_MAP` wins over the file, where it is set at all. Raises `InvalidSetting`."""
    given = settings.memory_table_map if "memory_table_map" in settings.model_fields_set else None
    return MappedConfig.read(path, given)
