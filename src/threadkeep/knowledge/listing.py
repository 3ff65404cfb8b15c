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
    links: list[Path] = field(default_factory=list[Path])  # that would be documents or folders
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
        found.links += [path for name in folders if (path := Path(where, name)).is_symlink()]
        named = [Path(where, name) for name in names if _is_named_like_one(name)]
        found.links += [path for path in named if path.is_symlink()]
        found.files += [path for path in named if _is_document(path)]
    if folder in found.closed:
        raise InvalidInput("folder", f"cannot be opened ({found.closed[folder]})", "let the service's user read it")
    found.files.sort()
    found.links.sort()
    return found


def _note(found: Listing, error: OSError) -> None:
    """One that went away while others were read is gone like any other."""
    if not isinstance(error, FileNotFoundError):
        found.closed[Path(os.fsdecode(error.filename))] = error.strerror or type(error).__name__


def _is_named_like_one(name: str) -> bool:
    return not name.startswith(".") and Path(name).suffix.lower() in READERS


def _is_document(path: Path) -> bool:
    """What cannot even be looked at may be one: who reads it then says why not."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return False
    except OSError:
        return True
