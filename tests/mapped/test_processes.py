"""Processes that have just begun, or that end at once: nothing that is stored stays unseen, and nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.mapped.conftest import MakeModule
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


READ = """
import asyncio
from threadkeep.compat.reflection import load_recent_context, store_conversation

async def main():
    print(load_recent_context("c1")["user_msg"])
    store_conversation("c1", "u1", "new", "ok", None)
    print(load_recent_context("c1")["user_msg"])

asyncio.run(main())
"""


def run(program: str, redis_url: str, sql_url: str) -> str:
    """What it printed. Nothing is logged."""
    environment = {**os.environ, "REDIS_URL": redis_url, "DATABASE_URL": sql_url}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    return ended.stdout


@pytest.mark.parametrize("ending", ["store()", IN_A_CHILD], ids=["its-own", "a-child's"])
def test_what_a_loop_stored_is_kept_though_its_process_ends_at_once(ending: str, redis_url: str, sql_url: str) -> None:
    run(STORE + ending, redis_url, sql_url)
    with client(redis_url) as redis:
        assert redis.xlen(QUEUE) == 3
        assert redis.exists("conv:c1:latest", "conv:c2:latest") == 2


def test_a_worker_that_nobody_closes_ends_with_its_process(redis_url: str, sql_url: str) -> None:
    run(WORK, redis_url, sql_url)
    with client(redis_url) as redis:
        assert redis.xinfo_consumers(QUEUE, "archive") == []


def test_a_child_that_closes_the_module_does_not_wait_for_its_parents_worker(redis_url: str, sql_url: str) -> None:
    run(STORE + WORK + CLOSE + IN_A_CHILD, redis_url, sql_url)
    with client(redis_url) as redis:
        assert redis.exists("conv:c2:latest")


def test_the_first_read_of_a_process_finds_what_is_stored_also_from_a_loop(
    make_module: MakeModule, redis_url: str, sql_url: str
) -> None:
    make_module(sql_url).store_short_term("c1", "u1", "old", "ok", None)
    assert run(READ, redis_url, sql_url) == "old\nnew\n"
