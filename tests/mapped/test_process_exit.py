"""A process that ends: what its calls returned from is stored, and its worker leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.servers.redis import client

QUEUE = "threadkeep:{turns}:queue"
STORE = """
import asyncio
from threadkeep.compat.reflection import store_conversation, store_short_term

async def main():
    for number in range(3):
        store_conversation("c1", "u1", f"turn {number}", "ok", None)
    store_short_term("c2", "u1", "hi", "ok", None)

def store():
    asyncio.run(main())
"""
IN_A_CHILD = """
import multiprocessing
child = multiprocessing.get_context("fork").Process(target=store)
child.start()
child.join()
"""
WORK = """
import time
from threadkeep.compat.reflection import health, memory_module, store_conversation
store_conversation("c1", "u1", "hi", "ok", None)
memory_module().start_worker()
while health()["redis"].get("queued", 1):
    time.sleep(0.05)
"""
CLOSE = """
from threadkeep.compat.reflection import close
parents_store = store
def store():
    parents_store()
    close()
"""


def run(program: str, redis_url: str, sql_url: str) -> str:
    environment = {**os.environ, "REDIS_URL": redis_url, "DATABASE_URL": sql_url}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    return ended.stderr


@pytest.mark.parametrize("ending", ["store()", IN_A_CHILD], ids=["its-own", "a-child's"])
def test_what_a_loop_stored_is_kept_though_its_process_ends_at_once(ending: str, redis_url: str, sql_url: str) -> None:
    assert run(STORE + ending, redis_url, sql_url) == ""
    with client(redis_url) as redis:
        assert redis.xlen(QUEUE) == 3
        assert redis.exists("conv:c1:latest", "conv:c2:latest") == 2


def test_a_worker_that_nobody_closes_ends_with_its_process(redis_url: str, sql_url: str) -> None:
    assert run(WORK, redis_url, sql_url) == ""
    with client(redis_url) as redis:
        assert redis.xinfo_consumers(QUEUE, "archive") == []


def test_a_child_that_closes_the_module_does_not_wait_for_its_parents_worker(redis_url: str, sql_url: str) -> None:
    assert run(STORE + WORK + CLOSE + IN_A_CHILD, redis_url, sql_url) == ""
    with client(redis_url) as redis:
        assert redis.exists("conv:c2:latest")
