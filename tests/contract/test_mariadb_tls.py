"""What a URL says of TLS holds: nothing is said in the clear, or to a stranger, where it asked for more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from tests.servers.locate import MARIADB
from tests.servers.mariadb import MariaDbServer
from tests.servers.provide import need_program
from tests.servers.self_signed import self_signed
from tests.servers.server import Server
from threadkeep.db.server import ServerDatabase
from threadkeep.errors import StoreUnavailable


async def cipher(url: str) -> str:
    """That our own connection is encrypted with; empty where it is not."""
    database = ServerDatabase.at(url)
    try:
        return await database.snapshot(_cipher)
    finally:
        await database.close()


async def _cipher(connection: AsyncConnection) -> str:
    return str((await connection.execute(text("SHOW SESSION STATUS LIKE 'Ssl_cipher'"))).one()[1])


class EncryptedMariaDb(MariaDbServer):
    def command(self) -> Sequence[str | Path]:
        certificate, key = self_signed(self.folder)
        return [*super().command(), f"--ssl-cert={certificate}", f"--ssl-key={key}"]


@pytest.fixture(scope="module")
def encrypted() -> Iterator[MariaDbServer]:
    with EncryptedMariaDb(need_program(MARIADB)) as server:
        yield server


@pytest.mark.parametrize(
    "options",
    [
        "sslmode=require",
        "sslmode=require&sslrootcert={certificate}",
        "sslmode=verify-ca&sslrootcert={certificate}",
        "ssl_ca={certificate}&ssl_check_hostname=false",
    ],
)
async def test_what_is_said_is_encrypted(encrypted: MariaDbServer, options: str) -> None:
    asked = options.format(certificate=encrypted.folder / "cert.pem")
    assert await cipher(f"{encrypted.url}?{asked}")


@pytest.mark.parametrize("options", ["sslmode=verify-ca", "sslmode=verify-full&sslrootcert={certificate}"])
async def test_a_server_that_cannot_show_who_it_is_hears_nothing(encrypted: MariaDbServer, options: str) -> None:
    asked = options.format(certificate=encrypted.folder / "cert.pem")  # of localhost, and called by its address
    with pytest.raises(StoreUnavailable, match=r"certificate does not show .* sslrootcert in DATABASE_URL"):
        await cipher(f"{encrypted.url}?{asked}")


async def test_a_server_without_tls_hears_nothing_where_it_is_required(mariadb_server: Server) -> None:
    with pytest.raises(StoreUnavailable):
        await cipher(f"{mariadb_server.url}?sslmode=require")
