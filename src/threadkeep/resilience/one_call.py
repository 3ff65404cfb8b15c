"""One deadline per call: however many questions a call has for a store, it waits for it no longer than one may take.

    with one_call():                                # around a verb
        with sparing(): ...                         # what the verb could do without may not use up its time
        with waiting(self, seconds) as left: ...    # in a store, around each question

Every store has its own time in a call, counted while any task of the call waits for it. Outside a call each question
has all of it. Questions of a task that outlives the call are no longer the call's.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar

from threadkeep.errors import StoreUnavailable

P = ParamSpec("P")
T = TypeVar("T")
Monotonic = Callable[[], float]


class Store(Protocol):
    @property
    def place(self) -> str: ...


class NotAskedAgain(StoreUnavailable):
    """The store was not called: this call has waited for it as long as it may. Nothing has happened there."""


@dataclass(slots=True)
class _Spent:
    """Time spent on one store. Concurrent waits count once."""

    seconds: float = 0.0
    waiting: int = 0
    since: float = 0.0

    def so_far(self, now: float) -> float:
        return self.seconds + (now - self.since if self.waiting else 0.0)

    def began(self, now: float) -> None:
        if not self.waiting:
            self.since = now
        self.waiting += 1

    def ended(self, now: float) -> None:
        self.waiting -= 1
        if not self.waiting:
            self.seconds += now - self.since


class _Call:
    """Made for every verb, also on a store that never waits, so its parts are made when they are first needed."""

    __slots__ = ("_spent", "is_over", "monotonic")

    def __init__(self, monotonic: Monotonic = time.monotonic) -> None:
        self.monotonic = monotonic
        self.is_over = False
        self._spent: dict[Store, _Spent] | None = None

    def on(self, store: Store) -> _Spent:
        if self._spent is None:
            self._spent = {}
        return self._spent.setdefault(store, _Spent())


class _Part(NamedTuple):
    call: _Call
    shared: bool  # questions share a store's time; else each has all of it, until one has timed out
    share: float = 1.0  # of what is left


_PART: ContextVar[_Part | None] = ContextVar("threadkeep_one_call", default=None)


def _part() -> _Part | None:
    part = _PART.get()
    return None if part is None or part.call.is_over else part


@contextmanager
def one_call(*, shared: bool | None = None, monotonic: Monotonic = time.monotonic) -> Generator[None]:
    """Inside another call it is a part of that one.

    `shared=False` is for work of any size, such as erasing a user: what a store answers costs nothing there, but one
    that timed out is not called again.
    """
    outer = _part()
    if outer is not None:
        inner = outer if shared is None else outer._replace(shared=shared)
    else:
        inner = _Part(_Call(monotonic), shared is not False)
    token = _PART.set(inner)
    try:
        yield
    finally:
        _PART.reset(token)
        if outer is None:
            inner.call.is_over = True


class sparing:
    """A question inside may take no more than half of what is left of a store's time."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        part = _part()
        self._token = _PART.set(part and _Part(part.call, part.shared, part.share / 2))

    def __exit__(self, *exception: object) -> None:
        _PART.reset(self._token)


def in_one_call(verb: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    @wraps(verb)
    async def called(*args: P.args, **kwargs: P.kwargs) -> T:
        """As `with one_call()` would, without a generator's cost on every verb."""
        if _part() is not None:
            return await verb(*args, **kwargs)
        call = _Call()
        token = _PART.set(_Part(call, shared=True))
        try:
            return await verb(*args, **kwargs)
        finally:
            _PART.reset(token)
            call.is_over = True

    return called


def outside_any_call() -> Context:
    """For a task that others will wait for, too."""
    context = copy_context()
    context.run(_PART.set, None)
    return context


class waiting:
    """`with waiting(store, seconds) as left`: how long this question may take. Raises `NotAskedAgain`.

    `own` is for work with a time of its own, which is given whole: only a store that has already timed out
    in this call is not called.
    """

    __slots__ = ("_began", "_own", "_part", "_seconds", "_spent", "_store")

    def __init__(self, store: Store, seconds: float, own: float | None = None) -> None:
        self._store = store
        self._seconds = seconds
        self._own = own

    def __enter__(self) -> float:
        part = self._part = _part()
        if part is None:
            return self._own or self._seconds
        spent = self._spent = part.call.on(self._store)
        now = self._began = part.call.monotonic()
        left = self._seconds - spent.so_far(now)
        if left <= 0:
            self._part = None
            raise NotAskedAgain(f"{self._store.place}: this call has waited for it as long as it may")
        if self._own or not part.shared:
            return self._own or self._seconds
        spent.began(now)
        return left * part.share

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        part = self._part
        if part is None:
            return
        if part.shared and not self._own:
            self._spent.ended(part.call.monotonic())
        elif isinstance(error, Exception):
            self._spent.seconds += part.call.monotonic() - self._began
