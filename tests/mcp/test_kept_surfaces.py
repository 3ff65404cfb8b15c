"""What frameworks keep of a user, on every surface that lists, counts, exports and erases."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import httpx
from langchain_core.messages import AIMessage, HumanMessage

from tests.adapters.verbs import thread, verbs_of
from tests.mcp.conftest import Connect
from tests.mcp.serving import served
from threadkeep.adapters.langgraph import ThreadkeepSaver
from threadkeep.scope import DEFAULT_USER
from threadkeep.settings import Settings

RESOURCE = "threadkeep://conversations/"


async def threadkeep(*arguments: str) -> str:
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "threadkeep.cli", *arguments, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await asyncio.wait_for(program.communicate(), 60)
    assert program.returncode == 0
    return out.decode()


async def test_a_thread_and_a_retrieval_conversation_are_on_every_surface(connect: Connect, url: str) -> None:
    async with ThreadkeepSaver.from_url(url, user=DEFAULT_USER, settings=Settings()) as saver:
        said = [HumanMessage("I like tea"), AIMessage("Noted.")]
        await verbs_of(saver, "async").put(thread("graph"), {"messages": said})
    async with served(Settings(DATABASE_URL=url)) as service, httpx.AsyncClient(trust_env=False) as http:  # type: ignore[call-arg]

        async def got(path: str, **params: str) -> Any:
            answer = await http.get(f"{service}{path}", params=params)
            assert answer.status_code == 200, answer.text
            return answer.json()

        for query in ("What is RAG?", "How does it work?"):
            asked = {"query": query, "mode": "retrieval_only", "topK": 2}
            await http.post(f"{service}/retrieval/query", json=asked, headers={"x-conversation-id": "asked"})
        listed = (await got("/conversations"))["items"]
        assert [(one["conversation"], one["kind"], one["queries"]) for one in listed] == [
            ("asked", "retrieval", 2),
            ("graph", "langgraph", 1),
        ]
        stats = await got("/conversations/asked/stats")
        threads = stats["threads"]
        assert (threads["queries"], threads["contexts"] > 0, threads["documents"] > 0) == (2, True, True)
        assert threads["duration_seconds"] > 0
        place = {"user": DEFAULT_USER, "conversation": "asked"}
        assert await got("/v1/memory/stats", **place) == stats
        assert (await got("/conversations/graph/history"))["messages"] == []
        page = (await http.get(f"{service}/console/")).text
        assert "retrieval · 2 questions" in page
        assert "langgraph · 1 question " in page
        by_command = ("--url", url, "--user", DEFAULT_USER)
        assert json.loads(await threadkeep("stats", *by_command, "--conversation", "asked", "--json")) == stats
        assert "cache hit rate of threads" in await threadkeep("stats", *by_command, "--conversation", "asked")
        exported = await threadkeep("export", *by_command)
        over_http = (await http.get(f"{service}/v1/memory/export", params={"user": DEFAULT_USER})).text
        assert over_http == exported
        records = {one["conversation"]: one for one in map(json.loads, exported.splitlines())}
        assert [one["content"] for one in records["graph"]["thread"]["state"]["messages"]] == ["I like tea", "Noted."]
        assert records["asked"]["thread"]["state"]["queries"][0]["query"] == "What is RAG?"
        assert await threadkeep("export", *by_command, "--format", "memory") == ""

        async with connect("--url", url) as client:
            resources = {one.name: one for one in (await client.list_resources()).resources}
            assert str(resources["graph"].description).startswith("langgraph, 1 questions, last on ")
            read = (await client.read_resource(f"{RESOURCE}graph")).contents[0]
            shown = json.loads(getattr(read, "text", ""))
            assert [one["content"] for one in shown["thread"]["state"]["messages"]] == ["I like tea", "Noted."]
            read = (await client.read_resource(f"{RESOURCE}asked")).contents[0]
            assert len(json.loads(getattr(read, "text", ""))["retrieval"]["queries"]) == 2

        for name in ("graph", "asked"):
            assert (await http.delete(f"{service}/conversations/{name}")).status_code == 200
            assert (await http.get(f"{service}/conversations/{name}/stats")).status_code == 404
        assert (await got("/conversations"))["items"] == []
        assert (await got("/v1/memory/stats", user=DEFAULT_USER))["threads"]["count"] == 0
        assert (await http.get(f"{service}/v1/memory/export", params={"user": DEFAULT_USER})).text == ""


async def test_one_callers_threads_are_nobody_elses(connect: Connect, url: str) -> None:
    async with ThreadkeepSaver.from_url(url, user="ann", settings=Settings()) as saver:
        await verbs_of(saver, "async").put(thread("graph"), {"messages": [HumanMessage("I like tea")]})
    for user, count in (("ann", 1), ("Ann", 0), (DEFAULT_USER, 0)):
        async with connect("--url", url, "--user", user) as client:
            assert len((await client.list_resources()).resources) == count
