"""A user's words as they are compared with listed ones. Keyboards write "ạ" as one character or as two."""

from __future__ import annotations

import unicodedata


def spelt(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()
