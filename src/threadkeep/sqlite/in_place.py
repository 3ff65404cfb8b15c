"""Whether short work is done where it is asked for, instead of being handed to a thread.

Handing over costs two wakings, as much as storing a message. It pays where writes come at once, for they share a
commit there, and where the disk takes its time, for the loop must not wait for it. Which of these holds is seen from
the last few short ones. One in every few goes to the thread all the same: there a writer folds the log into the
database, which takes longer than a loop should wait.
"""

from __future__ import annotations

SHORT = 20_000  # characters or bytes that are stored in no time
QUICK = 0.001  # seconds of a commit or a read: what a loop may be held up for
_LAST = 32  # short ones that are remembered
_ALL = (1 << _LAST) - 1
_ENOUGH = 24  # of them were alone and quick
_EVERY = 32  # short ones: one goes to the thread


class InPlace:
    def __init__(self) -> None:
        self._lately = _ALL  # a bit for each of the last ones, set if it was alone and quick; at first we hope so
        self._asked = 0

    def allowed(self) -> bool:
        self._asked += 1
        return self._asked % _EVERY != 0 and self._lately.bit_count() >= _ENOUGH

    def note(self, *, alone: bool, seconds: float) -> None:
        well = alone and seconds < QUICK
        self._lately = (self._lately << 1 | well) & _ALL
