"""What REDIS_URL names, looked at before anything is opened: the driver takes a database that is no number for 0, and
ends in a traceback over an option that it does not know."""

from __future__ import annotations

import os
import re
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from threadkeep.errors import InvalidSetting

_USE = "use redis://host:6379/0 or rediss://host:6379/0"
_FILES = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile")
_FREE = (*_FILES, "client_name", "username", "password")  # what these say may have an @
_OURS = ("protocol", "decode_responses")
_OPTION = re.compile(r"'(\w+)'")


def place_of(url: str) -> str:
    """Where, without who: for error messages. Raises `InvalidSetting`, naming no value: that may be a password."""
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


def as_we_speak(url: str) -> str:
    """Without what the driver would take from the URL before it takes it from us: how answers are written and read."""
    where, _, options = url.partition("?")
    return f"{where}?" + "&".join(option for option in options.split("&") if option.partition("=")[0] not in _OURS)


def refused_option(error: Exception) -> InvalidSetting:
    """What the driver raises quotes the option, never its value; of one it tells in words."""
    named = _OPTION.search(str(error).replace("SSL Certificate Requirements Flag", "'ssl_cert_reqs'"))
    problem = f"has an option that will not do, {named[1]}" if named else "has options that will not do"
    fix = "leave it out; TLS is asked for by rediss://, and any certificate taken by ssl_cert_reqs=none"
    return InvalidSetting("REDIS_URL", problem, fix)
