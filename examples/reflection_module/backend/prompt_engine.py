"""The prompt as it was built before; whoever has a latest turn may hand it in."""

from __future__ import annotations

from typing import Any


def build_prompt(message: str, context: dict[str, Any] | None = None) -> str:
    earlier = f"Earlier: {context['user_msg']} / {context['assistant_msg']}\n" if context else ""
    return f"{earlier}User: {message}"
