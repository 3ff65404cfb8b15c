"""Wallet addresses of the common chains."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from threadkeep.policy.redact.rule import CERTAIN, Family, Rule, every

if TYPE_CHECKING:
    from threadkeep.policy.redact.view import View

_BASE58: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BITCOIN: Final = re.compile(rf"(?<![0-9A-Za-z])[13][{_BASE58}]{{25,34}}(?![0-9A-Za-z])")
_SEGWIT: Final = r"(?<![0-9A-Za-z])(?:bc1|tb1)[02-9ac-hj-np-z]{20,87}(?![0-9A-Za-z])"
_ETHEREUM: Final = r"(?<![0-9A-Za-z])0x[0-9a-fA-F]{40}(?![0-9A-Za-z])"


def _bitcoin(view: View) -> Iterator[tuple[int, int]]:
    return (match.span() for match in _BITCOIN.finditer(view.text) if _base58check(match[0]))


def _base58check(address: str) -> bool:
    number = 0
    for char in address:
        number = number * 58 + _BASE58.index(char)
    if number.bit_length() > 200:
        return False
    raw = number.to_bytes(25, "big")
    return sha256(sha256(raw[:21]).digest()).digest()[:4] == raw[21:]


def _long(view: View) -> bool:
    return view.stretch(26)


FAMILIES: Final = (
    Family(
        (
            Rule("wallet.bitcoin", "CRYPTO", _bitcoin, CERTAIN),
            Rule("wallet.segwit", "CRYPTO", every(_SEGWIT), CERTAIN),
            Rule("wallet.ethereum", "CRYPTO", every(_ETHEREUM), CERTAIN),
        ),
        digits=1,
        gate=_long,
        narrow="[13][0-9A-Za-z]{25}|(?:bc|tb)1[0-9a-z]{20}|0x[0-9A-Fa-f]{40}",
    ),
)
