"""Text that somebody else wrote, made fit to stand inside a fence: it can neither close it nor pass for another line.

Angle brackets, also those of full width, become quotation marks; further lines are indented, whatever ends them; what
nobody sees but a model reads (zero-width and tag characters, variation selectors, orders to turn the direction of text,
controls) is left out.
"""

from __future__ import annotations

import re

_LINE_ENDS = re.compile("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_CONTROLS = "\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f"
# Zero width, direction, variation selectors, tags, fillers: text can be hidden in them that only a model reads. Lone
# surrogates (half an emoji): no client can send them on.
_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\u2800\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_UNSEEN = re.compile(f"[{_CONTROLS}{_INVISIBLE}]")
_HIDDEN = re.compile(f"[{_INVISIBLE}]")
_BRACKETS = str.maketrans({"<": "‹", ">": "›", "＜": "‹", "＞": "›", "﹤": "‹", "﹥": "›"})


def quoted(text: str) -> str:
    return "\n    ".join(_LINE_ENDS.split(_UNSEEN.sub("", text).translate(_BRACKETS)))


def visible(text: str) -> str:
    """Return the text without the characters that no reader sees, for a message that goes to a model as it is."""
    return text if text.isascii() else _HIDDEN.sub("", text)


def on_one_line(text: str) -> str:
    """For a title or a name, in the brackets before what is quoted."""
    return " ".join(quoted(text).split()).replace("[", "(").replace("]", ")")
