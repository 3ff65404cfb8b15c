"""The connection to Redis: one server or a cluster, found out at the first call; every call with a deadline.

Nothing is opened before it is needed, so an application starts also while its Redis is down. redis-py's errors become
Threadkeep's own; they quote the code of the answer, never a password, a key or a value.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, cast
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from redis import exceptions as theirs
from redis.asyncio import ConnectionPool, Redis, RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff, NoBackoff

from threadkeep.errors import (
    CapabilityMissing,
    InvalidSetting,
    LoginRefused,
    MemoryClosed,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from threadkeep.resilience.loops import Lease, Shared
from threadkeep.resilience.one_call import waiting
from threadkeep.sessions.redis.scripts import Argument, Keys, Script

DRIVER_ERRORS = (theirs.RedisError, OSError, TimeoutError)
_CODE = re.compile(r"-?([A-Z]{2,20})\b")
_DENIED_IN_A_SCRIPT = ("The user executing the script can't", "ACL failure in script")  # Redis, Valkey
_WITHOUT_LOGIN = "Protocol error: unauthenticated"  # instead of NOAUTH, where a command is long
_REFUSED_CREDENTIALS = "refused the credentials; correct the user and password in REDIS_URL"
_UNSURE = "; a write may or may not have happened"
_DOWN = "cannot be reached (is it up, and REDIS_URL right?)"
_BY_CODE: dict[str, tuple[type[StoreError], str]] = {
    "OOM": (StoreFull, "is out of memory; raise maxmemory or free some"),
    "MISCONF": (StoreFull, "cannot write its snapshot and refuses writes; free its disk"),
    "READONLY": (StoreReadOnly, "is a replica; point REDIS_URL at the primary"),
    "NOREPLICAS": (StoreUnavailable, "has too few replicas to accept writes"),
    "CLUSTERDOWN": (StoreUnavailable, "is a cluster that is down"),
    "LOADING": (StoreUnavailable, "is loading its data"),
    "MASTERDOWN": (StoreUnavailable, "has lost its primary"),
    "BUSY": (StoreUnavailable, "is busy with a script"),
    "TRYAGAIN": (StoreUnavailable, "is moving slots"),
    "NOAUTH": (LoginRefused, _REFUSED_CREDENTIALS),
    "WRONGPASS": (LoginRefused, _REFUSED_CREDENTIALS),
    "DB": (StoreError, "has no database of that number; correct the end of REDIS_URL"),
    "NOPERM": (StoreError, "denied a command to this user; grant it in the server's ACL"),
}
_BY_KIND: list[tuple[type[Exception], type[StoreError], str]] = [
    (theirs.AuthenticationError, LoginRefused, _REFUSED_CREDENTIALS),
    (theirs.AuthorizationError, LoginRefused, _REFUSED_CREDENTIALS),
    (theirs.BusyLoadingError, StoreUnavailable, "is loading its data"),
    (theirs.MasterDownError, *_BY_CODE["MASTERDOWN"]),
    (theirs.TryAgainError, *_BY_CODE["TRYAGAIN"]),
    (theirs.ReadOnlyError, *_BY_CODE["READONLY"]),
    (theirs.OutOfMemoryError, *_BY_CODE["OOM"]),
    (theirs.ClusterDownError, *_BY_CODE["CLUSTERDOWN"]),
    (theirs.NoPermissionError, *_BY_CODE["NOPERM"]),
    (theirs.MaxConnectionsError, StoreUnavailable, "has no free connection for us; raise the pool's size"),
    (theirs.TimeoutError, StoreUnavailable, f"did not answer in time{_UNSURE}"),
    (theirs.ConnectionError, StoreUnavailable, f"{_DOWN}{_UNSURE}"),
    (theirs.RedisClusterException, StoreUnavailable, "is a cluster that cannot be reached"),
    (TimeoutError, StoreUnavailable, f"did not answer in time{_UNSURE}"),
    (OSError, StoreUnavailable, _DOWN),
]


def translated(error: Exception, server: str) -> StoreError:
    match = _CODE.match(str(error))
    code = match[1] if match else ""
    if any(words in str(error) for words in _DENIED_IN_A_SCRIPT):
        code = "NOPERM"
    if _WITHOUT_LOGIN in str(error):
        code = "NOAUTH"
    if isinstance(error, theirs.ResponseError) and code in _BY_CODE:
        kind, what = _BY_CODE[code]
        return _error(kind, server, what)
    for theirs_kind, kind, what in _BY_KIND:
        if isinstance(error, theirs_kind):
            return _error(kind, server, what)
    return _error(StoreError, server, f"refused the work ({code or type(error).__name__})")


def _error(kind: type[StoreError], server: str, what: str) -> StoreError:
    problem, _, fix = what.removesuffix(_UNSURE).partition("; ")
    return kind(f"{server} {what}", problem=f"Redis {problem}", fix=fix or "look at the server, its log and REDIS_URL")


@contextmanager
def our_errors(server: str) -> Generator[None]:
    try:
        yield
    except DRIVER_ERRORS as error:
        # Not chained: the server's own words may quote what it was sent.
        raise translated(error, server) from None


_OLDEST_SERVER = (7, 0)
# redis-py types the same call in two ways, for its sync and its async client; only this module deals with that.
Server = Any


@dataclass(frozen=True, slots=True)
class RedisOptions:
    """`timeout` bounds a whole call: waiting for a connection, connecting, sending and the answer."""

    timeout: float = 2.0
    max_connections: int = 64  # to each server


@dataclass(frozen=True, slots=True)
class Link:
    """What a first call found."""

    server: Server
    keys: Keys


class _Connections:
    """To one URL, shared by every client of a process and loop that has the same options."""

    def __init__(self, url: str, options: RedisOptions, given: Server | None = None) -> None:
        self._url = without_protocol(url)
        self._options = options
        self._given = given
        self._finding = asyncio.Lock()
        self._link: Link | None = None
        self._closed = False
        self._free = asyncio.Semaphore(options.max_connections)

    async def link(self) -> Link:
        async with self._finding:
            if self._closed:
                raise MemoryClosed("this Redis client is closed")
            if self._link is None:
                self._link = await self._find()
            return self._link

    @asynccontextmanager
    async def slot(self) -> AsyncGenerator[None]:
        """Held during a call. One that ends after the close has perhaps opened a connection, which is closed too."""
        async with self._free:
            try:
                yield
            finally:
                if self._closed:
                    await self._disconnect()

    async def close(self) -> None:
        self._closed = True
        async with self._finding:
            await self._disconnect()

    async def _disconnect(self) -> None:
        if self._link is not None and self._given is None:
            await self._link.server.aclose()

    async def _find(self) -> Link:
        if self._given is not None:
            is_cluster = await _is_cluster(self._given)
            if is_cluster and not isinstance(self._given, RedisCluster):
                raise InvalidSetting("redis", "is a client for one server on a cluster", "pass a RedisCluster client")
            return Link(self._given, Keys(is_cluster))
        server = self._single()
        try:
            is_cluster = await _is_cluster(server)
        except BaseException:
            await server.aclose()
            raise
        if not is_cluster:
            return Link(server, Keys())
        await server.aclose()
        server = self._cluster()
        try:
            await server.initialize()
        except BaseException:
            await server.aclose()
            raise
        return Link(server, Keys(cluster=True))

    def _single(self) -> Server:
        return Redis.from_url(  # pyright: ignore[reportUnknownMemberType]
            self._url,
            protocol=2,
            socket_timeout=None,  # the deadline is around the whole call
            socket_connect_timeout=self._options.timeout,
            max_connections=self._options.max_connections + 1,
            retry=Retry(NoBackoff(), 0),
        )

    def _cluster(self) -> Server:
        return RedisCluster.from_url(  # pyright: ignore[reportUnknownMemberType]
            self._url,
            protocol=2,
            socket_timeout=None,
            socket_connect_timeout=self._options.timeout,
            max_connections=self._options.max_connections + 1,
            retry=Retry(ExponentialBackoff(cap=0.25, base=0.02), 4),
        )


_CONNECTIONS: Shared[_Connections] = Shared()


class RedisClient:
    """Share one among the hot store, the journal, scratch and slots. Who made the server object closes it.

    Clients of one URL share their connections, which the last to be closed closes.
    """

    def __init__(self, url: str, options: RedisOptions = RedisOptions()) -> None:  # noqa: B008
        self._url = url
        self._options = options
        self._lease: Lease[_Connections] | None = None  # taken at the first call, which is on the loop
        self._link: Link | None = None
        self._closed = False
        self.place = place_of(url)
        self.address = address_of(url)
        _check_options(url)

    @classmethod
    def around(cls, server: Redis | RedisCluster, options: RedisOptions = RedisOptions()) -> RedisClient:  # noqa: B008
        """On a client that the application opened, and closes. It must not decode answers."""
        client = cls("redis://the-applications-client", options)
        if cast(Any, server).get_encoder().decode_responses:
            raise InvalidSetting("redis", "decodes answers", "make the client with decode_responses=False")
        client._lease = Lease(_Connections(client._url, options, server))
        client.place = client.address = "redis"
        return client

    @property
    def is_linked(self) -> bool:
        """Whether the server has been found, so that a call need not look for it first."""
        return self._link is not None

    async def link(self) -> Link:
        """The server, found if need be. Raises `StoreUnavailable`, and `CapabilityMissing` when it is too old."""
        if self._closed:
            raise MemoryClosed("this Redis client is closed")
        if self._link is not None:
            return self._link
        with our_errors(self.place), waiting(self, self._options.timeout) as left:
            async with asyncio.timeout(left):
                self._link = await self._connections.link()
                return self._link

    @property
    def _connections(self) -> _Connections:
        if self._lease is None:
            make = partial(_Connections, self._url, self._options)
            self._lease = _CONNECTIONS.take((self._url, self._options), make)
        return self._lease.value

    async def run(self, script: Script, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
        """Run a script by its digest; a server that does not know it yet is sent its text."""
        server = (self._link or await self.link()).server

        async def evaluate() -> Any:
            try:
                return await server.evalsha(script.sha, len(keys), *keys, *arguments)
            except theirs.NoScriptError:
                return await server.eval(script.text, len(keys), *keys, *arguments)

        return await self._within_deadline(evaluate)

    async def command(self, *words: Argument, wait: float = 0) -> Any:
        """Run one plain command; `wait` is how long the command itself makes the server wait."""
        server = (self._link or await self.link()).server
        return await self._within_deadline(lambda: server.execute_command(*words), wait)

    async def facts(self, *sections: str) -> list[dict[str, str]]:
        """Return what INFO says of every server."""
        return [facts_in(answer) for answer in await self.on_each_server("INFO", *sections)]

    async def keys_like(self, pattern: str) -> AsyncIterator[str]:
        """Yield keys of every server; one that is set or deleted during the scan may be missing, or come twice."""
        link = await self.link()
        for node in link.server.get_primaries() if link.keys.cluster else (link.server,):
            cursor = b"0"
            while True:
                words = ("SCAN", cursor, "MATCH", pattern, "COUNT", 1_000)
                found: Any = await self._within_deadline(partial(node.execute_command, *words))
                cursor = str(found[0], "utf-8") if isinstance(found[0], bytes) else str(found[0])
                for key in found[1]:
                    with suppress(UnicodeDecodeError):  # another application's: ours are all UTF-8
                        yield key.decode()
                if cursor == "0":
                    break

    async def on_each_server(self, *words: Argument) -> list[Any]:
        """From every primary of a cluster, or from the one server there is."""
        link = await self.link()
        if not link.keys.cluster:
            return [await self.command(*words)]
        nodes = link.server.get_primaries()
        return [await self._within_deadline(partial(node.execute_command, *words)) for node in nodes]

    async def close(self) -> None:
        self._closed, self._link = True, None
        if self._lease is not None and self._lease.release():
            await self._lease.value.close()

    async def _within_deadline(self, work: Callable[[], Awaitable[Any]], wait: float = 0) -> Any:
        try:
            with waiting(self, self._options.timeout) as left:
                async with asyncio.timeout(left + wait), self._connections.slot():
                    return await _twice_if_broken(work)
        except DRIVER_ERRORS as error:
            raise translated(error, self.place) from None  # as `our_errors`, which costs more than a try


def _check_options(url: str) -> None:
    """By a connection that is not opened."""
    try:
        ConnectionPool.from_url(url).make_connection()  # pyright: ignore[reportUnknownMemberType]
    except (TypeError, ValueError, theirs.RedisError) as error:
        raise refused_option(error) from None


async def _twice_if_broken(work: Callable[[], Awaitable[Any]]) -> Any:
    """Try once more when the connection broke: every call of ours may be repeated without harm."""
    try:
        return await work()
    except theirs.AuthenticationError:
        raise
    except theirs.ConnectionError:
        return await work()


async def _is_cluster(server: Server) -> bool:
    """Raises `CapabilityMissing` when it is too old."""
    if isinstance(server, RedisCluster):
        await server.initialize()
        server = cast(Any, server).get_default_node()
    facts = facts_in(await server.execute_command("INFO"))
    if (version := too_old(facts)) is not None:
        raise CapabilityMissing(f"Redis {version} is too old; point REDIS_URL at Redis 7 or newer, or at Valkey")
    return facts.get("cluster_enabled") == "1"


def facts_in(answer: Any) -> dict[str, str]:
    """Read INFO from the server's own text, or from the mapping that redis-py made of it."""
    if isinstance(answer, bytes):
        lines = (line.partition(":") for line in answer.decode("utf-8", "replace").splitlines())
        return {name: value for name, colon, value in lines if colon}
    return {str(name): str(value) for name, value in answer.items()}


