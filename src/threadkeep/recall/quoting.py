"""Text that somebody else wrote, made fit to stand inside a fence: it can neither close it nor pass for another line.

Angle brackets, also those of full width, become quotation marks; further lines are indented, whatever ends them; what
nobody sees but a model reads (tag characters, orders to turn the direction of text, controls) is left out.
"""

from __future__ import annotations

import re

_LINE_ENDS = re.compile("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_UNSEEN = re.compile("[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
_BRACKETS = str.maketrans({"<": "‹", ">": "›", "＜": "‹", "＞": "›", "﹤": "‹", "﹥": "›"})


def quoted(text: str) -> str:
    return "\n    ".join(_LINE_ENDS.split(_UNSEEN.sub("", text).translate(_BRACKETS)))


def on_one_line(text: str) -> str:
    """For a title or a name, in the brackets before what is quoted."""
    return " ".join(quoted(text).split()).replace("[", "(").replace("]", ")")
