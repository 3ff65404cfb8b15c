"""Text of any length in a form that servers store: they refuse NUL and lone surrogates."""

from __future__ import annotations

import base64

# Marks a text that a server cannot hold as it is; a text that happens to start so is marked as well.
_ENCODED = "\x01tk64:"


def given_text(stored: str) -> str:
    if not stored.startswith(_ENCODED):
        return stored
    return base64.b64decode(stored.removeprefix(_ENCODED)).decode("utf-8", "surrogatepass")


def storable(text: str) -> str:
    if "\x00" not in text and not text.startswith(_ENCODED) and is_encodable(text):
        return text
    return _ENCODED + base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()


def is_encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
