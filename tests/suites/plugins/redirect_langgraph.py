"""A pytest plugin: LangGraph's own tests ask for a checkpointer or a store, and get ours.

`SUITE_URL` names the database; without it they get LangGraph's own SQLite saver and in-memory store, for comparison.
Tests that ask for neither are left out.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from threadkeep.adapters.langgraph import ThreadkeepSaver, ThreadkeepStore

URL = os.environ.get("SUITE_URL")
ASKED_FOR = {"sync_checkpointer", "async_checkpointer", "sync_store", "async_store"}
_opened = ExitStack()


def _user() -> str:
    """Not by `uuid4`, which some tests replace."""
    return f"u-{secrets.token_hex(8)}"


@pytest.fixture
def sync_checkpointer() -> Iterator[BaseCheckpointSaver[Any]]:
    opened = (
        SqliteSaver.from_conn_string(":memory:") if URL is None else ThreadkeepSaver.from_url_sync(URL, user=_user())
    )
    with opened as saver:
        yield saver


@pytest.fixture
async def async_checkpointer() -> AsyncIterator[BaseCheckpointSaver[Any]]:
    opened = (
        AsyncSqliteSaver.from_conn_string(":memory:") if URL is None else ThreadkeepSaver.from_url(URL, user=_user())
    )
    async with opened as saver:
        yield saver


@pytest.fixture
def sync_store() -> Iterator[BaseStore]:
    if URL is None:
        yield InMemoryStore()
    else:
        with ThreadkeepStore.from_url_sync(URL, user=_user()) as store:
            yield store


@pytest.fixture
async def async_store() -> AsyncIterator[BaseStore]:
    if URL is None:
        yield InMemoryStore()
    else:
        async with ThreadkeepStore.from_url(URL, user=_user()) as store:
            yield store


class Ours(ThreadkeepStore):
    """Made as `InMemoryStore` is, for tests that make their own."""

    def __init__(self, *, index: Any = None) -> None:
        assert URL is not None
        opened = _opened.enter_context(ThreadkeepStore.from_url_sync(URL, user=_user(), index=index))
        vars(self).update(vars(opened))


@pytest.fixture(autouse=True)
def _closed_at_the_end() -> Iterator[None]:
    with _opened:
        yield


class Redirected(pytest.Module):
    def _getobj(self) -> Any:
        module = super()._getobj()
        for name in ASKED_FOR:
            setattr(module, name, globals()[name])
        if URL is not None and self.path.name == "test_store.py":
            setattr(module, "InMemoryStore", Ours)  # noqa: B010
        return module


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> pytest.Module:
    return Redirected.from_parent(parent, path=module_path)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    other = [item for item in items if not _asks(item)]
    config.hook.pytest_deselected(items=other)
    items[:] = [item for item in items if item not in set(other)]


def _asks(item: pytest.Item) -> bool:
    if item.path.name == "test_store.py":
        return True
    return not ASKED_FOR.isdisjoint(getattr(item, "fixturenames", ()))
