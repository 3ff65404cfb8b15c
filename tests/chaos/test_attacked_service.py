"""A service under attack by clients without a credential goes on answering others, in bounded memory."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.chaos.attack import Bystander, one_large_header, one_long_url, picture, slow_sockets, upload, uploads
from tests.chaos.harness import FULL
from tests.service.running import RunningService

T = TypeVar("T")
HOTEL = Path(__file__).parents[2] / "examples" / "hotel_concierge"
MOST_MB = 600
WITHIN_SECONDS = 1.0


@pytest.fixture
def hotel(tmp_path: Path) -> Iterator[RunningService]:
    with RunningService(tmp_path, f"sqlite:///{tmp_path}/memory.db", "--assistant", str(HOTEL)) as running:
        yield running


def attacked(service: RunningService, attack: Coroutine[Any, Any, T]) -> tuple[T, Bystander]:
    bystander, ended = Bystander(service), threading.Event()
    asyncio.run(upload(service, b""))  # refused: from here on the service has started and met a first request
    watching = threading.Thread(target=bystander.watch, args=(ended,))
    watching.start()
    try:
        return asyncio.run(attack), bystander
    finally:
        ended.set()
        watching.join()


def unharmed(bystander: Bystander) -> None:
    """Time is held to only in the full form, which has the machine to itself."""
    print(f"\n  bystander: {bystander}")
    assert set(bystander.answers) == {200}
    assert bystander.peak_mb < MOST_MB
    assert not FULL or bystander.p99 < WITHIN_SECONDS


def test_a_header_of_100_mb_is_refused_and_never_held(hotel: RunningService) -> None:
    status, bystander = attacked(hotel, one_large_header(hotel, 100))

    assert status == 431
    unharmed(bystander)


def test_a_url_of_50_mb_is_refused_and_never_held(hotel: RunningService) -> None:
    status, bystander = attacked(hotel, one_long_url(hotel, 50))

    assert status == 414
    unharmed(bystander)


def test_a_thousand_slow_sockets_keep_nobody_out(hotel: RunningService) -> None:
    count = 1_000 if FULL else 700  # more than there may be connections
    still_open, bystander = attacked(hotel, slow_sockets(hotel, count, 15))

    assert still_open == 0
    unharmed(bystander)


def test_the_first_pictures_of_a_service_may_come_together(hotel: RunningService) -> None:
    assert asyncio.run(uploads(hotel, picture(300_000), 16)) == {200: 16}


@pytest.mark.slow
def test_many_pictures_at_once_are_read_in_turn(hotel: RunningService) -> None:
    answers, bystander = attacked(hotel, uploads(hotel, picture(), 64 if FULL else 8))

    print(f"\n  uploads: {dict(answers)}")
    assert set(answers) <= {200, 429}
    assert answers[200] > 0
    unharmed(bystander)