def pairs_in(answer: Any) -> Mapping[Any, Any]:
    """Read names and values in turn, as a server answers them, or the mapping that redis-py made of them."""
    if isinstance(answer, Mapping):
        return cast("Mapping[Any, Any]", answer)
    return dict(zip(answer[::2], answer[1::2], strict=True))


def too_old(facts: Mapping[str, str]) -> str | None:
    """Return the version where we do not support it."""
    version = facts.get("redis_version", "0")
    return version if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST_SERVER else None


_USE = "use redis://host:6379/0 or rediss://host:6379/0"
_FILES = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile")
_FREE = (*_FILES, "client_name", "username", "password")  # what these say may have an @
_OURS = ("protocol", "decode_responses")
_OPTION = re.compile(r"['`](\w+)['`]")  # redis-py 5 writes the latter


def place_of(url: str) -> str:
    """Return host and port, for error messages. Raise `InvalidSetting`, which quotes no value: it may be a password."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidSetting("REDIS_URL", "is not a URL", _USE) from None
    if parts.scheme not in ("redis", "rediss", "unix"):
        raise InvalidSetting("REDIS_URL", "is not a Redis URL", _USE)
    if parts.scheme != "unix":
        _check_rest(parts)
    _check_files(parts)
    return f"Redis at {parts.hostname or parts.path or 'localhost'}" + (f":{port}" if port else "")


def address_of(url: str) -> str:
    """Host, port and database number, spelled alike for every process: to know a Redis again by. No credentials."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return f"{parts.path}/{parse_qs(parts.query).get('db', ['0'])[0]}"
    host = parts.hostname or "localhost"
    database = parts.path.strip("/") or parse_qs(parts.query).get("db", ["0"])[0]
    return f"{'127.0.0.1' if host == 'localhost' else host}:{parts.port or 6379}/{database}"


