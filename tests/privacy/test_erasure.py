"""Erased means gone from every file, and only what was to be erased."""

import asyncio
import json
import random
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from threadkeep import Memory, ModelResponse, Scope, Settings, UserMessage, open_memory
from threadkeep.compose.knowledge import open_knowledge
from threadkeep.ports.knowledge import Access
from threadkeep.testing.knowledge_contract import a_document
from threadkeep.testing.traces import Traces

USERS = [f"user{number}" for number in range(100)]


def marks_of(user: str) -> list[str]:
    return [f"zq{user}mark{number}zq" for number in range(12)]


async def let_everyone_talk(memory: Memory, chance: random.Random) -> None:
    """Users take turns, short and long, so that their texts share pages of the file."""
    words = [f"{chance.randrange(16**7):07x}" for _ in range(500)]
    for mark in range(12):
        talking = chance.sample(USERS, len(USERS))
        await asyncio.gather(*(one_turn(memory, user, marks_of(user)[mark], chance, words) for user in talking))


async def one_turn(memory: Memory, user: str, mark: str, chance: random.Random, words: list[str]) -> None:
    talk = " ".join(chance.choices(words, k=chance.choice([1, 5, 40, 200])))
    scope = Scope(tenant="shop", user=user, conversation=f"c{chance.randrange(3)}")
    await memory.append(scope, [UserMessage(f"{talk} {mark}"), ModelResponse(f"{mark} {talk}")], key=mark)


async def exported(memory: Memory, user: str) -> str:
    return "\n".join([json.dumps(r.as_dict()) async for r in memory.export(Scope(tenant="shop", user=user))])


async def test_erasing_one_of_a_hundred_users_leaves_none_of_its_bytes_and_all_of_the_others(tmp_path: Path) -> None:
    async with open_memory(f"sqlite:///{tmp_path}/memory.db") as memory:
        await let_everyone_talk(memory, random.Random(1))
        before = {user: await exported(memory, user) for user in USERS}
        assert len(Traces(marks_of("user42")).in_folder(tmp_path)) >= 12  # the scan sees it while it is there
        proof = await memory.erase(Scope(tenant="shop", user="user42"))
        assert proof.complete
        assert proof.stores["archive"].removed == 24
        assert Traces(marks_of("user42")).in_folder(tmp_path) == set()
        after = {user: await exported(memory, user) for user in USERS}
        assert after.pop("user42") == ""
        del before["user42"]
        assert after == before
    assert Traces(marks_of("user42")).in_folder(tmp_path) == set()


@pytest.mark.parametrize("seed", [2, 3])
async def test_erasing_again_and_again_leaves_no_copies_in_the_slack_of_pages(tmp_path: Path, seed: int) -> None:
    """Rows move between pages as their neighbours go; a copy may stay behind where they were."""
    chance = random.Random(seed)
    async with open_memory(f"sqlite:///{tmp_path}/memory.db") as memory:
        await let_everyone_talk(memory, chance)
        for user in chance.sample(USERS, 25):
            assert (await memory.erase(Scope(tenant="shop", user=user))).complete
            assert not any(f"zq{user}mark".encode() in data for data in bytes_of(tmp_path)), user


def bytes_of(folder: Path) -> list[bytes]:
    """The files as they are: copies of rows need no decoding, and there are many scans."""
    return [path.read_bytes() for path in folder.iterdir()]


async def test_erasing_one_message_leaves_none_of_its_bytes_and_its_neighbours_in_place(tmp_path: Path) -> None:
    scope = Scope(user="u1", conversation="c1")
    async with open_memory(f"sqlite:///{tmp_path}/memory.db") as memory:
        await memory.append(scope, [UserMessage(f"text zqm{n}zq here", id=f"m{n}") for n in range(9)])
        proof = await memory.erase(scope, message_id="m4")
        assert proof.complete
        assert proof.stores["archive"].removed == 1
        assert Traces(["zqm4zq"]).in_folder(tmp_path) == set()
        left = await memory.history(scope)
        assert [message.seq for message in left.messages] == [1, 2, 3, 4, 6, 7, 8, 9]
        again = await memory.append(scope, [UserMessage("text zqm4zq here", id="m4")])
        assert again.refused == {"erased": 1}
        assert Traces(["zqm4zq"]).in_folder(tmp_path) == set()


async def test_a_title_and_an_intent_go_with_their_conversation(tmp_path: Path) -> None:
    scope = Scope(user="u1", conversation="c1")
    async with open_memory(f"sqlite:///{tmp_path}/memory.db") as memory:
        await memory.append(scope, [UserMessage("hello")])
        await memory.rename(scope, "zqtitlezq")
        await memory.set_intent(scope, "zqintentzq")
        assert len(Traces(["zqtitlezq", "zqintentzq"]).in_folder(tmp_path)) >= 2
        assert (await memory.erase(scope)).complete
        assert Traces(["zqtitlezq", "zqintentzq"]).in_folder(tmp_path) == set()


@pytest.mark.parametrize("also_open", [True, False], ids=["knowledge-open", "knowledge-closed"])
async def test_a_users_documents_and_their_vectors_leave_no_bytes_behind(tmp_path: Path, also_open: bool) -> None:
    url, owner = f"sqlite:///{tmp_path}/memory.db", "zqannzq"
    marks = [f"zqdocument{number}zq" for number in range(6)]
    async with AsyncExitStack() as stack:
        knowledge = await stack.enter_async_context(open_knowledge(url, Settings()))
        for number, mark in enumerate(marks):
            level = "private" if number % 2 else "shared"
            document = a_document(f"{mark}.md", f"{mark} words " * 90, access=level, owner=owner, readers=("bob",))
            await knowledge.store.put("shop", document)
        await knowledge.store.put("shop", a_document("manual.md", "for everybody", owner=owner))
        await knowledge.indexer.rebuild("shop")
        assert (await knowledge.ask(Access("shop", owner), marks[0])).hits
        if not also_open:
            await stack.aclose()
        async with open_memory(url) as memory:
            await memory.append(Scope("shop", owner, "c1"), [UserMessage("hello")])
            assert len(Traces([*marks, owner]).in_folder(tmp_path)) > len(marks)
            proof = await memory.erase(Scope("shop", owner))
            assert proof.complete
            assert proof.stores["knowledge"].removed == len(marks) + 1
            assert Traces([*marks, owner]).in_folder(tmp_path) == set()
        if also_open:
            assert [one.document_id for one in await knowledge.store.documents("shop")] == ["manual.md"]
            assert (await knowledge.ask(Access("shop", owner), f"{marks[0]} everybody")).hits[
                0
            ].content == "for everybody"
    assert Traces([*marks, owner]).in_folder(tmp_path) == set()
