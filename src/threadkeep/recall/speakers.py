"""Who speaks, where messages begin with a name: `Caroline: I went to a support group`.

A name that many turns begin with says who spoke, not what a turn is about; a question that names a speaker wants what
that speaker said.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from threadkeep.recall.normalise import terms_of

_NAME = re.compile(r"([^\W\d_][\w.' -]{0,30}?)[:：]\s")
_AT_LEAST = 3  # turns; "Note: …" begins one or two


def speakers(contents: Sequence[str]) -> list[frozenset[str]]:
    """The terms of the name each begins with, none where it is no speaker's."""
    found = [_NAME.match(content) for content in contents]
    names = [match.group(1) if match else "" for match in found]
    often = Counter(names)
    terms = {name: frozenset(terms_of(name)) for name, times in often.items() if name and times >= _AT_LEAST}
    return [terms.get(name, frozenset()) for name in names]
