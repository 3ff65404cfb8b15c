"""Keeps prompts out of traces: a tracer that the environment switches on gets no model call."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec


@contextmanager
def untraced() -> Generator[None]:
    """LangChain and LangGraph send whole runs to LangSmith where `LANGSMITH_TRACING` is set; not from in here."""
    if find_spec("langsmith") is None:
        yield
        return
    from langsmith.run_helpers import tracing_context  # pyright: ignore[reportUnknownVariableType]

    with tracing_context(enabled=False):
        yield
