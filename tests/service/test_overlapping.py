"""A talk that changes while an answer is being made: other messages come in, or all of it is erased."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from tests.agent.recording import RecordingModel
from tests.service.conftest import client_of
from tests.service.talking import append, is_problem
from tests.service.test_agent_on_servers import settings_of
from threadkeep import Memory, Scope, Settings, open_memory
from threadkeep.compat.agent import answered_by
from threadkeep.compose.assistant import open_assistant
from threadkeep.errors import ModelUnavailable
from threadkeep.http.answering import Answering
from threadkeep.http.app import create_app
from threadkeep.http.streams import Streams
from threadkeep.model import History
from threadkeep.ports.chat import Asked, ChatReply, ChatRequest, Said

HOTEL = Path(__file__).parents[2] / "examples" / "hotel_concierge"
ASKED = "I have a peanut allergy, is the breakfast safe for me?"


class HeldUp(RecordingModel):
    """Answers with what it was asked last, once it may."""

    def __init__(self, words: str = "You asked:") -> None:
        super().__init__(lambda request: f"{words} {request.messages[-1].content}")  # pyright: ignore
        self.may_go_on = asyncio.Event()
        self.fails = False

    async def reply(self, request: ChatRequest) -> ChatReply:
        reply = await super().reply(request)
        await self.may_go_on.wait()
        if self.fails:
            raise ModelUnavailable("away")
        return reply

    async def asked(self, times: int = 1) -> None:
        async with asyncio.timeout(10):
            while len(self.requests) < times:
                await asyncio.sleep(0.005)

    async def chat(
        self, user_message: str, jwt: Any = None, language_code: Any = None, history: Any = None
    ) -> tuple[str, None]:
        """As an application's own agent."""
        earlier = [Said(one["role"], one["content"]) for one in history]
        return (await self.reply(ChatRequest("", [*earlier, Said("user", user_message)]))).text, None


@dataclass
class Talk:
    client: httpx.AsyncClient
    model: HeldUp
    id: str

    def say(self, text: str, **headers: str) -> asyncio.Task[httpx.Response]:
        path = f"/conversations/{self.id}/messages"
        return asyncio.create_task(
            self.client.post(path, params={"wait": True}, json={"content": text}, headers=headers)
        )

    def chat(self, text: str, **headers: str) -> asyncio.Task[httpx.Response]:
        body = {"sessionId": self.id, "message": text}
        return asyncio.create_task(self.client.post("/agent/chat", json=body, headers=headers))

    async def history(self) -> dict[str, Any]:
        return (await self.client.get(f"/conversations/{self.id}/history")).json()

    async def contents(self) -> list[str]:
        return [one["content"] for one in (await self.history()).get("messages", [])]

    async def has(self, messages: int) -> None:
        async with asyncio.timeout(10):
            while len(await self.contents()) < messages:
                await asyncio.sleep(0.005)


@asynccontextmanager
async def held_up_talk(settings: Settings, who: str = "assistant", words: str = "You asked:") -> AsyncGenerator[Talk]:
    model = HeldUp(words)

    def opener(memory: Memory) -> Any:
        if who == "agent":
            return answered_by(model)(memory)
        return open_assistant(memory, settings, HOTEL, model=model)

    async with client_of(create_app(settings, responder_opener=opener)) as client:
        begun = await client.post("/conversations", json={"language": "en"})
        try:
            yield Talk(client, model, begun.json()["conversation_id"])
        finally:
            model.may_go_on.set()


def embedded(database: Path) -> Settings:
    return Settings(DATABASE_URL=f"sqlite:///{database}").model_copy(update={"embedder": "none"})


@pytest.fixture(params=["assistant", "agent", "on_postgres", "on_mariadb"])
async def talk(database: Path, request: pytest.FixtureRequest) -> AsyncIterator[Talk]:
    """With an assistant's graph, embedded and on servers with Redis, and with an application's own agent."""
    if request.param in ("assistant", "agent"):
        opened = held_up_talk(embedded(database), request.param)
    else:
        opened = held_up_talk(settings_of(request.getfixturevalue(request.param)))
    async with opened as talk:
        yield talk


