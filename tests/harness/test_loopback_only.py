"""The guard that keeps tests off the network."""

import asyncio
import re
import socket

import pytest

from tests.servers.loopback_only import NetworkIsOff

DOCUMENTATION_ADDRESS = "192.0.2.1"  # reserved for examples: nobody's machine


def test_a_connect_to_another_machine_raises():
    with socket.socket() as endpoint, pytest.raises(NetworkIsOff, match=re.escape(DOCUMENTATION_ADDRESS)):
        endpoint.connect((DOCUMENTATION_ADDRESS, 80))


def test_a_connect_over_ipv6_raises():
    with socket.socket(socket.AF_INET6) as endpoint, pytest.raises(NetworkIsOff):
        endpoint.connect(("2001:db8::1", 80))


def test_a_datagram_to_another_machine_raises():
    with socket.socket(type=socket.SOCK_DGRAM) as endpoint, pytest.raises(NetworkIsOff):
        endpoint.sendto(b"hello", (DOCUMENTATION_ADDRESS, 53))


async def test_asyncio_is_held_back_too():
    with pytest.raises(NetworkIsOff):
        await asyncio.open_connection(DOCUMENTATION_ADDRESS, 80)


async def test_a_name_of_another_machine_is_not_looked_up():
    with pytest.raises(socket.gaierror, match="the network is off in tests"):
        await asyncio.open_connection("threadkeep.example", 80)


async def test_loopback_may_be_reached_by_address_and_by_name():
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        for host in ("127.0.0.1", "localhost"):
            _, writer = await asyncio.open_connection(host, port)
            writer.close()
            await writer.wait_closed()


def test_a_unix_socket_may_be_reached(tmp_path):
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(str(tmp_path / "socket"))
        server.listen()
        client.connect(str(tmp_path / "socket"))
