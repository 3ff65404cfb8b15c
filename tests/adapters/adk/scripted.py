"""A model for ADK that says what it was told to say, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types
from pydantic import PrivateAttr

APP = "search_bot"


def text(said: str) -> types.Part:
    return types.Part(text=said)


def call(name: str, **arguments: Any) -> types.Part:
    return types.Part(function_call=types.FunctionCall(name=name, args=arguments))


class ScriptedModel(BaseLlm):
    _script: Iterator[list[types.Part]] = PrivateAttr()
    _asked: list[list[types.Content]] = PrivateAttr(default_factory=list)

    def __init__(self, script: Any) -> None:
        super().__init__(model="scripted")
        self._script = iter(script)

    @property
    def asked(self) -> list[list[types.Content]]:
        return self._asked

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self._asked.append(list(llm_request.contents))
        yield LlmResponse(content=types.Content(role="model", parts=next(self._script)))


def runner_of(script: Any, service: Any, tools: Any = (), plugins: Any = (), memory: Any = None) -> Runner:
    agent = LlmAgent(name="guide", model=ScriptedModel(script), tools=list(tools))
    app = App(name=APP, root_agent=agent, plugins=list(plugins))
    return Runner(app=app, session_service=service, memory_service=memory)


async def say(
    runner: Runner, user: str, session: str, said: str | types.Content, recent: int | None = None
) -> list[Any]:
    """`recent`: how many events of the session the runner reads."""
    content = said if isinstance(said, types.Content) else types.Content(role="user", parts=[text(said)])
    config = RunConfig(get_session_config=None if recent is None else GetSessionConfig(num_recent_events=recent))
    run = runner.run_async(user_id=user, session_id=session, new_message=content, run_config=config)
    return [event async for event in run]


def texts(session: Any) -> list[str]:
    parts = [part for event in session.events if event.content for part in event.content.parts or []]
    return [part.text for part in parts if part.text]
