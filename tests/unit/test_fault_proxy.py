"""Every mode of the fault proxy, seen through real sockets."""

import asyncio
import time
from contextlib import asynccontextmanager, suppress

import pytest

from threadkeep.testing.fault_proxy import FaultProxy

SOON = 5.0
A_WHILE = 0.15


class EchoServer:
    """Answers with what it is told, and remembers it."""

    def __init__(self):
        self.heard = b""
        self.ends = 0
        self.port = 0

    async def talk(self, reader, writer):
        with suppress(ConnectionError):
            while chunk := await reader.read(1024):
                self.heard += chunk
                writer.write(chunk)
                await writer.drain()
        self.ends += 1
        writer.close()


@pytest.fixture
async def echo():
    server = EchoServer()
    async with await asyncio.start_server(server.talk, "127.0.0.1", 0) as listener:
        server.port = listener.sockets[0].getsockname()[1]
        yield server


@pytest.fixture
async def proxy(echo):
    async with FaultProxy("127.0.0.1", echo.port) as proxy:
        yield proxy


@asynccontextmanager
async def connection(proxy):
    reader, writer = await asyncio.open_connection(proxy.host, proxy.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def say(line, word, *, within=SOON):
    reader, writer = line
    writer.write(word)
    await writer.drain()
    return await asyncio.wait_for(reader.readexactly(len(word)), within)


async def until(condition):
    async with asyncio.timeout(SOON):
        while not condition():
            await asyncio.sleep(0.005)


async def test_it_passes_everything_on_and_counts_it(proxy):
    async with connection(proxy) as one, connection(proxy) as two:
        assert await say(one, b"hello") == b"hello"
        assert await say(two, b"you") == b"you"
        assert proxy.open_connections == 2
    assert (proxy.traffic.connections, proxy.traffic.to_server, proxy.traffic.to_client) == (2, 8, 8)
    assert proxy.traffic.dropped == 0
    await until(lambda: proxy.open_connections == 0)


async def test_a_megabyte_arrives_whole(proxy):
    word = bytes(range(256)) * 4096
    async with connection(proxy) as line:
        assert await say(line, word) == word


async def test_the_end_of_a_stream_is_passed_on(proxy, echo):
    async with connection(proxy) as (reader, writer):
        writer.write(b"last words")
        writer.write_eof()
        assert await asyncio.wait_for(reader.read(), SOON) == b"last words"
    assert echo.ends == 1


async def test_delay_holds_the_answer_while_the_server_already_acted(proxy, echo):
    async with connection(proxy) as line:
        proxy.delay(A_WHILE)
        began = time.monotonic()
        answer = asyncio.create_task(say(line, b"hello"))
        await until(lambda: echo.heard == b"hello")
        assert not answer.done()
        assert await answer == b"hello"
        assert time.monotonic() - began >= A_WHILE


async def test_restore_ends_a_delay_at_once(proxy, echo):
    async with connection(proxy) as line:
        proxy.delay(3600)
        answer = asyncio.create_task(say(line, b"hello"))
        await until(lambda: echo.heard == b"hello")
        proxy.restore()
        assert await answer == b"hello"


async def test_reset_breaks_open_connections_on_both_sides(proxy, echo):
    async with connection(proxy) as line:
        await say(line, b"hello")
        proxy.reset()
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(line[0].read(1), SOON)
    await until(lambda: echo.ends == 1)


async def test_reset_breaks_new_connections_until_restored(proxy):
    proxy.reset()
    with pytest.raises(ConnectionResetError):
        async with connection(proxy) as line:
            await asyncio.wait_for(line[0].read(1), SOON)
    proxy.restore()
    async with connection(proxy) as line:
        assert await say(line, b"again") == b"again"


async def test_half_open_swallows_what_an_open_connection_says(proxy, echo):
    async with connection(proxy) as line:
        await say(line, b"heard")
        proxy.half_open()
        with pytest.raises(TimeoutError):
            await say(line, b"lost", within=A_WHILE)
        assert (echo.heard, echo.ends, proxy.traffic.dropped) == (b"heard", 0, 4)


async def test_half_open_accepts_new_connections_and_never_answers(proxy, echo):
    proxy.half_open()
    async with connection(proxy) as line:
        with pytest.raises(TimeoutError):
            await say(line, b"lost", within=A_WHILE)
        assert not line[0].at_eof()
    assert echo.heard == b""
    assert proxy.traffic.dropped == 4


async def test_half_open_hides_from_the_server_that_the_client_left(proxy, echo):
    async with connection(proxy) as line:
        await say(line, b"hello")
        proxy.half_open()
    async with connection(proxy) as later:
        with pytest.raises(TimeoutError):
            await say(later, b"lost", within=A_WHILE)
    assert echo.ends == 0
    proxy.restore()
    await until(lambda: echo.ends == 1)


async def test_a_stream_with_a_hole_is_reset_when_half_open_ends(proxy):
    async with connection(proxy) as line:
        await say(line, b"hello")
        proxy.half_open()
        line[1].write(b"lost")
        await until(lambda: proxy.traffic.dropped == 4)
        proxy.restore()
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(line[0].read(1), SOON)


async def test_an_open_connection_that_lost_nothing_survives_half_open(proxy):
    async with connection(proxy) as line:
        await say(line, b"before")
        proxy.half_open()
        proxy.restore()
        assert await say(line, b"after") == b"after"


async def test_blackhole_holds_everything_and_loses_nothing(proxy, echo):
    async with connection(proxy) as line:
        await say(line, b"one")
        proxy.blackhole()
        with pytest.raises(TimeoutError):
            await say(line, b"two", within=A_WHILE)
        assert echo.heard == b"one"
        proxy.restore()
        assert await asyncio.wait_for(line[0].readexactly(3), SOON) == b"two"


async def test_blackhole_holds_new_connections_until_restored(proxy, echo):
    proxy.blackhole()
    async with connection(proxy) as line:
        with pytest.raises(TimeoutError):
            await say(line, b"hello", within=A_WHILE)
        assert echo.heard == b""
        proxy.restore()
        assert await asyncio.wait_for(line[0].readexactly(5), SOON) == b"hello"


async def test_a_server_that_is_down_resets_the_client():
    listener = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    listener.close()
    await listener.wait_closed()
    async with FaultProxy("127.0.0.1", port) as proxy:
        with pytest.raises(ConnectionResetError):
            async with connection(proxy) as line:
                await asyncio.wait_for(line[0].read(1), SOON)


async def test_leaving_the_block_ends_every_connection_even_a_stalled_one(echo):
    async with FaultProxy("127.0.0.1", echo.port) as proxy:
        reader, writer = await asyncio.open_connection(proxy.host, proxy.port)
        await say((reader, writer), b"hello")
        proxy.blackhole()
    with pytest.raises(ConnectionResetError):
        await asyncio.wait_for(reader.read(1), SOON)
    writer.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(proxy.host, proxy.port)


@pytest.mark.parametrize("host", ["192.0.2.1", "threadkeep.example", "0.0.0.0", "::"])
def test_it_refuses_to_forward_to_another_machine(host):
    with pytest.raises(ValueError, match="loopback only"):
        FaultProxy(host, 6379)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost"])
def test_every_loopback_address_may_be_the_target(host):
    FaultProxy(host, 6379)


async def test_a_url_keeps_its_account_and_database_on_the_way_through(proxy):
    url = proxy.url_for("postgresql://me:a%40b@127.0.0.1:5432/mine?ssl=off")
    assert url == f"postgresql://me:a%40b@127.0.0.1:{proxy.port}/mine?ssl=off"
