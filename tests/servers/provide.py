"""From a kind of server to one a test can use: the given one, or a new one, or the reason why there is none."""

import os
from collections.abc import Callable, Mapping
from typing import NoReturn

import pytest

from tests.servers.locate import Found, Kind, Missing, locate, locate_program
from tests.servers.missing import verdict_on_missing
from tests.servers.server import ExternalServer, OwnedServer, Server


def need(kind: Kind) -> Found:
    """Where the server is; skips the test (fails it in CI) when it cannot be had."""
    _skip_without_servers()
    return _found_or_end(locate(kind))


def need_program(kind: Kind) -> str:
    """The server's program, for a test that must start its own; the override variable does not help here."""
    _skip_without_servers()
    return _found_or_end(locate_program(kind)).place


def given_or_own(found: Found, own: Callable[[str], Server], wipe: Callable[[str], None]) -> Server:
    """The server the variable names, else `own(program)`; not started yet."""
    if found.by_variable:
        return ExternalServer(found.kind.variable, found.place, wipe)
    return own(found.place)


def need_own(server: Server) -> OwnedServer:
    """The server as one that may be killed; skips the test when a variable names somebody else's."""
    if not isinstance(server, OwnedServer):
        pytest.skip("this test kills its server, and the one it was given is not ours to kill")
    return server


def end_for_missing(missing: Missing, environment: Mapping[str, str] = os.environ) -> NoReturn:
    if verdict_on_missing(environment) == "fail":
        pytest.fail(str(missing), pytrace=False)
    pytest.skip(str(missing))


def _skip_without_servers() -> None:
    """`make quick` asks for no server, also where one could be had."""
    if os.environ.get("TEST_SERVERS") == "none":
        pytest.skip("TEST_SERVERS=none: this run starts no server")


def _found_or_end(result: Found | Missing) -> Found:
    if isinstance(result, Missing):
        end_for_missing(result)
    return result