async def erase_everything(talk: Talk, what: str) -> None:
    if what == "conversation":
        proof = await talk.client.delete(f"/conversations/{talk.id}")
    else:
        proof = await talk.client.post("/v1/memory/erase", json={"scope": {"user": "default"}})
    assert proof.json()["complete"] is True


@pytest.mark.parametrize("what", ["conversation", "user"])
async def test_an_answer_does_not_bring_back_what_was_erased_while_it_was_made(talk: Talk, what: str) -> None:
    answering = talk.say(ASKED)
    await talk.model.asked()
    await erase_everything(talk, what)
    talk.model.may_go_on.set()
    answer = await answering

    assert answer.status_code == 200
    assert answer.json()["answer"]["message_id"] is None
    assert is_problem(await talk.client.get(f"/conversations/{talk.id}/history"), 404, "not_found")
    assert (await talk.client.get("/conversations")).json()["items"] == []


async def test_nor_does_one_in_a_session(talk: Talk) -> None:
    session = "3f0c9d4e-8d1b-4c57-9a51-0d6c2f3b7e10"
    bodies = [{"sessionId": session, "message": text} for text in ("When is dinner served?", ASKED)]
    first = asyncio.create_task(talk.client.post("/agent/chat", json=bodies[0]))
    await talk.model.asked()
    second = asyncio.create_task(talk.client.post("/agent/chat", json=bodies[1]))
    session_talk = replace(talk, id=session)
    await session_talk.has(messages=2)
    await erase_everything(session_talk, "conversation")
    talk.model.may_go_on.set()

    assert [(await first).status_code, (await second).status_code] == [200, 410]
    assert await session_talk.contents() == []
    assert len(talk.model.requests) == 1


async def test_a_question_that_was_erased_while_it_waited_is_put_to_nobody(talk: Talk) -> None:
    first = talk.say("Good evening, when is dinner served?")
    await talk.model.asked()
    second = talk.say(ASKED)
    await talk.has(messages=len(await talk.contents()) + 1)
    await erase_everything(talk, "conversation")
    talk.model.may_go_on.set()

    assert (await first).status_code == 200
    assert is_problem(await second, 410, "scope_erased")
    assert len(talk.model.requests) == 1
    assert is_problem(await talk.client.get(f"/conversations/{talk.id}/history"), 404, "not_found")


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "k"}])
async def test_nor_is_one_that_was_erased_by_itself(talk: Talk, headers: dict[str, str]) -> None:
    first = talk.say("Good evening, when is dinner served?")
    await talk.model.asked()
    known = await talk.contents()
    second, third = talk.say(ASKED, **headers), talk.say("And when is breakfast?")
    await talk.has(messages=len(known) + 2)
    (message,) = [one["id"] for one in (await talk.history())["messages"] if one["content"] == ASKED]
    proof = await talk.client.delete(f"/conversations/{talk.id}/messages/{message}")
    assert proof.json()["complete"] is True
    talk.model.may_go_on.set()

    assert [(await one).status_code for one in (first, third)] == [200, 200]
    assert is_problem(await second, 410, "scope_erased")
    assert len(talk.model.requests) == 2
    assert "peanut" not in str(await talk.contents())
    assert (await talk.history())["unanswered"] == []


async def overlapping(talk: Talk, *texts: str) -> list[asyncio.Task[httpx.Response]]:
    """Each is kept before the next one is sent, and none is answered yet."""
    saying: list[asyncio.Task[httpx.Response]] = []
    for text in texts:
        known = len(await talk.contents())
        saying.append(talk.say(text, **{"Idempotency-Key": text}))
        await talk.has(messages=known + 1)
    return saying


async def test_messages_that_wait_together_are_answered_one_by_one_and_each_once(talk: Talk) -> None:
    saying = await overlapping(talk, "When is breakfast?", "And when is dinner?", "And the sauna?")
    talk.model.may_go_on.set()
    answers = [(await one).json()["answer"] for one in saying]
    again = [await talk.say(text, **{"Idempotency-Key": text}) for text in ("When is breakfast?", "And the sauna?")]

    assert [one["content"].splitlines()[0] for one in answers] == [
        "You asked: When is breakfast?",
        "You asked: And when is dinner?",
        "You asked: And the sauna?",
    ]
    assert [one.json()["answer"]["message_id"] for one in again] == [answers[0]["message_id"], answers[2]["message_id"]]
    assert len(talk.model.requests) == 3
    assert (await talk.history())["unanswered"] == []


