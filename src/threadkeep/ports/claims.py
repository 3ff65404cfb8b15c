"""Claims: work that one process at a time may do, where several could. They expire by themselves."""

from __future__ import annotations

from typing import Protocol

from threadkeep.scope import Scope


class Claims(Protocol):
    async def take(self, scope: Scope, name: str, holder: str, seconds: float) -> bool:
        """Also to hold on to it for so long again. False where another holder has it."""
        ...

    async def give_back(self, scope: Scope, name: str, holder: str) -> None:
        """Nothing where it is another's by now."""
        ...
