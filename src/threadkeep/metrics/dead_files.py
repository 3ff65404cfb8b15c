"""Files of processes that have ended, folded into one, so that a folder does not grow with every restart.

What they counted stays counted. The folder is one machine's (or one container's): a process that runs is known by its
number there. Folding and reading take turns, so that no scrape counts a file twice or not at all.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from prometheus_client.mmap_dict import MmapedDict

_KINDS = ("counter", "histogram")
_ENDED = 0  # no process has this number


def fold_dead(folder: str) -> None:
    """Killed on the way, it loses what the dead had counted; Prometheus takes that for a restart."""
    with _locked(folder, fcntl.LOCK_EX):
        for kind in _KINDS:
            dead = [path for path in Path(folder).glob(f"{kind}_*.db") if not _runs(path)]
            if len(dead) > 1:
                _fold(dead, Path(folder) / f"{kind}_{_ENDED}.db")


@contextmanager
def reading(folder: str) -> Generator[None]:
    with _locked(folder, fcntl.LOCK_SH):
        yield


def written(folder: str) -> list[str]:
    """Without files of processes that were killed before they wrote to them."""
    return [str(path) for path in Path(folder).glob("*.db") if path.stat().st_size]


def _fold(dead: list[Path], into: Path) -> None:
    totals: dict[str, float] = {}
    for path in dead:
        if not path.stat().st_size:
            continue
        for key, value, *_ in MmapedDict.read_all_values_from_file(str(path)):  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            totals[str(key)] = totals.get(str(key), 0.0) + float(value)  # pyright: ignore[reportUnknownArgumentType]
    new = into.with_suffix(".new")
    new.unlink(missing_ok=True)
    kept = MmapedDict(str(new))
    for key, value in totals.items():
        kept.write_value(key, value, 0.0)  # pyright: ignore[reportUnknownMemberType]
    kept.close()
    for path in dead:
        path.unlink()
    new.replace(into)


def _runs(path: Path) -> bool:
    number = path.stem.rpartition("_")[2]
    if not number.isdigit():
        return True  # not a name of ours: let it be
    if int(number) == _ENDED:
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # somebody else's
    return True


@contextmanager
def _locked(folder: str, how: int) -> Generator[None]:
    with (Path(folder) / "folding.lock").open("a") as lock:
        fcntl.flock(lock, how)
        yield