@pytest.mark.parametrize("who", ["assistant", "agent"])
async def test_a_message_that_reaches_two_processes_by_its_key_has_one_answer(database: Path, who: str) -> None:
    settings = embedded(database)
    async with held_up_talk(settings, who) as one, held_up_talk(settings, who, "Yes:") as other:
        other.id = one.id
        first = one.say("When is breakfast?", **{"Idempotency-Key": "k"})
        await one.model.asked()
        again = other.say("When is breakfast?", **{"Idempotency-Key": "k"})
        await other.model.asked()
        other.model.may_go_on.set()
        answered = (await again).json()["answer"]
        one.model.may_go_on.set()

        assert answered["content"].startswith("Yes: When is breakfast?")
        assert (await first).json()["answer"] == answered
        assert (await one.contents())[-2:] == ["When is breakfast?", answered["content"]]
        assert (await one.history())["unanswered"] == []


@pytest.fixture(params=["on_postgres", "on_mariadb"])
async def two_processes(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Talk, Talk]]:
    """Of one talk, that share a Redis."""
    settings = settings_of(request.getfixturevalue(request.param))
    async with held_up_talk(settings) as one, held_up_talk(settings, words="Yes:") as other:
        other.id = one.id
        yield one, other


async def test_and_is_put_to_one_model_where_they_share_a_redis(two_processes: tuple[Talk, Talk]) -> None:
    one, other = two_processes
    first = one.say("When is breakfast?", **{"Idempotency-Key": "k"})
    await one.model.asked()
    other.model.may_go_on.set()
    again = other.say("When is breakfast?", **{"Idempotency-Key": "k"})
    await asyncio.sleep(0.2)  # were it not to wait, it would have asked by now
    one.model.may_go_on.set()
    answered = (await first).json()["answer"]

    assert answered["content"].startswith("You asked: When is breakfast?")
    assert (await again).json()["answer"] == answered
    assert other.model.requests == []
    assert (await one.history())["unanswered"] == []


async def test_another_process_answers_what_the_first_could_not(two_processes: tuple[Talk, Talk]) -> None:
    one, other = two_processes
    one.model.fails = True
    first = one.say("When is breakfast?", **{"Idempotency-Key": "k"})
    await one.model.asked()
    other.model.may_go_on.set()
    again = other.say("When is breakfast?", **{"Idempotency-Key": "k"})
    one.model.may_go_on.set()

    assert is_problem(await first, 502, "model_unavailable")
    assert (await again).json()["answer"]["content"].startswith("Yes: When is breakfast?")


@pytest.mark.parametrize("what", ["conversation", "user"])
async def test_what_was_erased_while_another_process_answered_it_is_put_to_nobody(
    two_processes: tuple[Talk, Talk], what: str
) -> None:
    one, other = (replace(talk, id="3f0c9d4e-8d1b-4c57-9a51-0d6c2f3b7e10") for talk in two_processes)
    first = one.chat(ASKED, **{"Idempotency-Key": "k"})
    await one.model.asked()
    other.model.may_go_on.set()
    again = other.chat(ASKED, **{"Idempotency-Key": "k"})
    await asyncio.sleep(0.2)  # it waits for the first one by now
    await erase_everything(one, what)
    one.model.may_go_on.set()

    assert [(await first).status_code, (await again).status_code] == [200, 410]
    assert other.model.requests == []
    assert await other.contents() == []


async def test_nor_is_a_message_that_was_erased_by_itself_there(two_processes: tuple[Talk, Talk]) -> None:
    one, other = two_processes
    one.model.fails = True
    first = one.say(ASKED, **{"Idempotency-Key": "k"})
    await one.model.asked()
    other.model.may_go_on.set()
    again = other.say(ASKED, **{"Idempotency-Key": "k"})
    await asyncio.sleep(0.2)  # it waits for the first one by now
    message = (await one.history())["messages"][-1]["id"]
    await one.client.delete(f"/conversations/{one.id}/messages/{message}")
    one.model.may_go_on.set()

    assert is_problem(await first, 502, "model_unavailable")
    assert is_problem(await again, 410, "scope_erased")
    assert other.model.requests == []


