"""Keeps the tests off the network: only loopback and Unix sockets may be reached.

An audit hook sees every connect of this process before it happens, whichever library makes it. It cannot be taken
out again, which is what we want. Servers and browsers are other processes: their own settings keep them on loopback.
"""

import socket
import sys
from functools import cache
from ipaddress import ip_address
from typing import Any


class NetworkIsOff(RuntimeError):
    """Not an `OSError` on purpose: code under test takes those for an outage and goes on."""


@cache
def allow_loopback_only() -> None:
    sys.addaudithook(_refuse_the_network)


def _refuse_the_network(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.connect" or event in ("socket.sendto", "socket.sendmsg"):
        _check_address(arguments[0], arguments[1])
    elif event == "socket.getaddrinfo":
        _check_name(arguments[0])


def _check_address(endpoint: socket.socket, address: Any) -> None:
    # `sendmsg` on a connected socket has no address: its connect was checked.
    if endpoint.family in (socket.AF_INET, socket.AF_INET6) and address is not None and not is_loopback(address[0]):
        raise NetworkIsOff(f"a test tried to reach {address[0]}; only loopback may be reached in tests")


def _check_name(host: str | bytes | None) -> None:
    """A lookup fails as on a machine with no resolver: whether a host's name exists is not for a test to find out."""
    name = host.decode() if isinstance(host, bytes) else host
    if name and not _is_address(name) and not is_loopback(name) and name != socket.gethostname():
        raise socket.gaierror(socket.EAI_NONAME, f"{name}: the network is off in tests")


def is_loopback(host: str) -> bool:
    if host in ("", "localhost") or host.endswith(".localhost"):
        return True
    return _is_address(host) and ip_address(host).is_loopback


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
