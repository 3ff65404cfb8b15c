"""One writer at a time, for tables that have no unique index to keep a turn from standing there twice."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from threadkeep.db.statements import Raced

_PATIENCE_SECONDS = 10
_TAKE_ON_POSTGRES = text("SELECT pg_advisory_xact_lock(:number)")
_TAKE = text("SELECT GET_LOCK(:name, :seconds)")
_GIVE_BACK = text("SELECT RELEASE_LOCK(:name)")


@asynccontextmanager
async def one_writer(connection: AsyncConnection, tables: Sequence[str]) -> AsyncGenerator[None]:
    """Held until what was written is committed. A writer that is killed leaves no lock behind."""
    digests = sorted(hashlib.blake2b(name.encode(), digest_size=8).digest() for name in tables)
    if not digests:
        yield
    elif connection.dialect.name == "postgresql":
        for digest in digests:
            await connection.execute(_TAKE_ON_POSTGRES, {"number": int.from_bytes(digest, "big", signed=True)})
        yield  # the transaction's end gives it back
    else:
        async with _held_by_the_connection(connection, [f"threadkeep:{digest.hex()}" for digest in digests]):
            yield


@asynccontextmanager
async def _held_by_the_connection(connection: AsyncConnection, names: Sequence[str]) -> AsyncGenerator[None]:
    """MySQL's locks outlive the transaction, so it is ended here, and only then are they given back."""
    try:
        for name in names:
            if (await connection.execute(_TAKE, {"name": name, "seconds": _PATIENCE_SECONDS})).scalar() != 1:
                raise Raced
        yield
        await connection.commit()
        for name in names:
            await connection.execute(_GIVE_BACK, {"name": name})
    except BaseException:
        await connection.invalidate()  # its end frees the locks and undoes the rest, whatever state it is in
        raise
