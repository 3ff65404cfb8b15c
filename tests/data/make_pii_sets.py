"""Makes `pii_vi.jsonl` and `pii_pl.jsonl`: sentences people write, filled with numbers of the real formats.

    python -m tests.data.make_pii_sets

Nothing here is anybody's: every number is drawn from a seeded generator and given the check digit its format asks for.
Each sentence appears with diacritics and without. A row is `{"text", "spans": [[start, end, type]], "folded": bool}`.
"""

from __future__ import annotations

import json
import random
import re
import unicodedata
from pathlib import Path

from tests.data import pii_pl, pii_vi

FOLDER = Path(__file__).parent
SLOT = re.compile(r"\{(\w+)\}")
PER_TEMPLATE = 5


def fold(text: str) -> str:
    """Without diacritics, one character for one, as people type on a foreign keyboard."""
    plain = text.replace("đ", "d").replace("Đ", "D").replace("ł", "l").replace("Ł", "L")
    return "".join(unicodedata.normalize("NFD", char)[0] for char in plain)


def fill(template: str, makers: dict[str, tuple[str, object]], rng: random.Random) -> tuple[str, list[list[object]]]:
    text, spans, position = "", [], 0
    for slot in SLOT.finditer(template):
        text += template[position : slot.start()]
        kind, make = makers[slot[1]]
        value = make(rng)  # type: ignore[operator]
        if kind:
            spans.append([len(text), len(text) + len(value), kind])
        text += value
        position = slot.end()
    return text + template[position:], spans


def rows(templates: list[str], makers: dict[str, tuple[str, object]], seed: str) -> list[dict[str, object]]:
    rng = random.Random(seed)
    made: list[dict[str, object]] = []
    for template in templates:
        for _ in range(PER_TEMPLATE):
            text, spans = fill(template, makers, rng)
            made.append({"text": text, "spans": spans, "folded": False})
            made.append({"text": fold(text), "spans": spans, "folded": True})
    return made


def main() -> None:
    for language, module in (("vi", pii_vi), ("pl", pii_pl)):
        lines = [json.dumps(row, ensure_ascii=False) for row in rows(module.TEMPLATES, module.MAKERS, language)]
        (FOLDER / f"pii_{language}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(language, len(lines))


if __name__ == "__main__":
    main()
