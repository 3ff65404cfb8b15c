"""Token numbers in few bytes, for our own tables: two a token, where JSON takes five and a half.

Each number in groups of seven bits, low ones first (LEB128): common tokens have low numbers. Long texts repeat
themselves, so the whole is deflated where that is shorter; the first byte says which.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from threadkeep.errors import InvalidInput, StoreCorrupt

_PLAIN, _DEFLATED = b"\0", b"\1"
_SHORTEST_DEFLATED = 128  # bytes; below, deflating has never paid
_MORE = 0x80


def pack_ids(ids: Iterable[int]) -> bytes:
    """Raises `InvalidInput` for a negative number."""
    packed = bytearray()
    for number in ids:
        rest = number
        if rest < 0:
            raise InvalidInput("ids", "holds a negative number", "give token numbers")
        while rest >= _MORE:
            packed.append(rest & 0x7F | _MORE)
            rest >>= 7
        packed.append(rest)
    deflated = zlib.compress(packed) if len(packed) >= _SHORTEST_DEFLATED else packed
    return _DEFLATED + deflated if len(deflated) < len(packed) else _PLAIN + bytes(packed)


def unpack_ids(packed: bytes) -> list[int]:
    """Raises `StoreCorrupt` for what `pack_ids` did not make."""
    data = _inflated(packed)
    ids: list[int] = []
    number = shift = 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        if byte & _MORE:
            shift += 7
        else:
            ids.append(number)
            number = shift = 0
    if shift:
        raise StoreCorrupt("packed token numbers end in the middle of one")
    return ids


def _inflated(packed: bytes) -> bytes:
    form, data = packed[:1], packed[1:]
    if form == _PLAIN:
        return data
    try:
        if form == _DEFLATED:
            return zlib.decompress(data)
    except zlib.error:
        pass
    raise StoreCorrupt("these bytes are no packed token numbers")
