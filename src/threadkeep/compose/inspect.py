"""What an operator should know about the servers a memory would use: input for `threadkeep doctor`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

from threadkeep.compose.mapped import FIELDS, mapped_config, mapped_tables, named_config, switched_on
from threadkeep.compose.memory import is_server_url, redis_parts, sql_parts
from threadkeep.compose.vectors import uses_chroma
from threadkeep.settings import Settings


@dataclass(frozen=True, slots=True)
class Found:
    """`problem` must be mended; `warning` may cost acknowledged turns; `note` is for information."""

    code: str
    severity: Literal["problem", "warning", "note"]
    message: str
    fix: str


@dataclass(frozen=True, slots=True)
class RedisReport:
    version: str | None  # None while it is unavailable
    cluster: bool | None
    findings: Sequence[Found]

    @property
    def usable(self) -> bool:
        return not any(one.severity == "problem" for one in self.findings)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ServerReport:
    product: str
    version: str
    obstacle: Found | None  # to storing a turn
    schema: str | None  # None where there are no tables of ours yet
    newest_schema: str
    pool_size: int
    pool_most: int  # with those it may open beyond

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Misfit:
    """`fatal`: nothing can be stored."""

    setting: str
    problem: str
    fix: str
    fatal: bool


@dataclass(frozen=True, slots=True)
class MappedReport:
    """Tables that belong to the application: which, and what in them does not fit the mapping."""

    enabled: bool
    tables: Mapping[str, str]
    columns: Mapping[str, Mapping[str, str | None]]  # by table: all our fields, with the columns they are kept in
    misfits: Sequence[Misfit]

    @property
    def usable(self) -> bool:
        return not any(one.fatal for one in self.misfits)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ChromaReport:
    problem: str | None


def inspect_chroma(settings: Settings) -> ChromaReport | None:
    """None where vectors are kept beside the messages. Blocks, and changes nothing."""
    if not uses_chroma(settings):
        return None
    if find_spec("chromadb") is None:
        return ChromaReport("is not installed: pip install 'threadkeep[chroma]'")
    return ChromaReport(import_module("threadkeep.index.chroma_look").problem_with_chroma(settings.chroma_path))


async def inspect_redis(url: str, settings: Settings) -> RedisReport:
    """Raises `InvalidSetting` and `MissingExtra`; a Redis that is down is a finding."""
    version, cluster, findings = await redis_parts().inspected(url, settings)
    return RedisReport(version, cluster, tuple(Found(**asdict(one)) for one in findings))


async def inspect_server(url: str, settings: Settings) -> ServerReport | None:
    """None where the archive is on no server. Changes nothing. Raises the `StoreError` that keeps it from looking."""
    if not is_server_url(url):
        return None
    product, version, obstacle, schema, newest = await sql_parts(url).inspected(url, settings)
    most = settings.pool_size + settings.pool_overflow
    told = None if obstacle is None else Found(obstacle.code, "problem", obstacle.message, obstacle.fix)
    return ServerReport(product, version, told, schema, newest, settings.pool_size, most)


def check_mapping(settings: Settings) -> None:
    """Raise `InvalidSetting` for a mapping that is named and cannot be used, unless it is switched off."""
    path = named_config()
    if (path is not None or "memory_table_map" in settings.model_fields_set) and switched_on(path):
        mapped_config(settings, path)


async def inspect_mapped(url: str, path: str | None, settings: Settings) -> MappedReport:
    """`path`: of `config.json`. Raises `InvalidSetting`, or the `StoreError` that kept it from looking."""
    config = mapped_config(settings, path)
    named = {logical: one.shown for logical, one in config.tables.items()}
    columns = {logical: {field: one.columns.get(field) for field in FIELDS} for logical, one in config.tables.items()}
    if not config.enabled:
        return MappedReport(False, named, columns, ())
    tables = mapped_tables(settings.model_copy(update={"database_url": url}), config)
    try:
        return MappedReport(True, named, columns, [Misfit(**one.as_dict()) for one in await tables.check()])
    finally:
        await tables.close()
