"""What runs beside an application leaves the numbers that the application draws alone."""

import random
import time
from pathlib import Path

from threadkeep import Scope, SyncMemory, UserMessage


def test_a_memory_that_is_open_draws_no_numbers_from_the_applications_generator(tmp_path: Path) -> None:
    random.seed(7)
    before = random.getstate()
    with SyncMemory(f"sqlite:///{tmp_path}/memory.db") as memory:
        memory.append(Scope(user="u", conversation="c"), [UserMessage("hello there")])
        memory.flushed()
        time.sleep(0.1)  # the worker that embeds waits for more by now
        assert random.getstate() == before