def _check_rest(parts: SplitResult) -> None:
    options = [option for option in parts.query.split("&") if option.partition("=")[0] not in _FREE]
    rest = "".join([parts.path, *options, parts.fragment])
    if "@" in rest:  # then what looks like the host is a piece of the password
        fix = "percent-encode the password: @ is %40, / is %2F, ? is %3F, # is %23"
        raise InvalidSetting("REDIS_URL", "is not a URL", fix)
    if not re.fullmatch(r"/*\d*/*", unquote(parts.path).rstrip()):
        raise InvalidSetting("REDIS_URL", "names a database that is no number", "end it with /0")


def _check_files(parts: SplitResult) -> None:
    options = parse_qs(parts.query)
    for option in _FILES:
        if not all(os.access(file, os.R_OK) for file in options.get(option, ())):
            raise InvalidSetting("REDIS_URL", f"names a file in {option} that cannot be read", "check its path")


def without_protocol(url: str) -> str:
    """Remove the options that the driver would prefer to our arguments: how answers are encoded and decoded."""
    where, _, options = url.partition("?")
    return f"{where}?" + "&".join(option for option in options.split("&") if option.partition("=")[0] not in _OURS)


def refused_option(error: Exception) -> InvalidSetting:
    """The driver's error quotes the option, never its value; one option it only describes."""
    named = _OPTION.search(str(error).replace("SSL Certificate Requirements Flag", "'ssl_cert_reqs'"))
    problem = f"has an option that will not do, {named[1]}" if named else "has options that will not do"
    fix = "leave it out; rediss:// turns TLS on, and ssl_cert_reqs=none accepts any certificate"
    return InvalidSetting("REDIS_URL", problem, fix)
