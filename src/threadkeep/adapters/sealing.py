"""Work in flight at rest: encrypted under a key of its turn, which is destroyed when the turn ends."""

from __future__ import annotations

import base64

from threadkeep.sealing import Sealer, key_from, new_key


class TurnKey:
    def __init__(self, key: bytes) -> None:
        self.key = key
        self._sealer = Sealer(key)

    def sealed(self, data: bytes, bound_to: bytes) -> bytes:
        return self._sealer.seal(data, bound_to)

    def opened(self, data: bytes, bound_to: bytes) -> bytes | None:
        """None for what is not under this key."""
        return self._sealer.open(data, bound_to)


class Seal:
    """Keys of turns as they rest: sealed with `THREADKEEP_SLOT_KEY`, where there is one."""

    def __init__(self, setting: str | None) -> None:
        self._master = None if setting is None else Sealer(key_from(setting))

    def new(self) -> TurnKey:
        return TurnKey(new_key())

    def at_rest(self, turn: TurnKey, bound_to: bytes) -> str:
        if self._master is None:
            return "b" + base64.b64encode(turn.key).decode()
        return "s" + base64.b64encode(self._master.seal(turn.key, bound_to)).decode()

    def opened(self, at_rest: str, bound_to: bytes) -> TurnKey | None:
        """None for one that was sealed with another setting: its turn cannot be read here."""
        data = base64.b64decode(at_rest[1:])
        if at_rest.startswith("b"):
            return TurnKey(data)
        key = None if self._master is None else self._master.open(data, bound_to)
        return None if key is None else TurnKey(key)
