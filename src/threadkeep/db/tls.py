"""TLS to a server database, as its URL requests it: by libpq's `sslmode` and `sslrootcert` on every server.

The drivers do not read these: asyncmy knows no `sslmode`, so an operator who wrote `sslmode=require` would send what
people say in the clear, and asyncpg checks a certificate only against a file in the home folder.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from typing import Any

from threadkeep.errors import InvalidSetting

# MySQL's own words for it, which its users know
MYSQL_OPTIONS = {"ssl_ca", "ssl_capath", "ssl_cert", "ssl_key", "ssl_check_hostname"}
OPTIONS = {"sslmode", "sslrootcert"} | MYSQL_OPTIONS
HOW = "for TLS use sslmode=require, or sslmode=verify-full&sslrootcert=/path/to/ca.pem"
_CHECKED = ("verify-ca", "verify-full")
_UNSURE = ("allow", "prefer")
_MODES = ("disable", *_UNSURE, "require", *_CHECKED)
_LIBPQ_CERTIFICATES = "~/.postgresql/root.crt"
_NO = ("false", "0", "no", "off", "n", "f")


def postgres_tls(query: Mapping[str, Any]) -> ssl.SSLContext | str | None:
    """None where the URL says nothing: the driver then takes TLS where the server has it.

    The mode's name where the driver finds certificates by itself: those to trust, and those that show who we are.
    """
    mode = _mode(query)
    if mode is None or mode == "disable" or ("sslrootcert" not in query and _is_left_to_the_driver(mode)):
        return mode
    return _context(mode, query.get("sslrootcert"))


def mysql_tls(query: Mapping[str, Any]) -> ssl.SSLContext | None:
    mode = _mode(query)
    if mode in _UNSURE:
        raise InvalidSetting("DATABASE_URL", f"requests sslmode={mode}, which MySQL's driver cannot do", HOW)
    if mode is None or mode == "disable":
        return None
    context = _context(mode, query.get("sslrootcert") or query.get("ssl_ca"), query.get("ssl_capath"))
    if "ssl_cert" in query:
        try:
            context.load_cert_chain(query["ssl_cert"], query.get("ssl_key"))
        except OSError:
            raise _unreadable("ssl_cert or ssl_key") from None
    return context


def _mode(query: Mapping[str, Any]) -> str | None:
    """What is said, or what follows from the certificates that are named."""
    mode = query.get("sslmode")
    if mode is None and {"sslrootcert", "ssl_ca", "ssl_capath"} & {*query}:
        return "verify-ca" if query.get("ssl_check_hostname", "").lower() in _NO else "verify-full"
    if mode is None and MYSQL_OPTIONS & {*query}:
        return "require"
    if mode is not None and mode not in _MODES:
        raise InvalidSetting("DATABASE_URL", "has an sslmode we do not know", f"use one of {', '.join(_MODES)}")
    return mode


def _context(mode: str, file: str | None, folder: str | None = None) -> ssl.SSLContext:
    """Trusts the certificates that are named, otherwise the machine's own (`system`, as libpq has it)."""
    named = None if file == "system" else file
    try:
        context = ssl.create_default_context(cafile=named, capath=folder)
    except OSError:
        raise _unreadable("sslrootcert or ssl_ca") from None
    context.check_hostname = mode == "verify-full"
    if mode not in _CHECKED and file is None and folder is None:
        context.verify_mode = ssl.CERT_NONE
    return context


def _is_left_to_the_driver(mode: str) -> bool:
    told_elsewhere = os.environ.get("PGSSLROOTCERT") or os.path.isfile(os.path.expanduser(_LIBPQ_CERTIFICATES))
    return mode not in _CHECKED or bool(told_elsewhere)


def _unreadable(option: str) -> InvalidSetting:
    return InvalidSetting(
        "DATABASE_URL", f"names a file in {option} that cannot be read", "check its path, and that it is PEM"
    )
