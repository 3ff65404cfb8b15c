"""Keeps the tests off the network: only loopback, Unix sockets and servers named by a variable may be reached.

An audit hook sees every connect of this process before it happens, whichever library makes it. It cannot be taken
out again, which is what we want. Servers and browsers are other processes: their own settings keep them on loopback.
"""

import os
import socket
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from tests.servers.locate import KINDS


class NetworkIsOff(RuntimeError):
    """Not an `OSError` on purpose: code under test takes those for an outage and goes on."""


_given_hosts: set[str] = set()


@cache
def refuse_the_network() -> None:
    """From now on, and for good, in this process."""
    _given_hosts.update(_hosts_of_given_servers(os.environ))
    sys.addaudithook(_look_at)


def _hosts_of_given_servers(environment: Mapping[str, str]) -> Iterator[str]:
    for kind in KINDS.values():
        host = urlsplit(environment.get(kind.variable, "")).hostname
        if host and not is_loopback(host):
            yield host
            yield from (str(found[4][0]) for found in socket.getaddrinfo(host, None))


def _look_at(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        _check_address(arguments[0], arguments[1])
    elif event == "socket.getaddrinfo":
        _check_name(arguments[0])


def _check_address(endpoint: socket.socket, address: Any) -> None:
    # `sendmsg` on a connected socket has no address: its connect was checked.
    if endpoint.family not in (socket.AF_INET, socket.AF_INET6) or address is None:
        return
    if not is_loopback(address[0]) and address[0] not in _given_hosts:
        raise NetworkIsOff(f"a test tried to reach {address[0]}; only loopback may be reached in tests")


def _check_name(host: str | bytes | None) -> None:
    """A lookup fails as on a machine with no resolver: whether a host's name exists is not for a test to find out."""
    name = host.decode() if isinstance(host, bytes) else host
    if name and not _is_address(name) and not is_loopback(name) and name not in {socket.gethostname(), *_given_hosts}:
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
