"""What the privacy tests ask of PostgreSQL, MariaDB and Redis finds a planted text wherever it may stand there."""

import base64
import zlib
from collections.abc import Callable, Iterator

import pytest
import zstandard

from tests.contract.sql_statements import execute
from tests.privacy.in_servers import in_database, in_redis, own_database
from tests.privacy.test_traces import LONG, NEEDLE, packed, unpacked
from tests.privacy.token_readers import every_encoding
from tests.servers.redis import RedisServer, client
from threadkeep.models.tokens import Tokenizer
from threadkeep.recall.normalise import fold
from threadkeep.testing.traces import Traces

SCAN = Traces([NEEDLE], every_encoding(), unpacked)
FORMS = {
    "plain": LONG.encode(),
    "folded": fold(LONG).encode(),
    "base64": base64.b64encode(LONG.encode()),
    "zlib": zlib.compress(LONG.encode()),
    "zstd": b"\x01" + zstandard.compress(LONG.encode()),
    "packed token numbers": packed(Tokenizer("cl100k_base").encode(LONG)),
}


@pytest.fixture(params=["postgres", "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    with own_database(request.getfixturevalue(f"{request.param}_server").url) as url:
        yield url


async def test_a_planted_text_is_found_in_every_form_in_a_table(database: str) -> None:
    table = "planted"
    blob, hexadecimal = ("bytea", "'\\x{}'") if database.startswith("postgres") else ("longblob", "x'{}'")
    await execute(database, f"CREATE TABLE {table} (one {blob}, other text)")
    assert await in_database(SCAN, database) == set()
    for form, data in FORMS.items():
        value = hexadecimal.format(data.hex())
        await execute(database, f"DELETE FROM {table}", f"INSERT INTO {table} (one) VALUES ({value})")
        assert {trace.file for trace in await in_database(SCAN, database)} == {f"{table}.one"}, form
    await execute(database, f"DELETE FROM {table}", f"INSERT INTO {table} (other) VALUES ('{LONG}')")
    assert {trace.file for trace in await in_database(SCAN, database)} == {f"{table}.other"}


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
async def test_a_planted_text_is_found_in_lists_of_numbers_and_documents(database: str) -> None:
    numbers = Tokenizer("cl100k_base").encode(LONG)
    for kind, value in (("integer[]", f"'{{{', '.join(map(str, numbers))}}}'"), ("jsonb", f"'{numbers}'")):
        await execute(database, f"CREATE TABLE planted (one {kind})", f"INSERT INTO planted VALUES ({value})")
        assert {trace.form for trace in await in_database(SCAN, database)} == {"token numbers"}, kind
        await execute(database, "DROP TABLE planted")


def test_a_planted_text_is_found_in_redis_in_every_form_and_every_kind_of_key(
    new_redis: Callable[..., RedisServer],
) -> None:
    url = new_redis().url
    with client(url) as redis:
        plant = {
            "string": lambda data: redis.set("k", data),
            "hash": lambda data: redis.hset("k", "field", data),
            "hash field": lambda data: redis.hset("k", data, "value"),
            "list": lambda data: redis.rpush("k", b"other", data),
            "set": lambda data: redis.sadd("k", b"other", data),
            "zset": lambda data: redis.zadd("k", {data: 1.0}),
            "stream": lambda data: redis.xadd("k", {"field": data}),
            "name": lambda data: redis.set(data, "value"),
        }
        for kind, planted in plant.items():
            for form, data in FORMS.items():
                redis.flushall()
                assert in_redis(SCAN, url) == set()
                planted(data)
                assert {trace.needle for trace in in_redis(SCAN, url)} == {NEEDLE}, (kind, form)
        redis.flushall()
    with client(url.rpartition("/")[0] + "/7") as redis:
        redis.set("k", LONG)
    assert in_redis(SCAN, url) != set()
