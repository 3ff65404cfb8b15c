"""What operators see: whether a turn can be stored, how far the archive is behind, and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from threadkeep.ports.journal import Depth

StoreState = Literal["ok", "read_only", "full", "away"]
Status = Literal["ok", "degraded", "down"]
BEHIND_SECONDS = 60.0  # for which an entry may wait in a queue; as the alert rule in deploy/prometheus


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """Something an operator should mend. It names our own tables and settings, never a host, a path or a value."""

    code: str  # stable, for programs
    message: str
    fix: str
    stops: bool = False  # no turn can be stored while it lasts


@dataclass(frozen=True, slots=True)
class Connections:
    """Of this process to the archive's server. `most`: how many it may open, fewer while the server has none left."""

    in_use: int
    most: int


@dataclass(frozen=True, slots=True)
class Health:
    """`down`: no turn can be stored. `degraded`: turns are stored, but something is to be mended."""

    stores: Mapping[str, StoreState]  # `archive`, and `redis` where there is one
    lag: Depth | None = None  # None without a journal, and while it is unavailable
    findings: tuple[HealthFinding, ...] = ()
    connections: Connections | None = None  # None where the archive is on no server
    queues: bool = False  # the journal's word is enough for an append, so the archive may be unavailable

    @property
    def can_store(self) -> bool:
        if any(one.stops for one in self.findings):
            return False
        return self.stores["archive"] == "ok" or (self.queues and self.stores.get("redis") == "ok")

    @property
    def status(self) -> Status:
        if not self.can_store:
            return "down"
        return "degraded" if self.findings or set(self.stores.values()) != {"ok"} else "ok"

    def as_dict(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "stores": dict(self.stores),
            "lag": None if self.lag is None else asdict(self.lag),
            "connections": None if self.connections is None else asdict(self.connections),
            "findings": [{"code": one.code, "message": one.message, "fix": one.fix} for one in self.findings],
        }


class Meter(Protocol):
    """Counting and timing what happens, for operators. Numbers only: no text, no id of anybody.

    Both are quick, never wait and never raise for a value of a known metric.
    """

    def count(self, name: str, amount: float = 1, **labels: str) -> None: ...

    def observe(self, name: str, value: float, **labels: str) -> None: ...
