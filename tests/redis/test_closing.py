"""A conversation that is closed while its last messages are on their way to the archive."""

from pathlib import Path
from typing import Any

import pytest

from threadkeep import ModelResponse, UserMessage, open_memory
from threadkeep.testing.drafts import new_scope


@pytest.mark.parametrize("archive", ["sqlite", "postgres_server", "mariadb_server"])
async def test_what_was_said_before_it_was_closed_does_not_open_it_again(
    archive: str, redis_server: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path}/a.db" if archive == "sqlite" else request.getfixturevalue(archive).url
    scope = new_scope()
    async with open_memory(url, redis=redis_server.url, worker=False) as memory:
        await memory.append(scope, [UserMessage("that is all"), ModelResponse("goodbye")])
        await memory.close_conversation(scope)

        async def arrived() -> str:
            async with open_memory(url, redis=redis_server.url) as other:
                await other.flushed()
            (talk,) = await memory.conversations(scope.whole_user)
            return talk.status

        assert await arrived() == "closed"
        await memory.append(scope, [UserMessage("one thing more")])
        assert await arrived() == "active"
        assert [one.seq for one in (await memory.history(scope)).messages] == [1, 2, 3]
