"""Which stores answer, and how far the archive is behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from threadkeep.ports.journal import Depth

StoreState = Literal["ok", "read_only", "away"]
Status = Literal["ok", "degraded", "down"]


@dataclass(frozen=True, slots=True)
class Health:
    """`degraded`: a store is away or can only be read, and the others carry on. `down`: none answers."""

    stores: Mapping[str, StoreState]  # `archive`, and `redis` where there is one
    lag: Depth | None = None  # None without a journal, and while it cannot be asked

    @property
    def status(self) -> Status:
        states = set(self.stores.values())
        if states == {"ok"}:
            return "ok"
        return "down" if states == {"away"} else "degraded"

    def as_dict(self) -> dict[str, Any]:
        lag = None if self.lag is None else asdict(self.lag)
        return {"status": self.status, "stores": dict(self.stores), "lag": lag}
