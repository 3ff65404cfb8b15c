"""What a verb was given and cannot use is named before anything is begun."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from threadkeep import Memory, Scope, open_memory
from threadkeep.errors import InvalidInput, InvalidScope, TooLarge

ME = Scope(user="u1", conversation="c1")


@pytest.fixture
async def memory() -> AsyncIterator[Memory]:
    async with open_memory("sqlite://") as opened:
        yield opened


@pytest.mark.parametrize("scope", [None, "u1", {"user": "u1"}, ("default", "u1", "c1"), 7], ids=repr)
@pytest.mark.parametrize("verb", ["append", "history", "recall", "conversations", "touch", "session", "erase"])
async def test_a_scope_of_the_wrong_type_is_named_as_such(memory: Memory, verb: str, scope: Any) -> None:
    second: dict[str, Any] = {"append": ([],), "recall": ("x",)}
    with pytest.raises(InvalidScope, match="scope: is a"):
        await getattr(memory, verb)(scope, *second.get(verb, ()))


@pytest.mark.parametrize("verb", ["append", "history", "touch", "session", "rename"])
async def test_a_verb_on_one_conversation_wants_it_named(memory: Memory, verb: str) -> None:
    second: dict[str, Any] = {"append": ([],), "rename": ("x",)}
    with pytest.raises(InvalidScope, match="conversation: is missing"):
        await getattr(memory, verb)(Scope(user="u1"), *second.get(verb, ()))


async def test_a_message_id_that_is_none_is_named_as_such(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="message_id: is not a message id"):
        await memory.erase(ME, message_id="a\x00b")


async def test_a_title_that_is_too_long_names_its_own_limit(memory: Memory) -> None:
    with pytest.raises(TooLarge, match=r"title: is 1,025 bytes; the limit is 1,024 bytes$"):
        await memory.rename(ME, "x" * 1_025)
