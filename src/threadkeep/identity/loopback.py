"""Whether an address is this machine's own."""

from __future__ import annotations

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
