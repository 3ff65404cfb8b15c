"""Canaries through the reflection module: none in Redis, none in the tables, in any form, and no text in a table."""

from __future__ import annotations

import json
import logging

import pytest

from tests.mapped.existing import rows
from tests.privacy.canaries import personal_canaries
from tests.privacy.token_readers import every_encoding
from tests.servers.redis import client
from threadkeep.compat.reflection import MemoryModule
from threadkeep.events import UserMessage
from threadkeep.testing.traces import Traces

CANARIES = personal_canaries()
TURNS_EACH = 5


def everything_in(redis_url: str) -> bytes:
    found: list[bytes] = []
    with client(redis_url) as redis:
        for key in redis.scan_iter():
            kind = redis.type(key)
            value = redis.get(key) if kind == b"string" else repr(redis.xrange(key)).encode()
            found += [key, value or b"", redis.dump(key) or b""]
    return b"\n".join(found)


def everything_in_the_tables(url: str) -> bytes:
    kept = [[str(value) for value in row] for table in ("conversations", "memories") for row in rows(url, table)]
    return json.dumps(kept, ensure_ascii=False).replace("\\", "").encode()


def test_personal_data_is_in_no_key_and_no_row_whatever_its_form(
    module: MemoryModule, sql_url: str, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for number, canary in enumerate(CANARIES):
        assert isinstance(canary.event, UserMessage)
        text = canary.event.text or ""
        told = {"summary": text, "causes": [text]}
        module.store_conversation(f"c{number % TURNS_EACH}", "u1", text, f"noted: {text}", told)
    scan = Traces([canary.needle for canary in CANARIES], every_encoding())
    assert scan.in_bytes(everything_in(redis_url)) == set()
    while module.flush_once():
        pass
    assert len(rows(sql_url)) == len(CANARIES)
    assert scan.in_bytes(everything_in_the_tables(sql_url)) == set()
    assert scan.in_bytes(everything_in(redis_url)) == set()
    assert scan.in_bytes(caplog.text.encode()) == set()


def test_the_same_scan_finds_what_was_kept(module: MemoryModule, sql_url: str, redis_url: str) -> None:
    kept = "canarykept0001quill"
    module.store_conversation("c1", "u1", f"the {kept} sings", None, None)
    scan = Traces([kept], every_encoding())
    assert scan.in_bytes(everything_in(redis_url))
    module.flush_once()
    assert {form for form, _ in scan.in_bytes(everything_in_the_tables(sql_url))} == {"token numbers"}


def test_no_text_stands_in_a_table_unless_a_cache_for_it_is_mapped(
    module: MemoryModule, sql_url: str, redis_url: str
) -> None:
    module.store_conversation("c1", "u1", "harmless words", "an answer", None)
    module.flush_once()
    assert rows(sql_url, columns="user_message, assistant_message, reflection") == [(None, None, None)]
    for word in (b"harmless", b"answer"):
        assert word not in everything_in_the_tables(sql_url)
