"""A header as text: HTTP's are bytes, ours are UTF-8."""

from __future__ import annotations

from threadkeep.errors import InvalidScope


def decoded_header(name: str, value: str | None) -> str | None:
    """Raises `InvalidScope`."""
    try:
        return None if value is None else value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        raise InvalidScope(name, "is not UTF-8", "send UTF-8") from None
