"""What an operator should know about the servers a memory would use: input for `threadkeep doctor`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from threadkeep.compose import is_server_url, redis_parts, sql_parts
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
    version: str | None  # None while it cannot be asked
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
    schema: str | None  # None where there are no tables of ours yet
    newest_schema: str
    pool_size: int
    pool_most: int  # with those it may open beyond

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


async def inspect_redis(url: str, settings: Settings) -> RedisReport:
    """Raises `InvalidSetting` and `MissingExtra`; a Redis that is away is a finding."""
    version, cluster, findings = await redis_parts().inspected(url, settings)
    return RedisReport(version, cluster, tuple(Found(**asdict(one)) for one in findings))


async def inspect_server(url: str, settings: Settings) -> ServerReport | None:
    """None where the archive is on no server. Changes nothing. Raises the `StoreError` that keeps it from looking."""
    if not is_server_url(url):
        return None
    product, version, schema, newest = await sql_parts(url).inspected(url, settings)
    most = settings.pool_size + settings.pool_overflow
    return ServerReport(product, version, schema, newest, settings.pool_size, most)
