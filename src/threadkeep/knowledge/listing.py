"""The documents of a folder, and the folders in it that cannot be looked into."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from threadkeep.errors import InvalidInput
from threadkeep.knowledge.reading import READERS


@dataclass(slots=True)
class Listing:
    files: list[Path] = field(default_factory=list[Path])
    closed: dict[Path, str] = field(default_factory=dict[Path, str])  # folders, and why


def listing_of(folder: Path) -> Listing:
    """All but hidden ones, in the order of names; links are not followed, for they may lead anywhere.

    Raises `InvalidInput` where there is no such folder, or it cannot be looked into itself.
    """
    if not folder.is_dir():
        raise InvalidInput("folder", "is no folder", "name one that exists")
    found = Listing()
    for where, folders, names in os.walk(folder, onerror=lambda error: _note(found, error)):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found.files += [path for name in names if _is_document(path := Path(where, name))]
    if folder in found.closed:
        raise InvalidInput("folder", f"cannot be opened ({found.closed[folder]})", "let the service's user read it")
    found.files.sort()
    return found


def _note(found: Listing, error: OSError) -> None:
    """One that went away while others were read is gone like any other."""
    if not isinstance(error, FileNotFoundError):
        found.closed[Path(os.fsdecode(error.filename))] = error.strerror or type(error).__name__


def _is_document(path: Path) -> bool:
    """What cannot even be looked at may be one: who reads it then says why not."""
    if path.name.startswith(".") or path.suffix.lower() not in READERS:
        return False
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return False
    except OSError:
        return True
