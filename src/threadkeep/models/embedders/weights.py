"""Model files inside installed packages: found without importing the package, and held against their SHA-256."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from threadkeep.errors import InvalidSetting, MissingExtra


def verified_files(package: str, extra: str, sha256: Mapping[str, str]) -> dict[str, Path]:
    """Each file by its path in the package. Raises `MissingExtra`, and `InvalidSetting` for a file that was changed."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise MissingExtra(extra, f"the embedder on {package}")
    folder = Path(spec.origin).parent
    files = {name: folder / name for name in sha256}
    for name, path in files.items():
        if not path.is_file() or _sha256(path) != sha256[name]:
            problem = f"{name} of {package} is not the published file"
            raise InvalidSetting("THREADKEEP_EMBEDDER", problem, f"install threadkeep[{extra}] anew")
    return files


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
