"""The text found in a picture, by the system's Tesseract. It reads; it does not see: a picture without text is refused.

Debian: `apt-get install tesseract-ocr tesseract-ocr-vie tesseract-ocr-pol tesseract-ocr-chi-tra`.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Sequence

from threadkeep.errors import CapabilityMissing, InvalidEvent
from threadkeep.models.language import closest, detect
from threadkeep.models.media.processes import Turns, content, finished
from threadkeep.models.summary import LONGEST, MOST_SENTENCES, summarise
from threadkeep.ports.models import MediaSummary, Medium

_PROGRAM = "tesseract"
# In this order: letters with marks would be read as those without, were English before them.
_PACKS = {"vi": "vie", "pl": "pol", "zh-hant": "chi_tra", "zh-hans": "chi_sim", "zh": "chi_tra", "en": "eng"}
_LABELS = {
    "en": "Text found in image: ",
    "vi": "Chữ trong ảnh: ",
    "pl": "Tekst na obrazie: ",
    "zh-Hant": "圖中文字：",
    "zh-Hans": "图中文字：",
}
_HAN = re.compile("[\u3400-\u9fff]")
_BETWEEN_HAN = re.compile("(?<=[\u3000-\u9fff\uff00-\uffef]) (?=[\u3000-\u9fff\uff00-\uffef])")
# Tesseract with four packs has 110 MB in use, and 12 bytes for a pixel in colour; its address space is larger.
_MEMORY_BYTES, _BYTES_A_PIXEL = 536_870_912, 24
_HOW = "install it (Debian: apt-get install tesseract-ocr, and a package for each language)"


class TesseractImages:
    """Reads one picture at a time. `languages` are those whose letters it looks for; a language whose pack is not
    installed is left out."""

    def __init__(self, languages: Sequence[str], seconds: float, most_pixels: int = 16_000_000) -> None:
        self._languages = tuple(languages)
        self._seconds = seconds
        self._memory_bytes = _MEMORY_BYTES + most_pixels * _BYTES_A_PIXEL
        self._turns = Turns()
        self._packs: tuple[str, ...] | None = None

    async def summarise(self, medium: Medium) -> MediaSummary:
        program = shutil.which(_PROGRAM)
        if program is None:
            raise CapabilityMissing(f"reading pictures needs the program {_PROGRAM}: {_HOW}")
        async with self._turns.turn():
            text = await self._read(program, await asyncio.to_thread(content, medium), medium.language)
        if not any(character.isalnum() for character in text):
            fix = "send a summary of what it shows, or set a model that sees (THREADKEEP_IMAGE_MODEL)"
            raise InvalidEvent("data", "holds no text that can be read", fix)
        found = detect(text, self._languages).tag
        language = found if found in self._languages else None
        label = closest(_LABELS, language) or _LABELS["en"]
        summary = summarise(text, MOST_SENTENCES, language, LONGEST)
        return MediaSummary(label + summary, label + text, language, image_kind="text")

    async def close(self) -> None:
        """Nothing is left open."""

    async def _read(self, program: str, data: bytes, language: str | None) -> str:
        """Once more where the first look finds Chinese: with other letters in question, characters are lost."""
        own = closest(_PACKS, language)  # before the others
        packs = sorted(await self._installed(program), key=lambda pack: pack != own)
        text = await self._looked(program, packs, data)
        chinese = [pack for pack in packs if pack.startswith("chi_")]
        return await self._looked(program, chinese, data) if chinese and _HAN.search(text) else text

    async def _looked(self, program: str, packs: Sequence[str], data: bytes) -> str:
        out = await self._run(program, "stdin", "stdout", "-l", "+".join(packs), given=data)
        return _BETWEEN_HAN.sub("", " ".join(out.decode("utf-8", "replace").split()))

    async def _installed(self, program: str) -> tuple[str, ...]:
        if self._packs is None:
            listed = (await self._run(program, "--list-langs")).decode("utf-8", "replace").split()
            allowed = {closest(_PACKS, tag) for tag in self._languages}
            wanted = [pack for pack in _PACKS.values() if pack in allowed]
            self._packs = tuple(pack for pack in dict.fromkeys(wanted) if pack in listed)
        if not self._packs:
            raise CapabilityMissing(f"{_PROGRAM} has no pack for any of {', '.join(self._languages)}: {_HOW}")
        return self._packs

    async def _run(self, *command: str, given: bytes = b"") -> bytes:
        """Its own words about a picture it cannot read are left out: they name files."""
        try:
            code, out = await finished(command, given, self._seconds, self._memory_bytes)
        except TimeoutError:
            raise InvalidEvent("data", "takes too long to read", "send a smaller picture") from None
        if code != 0:
            raise InvalidEvent("data", "cannot be read as a picture", "send it as it was taken")
        return out
