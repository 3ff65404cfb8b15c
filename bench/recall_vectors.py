"""Vectors of the offline embedder, each text embedded once: sets share most of their texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from threadkeep.models.embedders.offline import OfflineEmbedder

_EMBEDDER = OfflineEmbedder()
_AT_ONCE = 256
_KNOWN: dict[str, Any] = {}


def vectors_of(texts: Sequence[str]) -> Any:
    new = [text for text in dict.fromkeys(texts) if text not in _KNOWN]
    for start in range(0, len(new), _AT_ONCE):
        part = new[start : start + _AT_ONCE]
        _KNOWN.update(zip(part, _EMBEDDER.embedded(part).astype(np.float16), strict=True))
    return np.stack([_KNOWN[text] for text in texts]).astype(np.float32)