async def test_those_who_begin_a_talk_by_the_same_key_at_once_are_greeted_once(talk: Talk) -> None:
    begin = [talk.client.post("/conversations", headers={"Idempotency-Key": "k"}) for _ in range(4)]
    begun = [one.json() for one in await asyncio.gather(*begin)]
    assert [one for one in begun if one != begun[0]] == []
    talk.id = begun[0]["conversation_id"]
    known = [begun[0]["greeting"]["content"]] if begun[0]["greeting"] else []
    assert await talk.contents() == known
    await talk.client.delete(f"/conversations/{talk.id}")
    anew = (await talk.client.post("/conversations", json={"conversation_id": talk.id})).json()
    assert anew["conversation_id"] == talk.id
    assert await talk.contents() == known


@pytest.mark.parametrize("message", ["ok?", "When is breakfast served here?"])
async def test_a_replay_names_the_same_language(database: Path, message: str) -> None:
    body = {"sessionId": "3f0c9d4e-8d1b-4c57-9a51-0d6c2f3b7e10", "message": message}
    async with held_up_talk(embedded(database)) as talk:
        talk.model.may_go_on.set()
        first, again = [
            (await talk.client.post("/agent/chat", json=body, headers={"Idempotency-Key": "k"})).json()
            for _ in range(2)
        ]

    assert first == again


async def test_words_of_the_application_are_no_answer_to_a_message_that_waits(talk: Talk) -> None:
    """An answer that names no message is one to the message before it, but this one is still to be put to anybody."""
    first, second = await overlapping(talk, "When is breakfast?", "And when is dinner?")
    taxi = {"kind": "ModelResponse", "text": "Your taxi is here."}
    await append(talk.client, taxi, scope={"user": "default", "conversation": talk.id})
    assert (await talk.contents())[-1] == "Your taxi is here."
    talk.model.may_go_on.set()

    assert (await first).json()["answer"]["content"].startswith("You asked: When is breakfast?")
    assert (await second).json()["answer"]["content"].startswith("You asked: And when is dinner?")


async def test_who_is_asked_sees_what_was_said_before_the_question_and_not_what_came_after(talk: Talk) -> None:
    saying = await overlapping(talk, "When is breakfast?", "And when is dinner?")
    talk.model.may_go_on.set()
    await asyncio.gather(*saying)

    first, second = [
        [one.content.splitlines()[0] for one in request.messages if isinstance(one, Said)]
        for request in talk.model.requests
    ]
    assert first[-1:] == ["When is breakfast?"]
    assert "And when is dinner?" not in first
    assert second[-3:] == ["When is breakfast?", "You asked: When is breakfast?", "And when is dinner?"]


class SlowToTell:
    """A memory that tells the talk of the first who asks it only when it may."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.asked = 0
        self.may_tell = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)

    async def history(self, *given: Any) -> History:
        self.asked += 1
        if self.asked == 1:
            await self.may_tell.wait()
        return await self._memory.history(*given)


async def test_messages_are_answered_in_their_order_however_long_a_store_takes(database: Path) -> None:
    agent = HeldUp()
    async with open_memory(settings=embedded(database)) as memory, answered_by(agent)(memory) as responder:
        slow = SlowToTell(memory)
        answering = Answering(cast("Memory", slow), responder, Streams(memory))
        me = Scope("shop", "u42", "c1")
        begun = [answering.begin(await answering.take(Asked(me, text), None)) for text in ("one", "two", "three")]
        await agent.asked()
        while slow.asked < 2:
            await asyncio.sleep(0)
        agent.may_go_on.set()
        await begun[0]
        slow.may_tell.set()
        await asyncio.gather(*begun)

    assert [request.messages[-1].content for request in agent.requests] == ["one", "two", "three"]  # pyright: ignore
