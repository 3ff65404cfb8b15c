"""What one writes by hand today, for `bench service`: FastAPI and a session of the OpenAI Agents SDK, called directly
or by the SDK's own runner; and FastAPI alone."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request

from bench.service_apps import REPLY, WINDOW


def fastapi(*_: str) -> FastAPI:
    """The same route with no memory at all: what the framework itself costs."""
    app = FastAPI()

    @app.post("/agent/chat")
    async def chat(request: Request) -> dict[str, Any]:
        return _reply(await request.json())

    return app


def sessions(store: str, redis: str | None = None) -> FastAPI:
    app = FastAPI()
    session = _opener(store, redis)

    @app.post("/agent/chat")
    async def chat(request: Request) -> dict[str, Any]:
        body = await request.json()
        its = session(body["sessionId"])
        await its.add_items([{"role": "user", "content": body["message"]}])
        await its.get_items(WINDOW)
        await its.add_items([{"role": "assistant", "content": REPLY}])
        return _reply(body)

    @app.post("/v1/memory/append")
    async def append(request: Request) -> dict[str, Any]:
        body = await request.json()
        items = [{"role": "user", "content": event["text"]} for event in body["events"]]
        await session(body["scope"]["conversation"]).add_items(items)
        return {"status": "stored"}

    @app.get("/v1/memory/history")
    async def history(conversation: str) -> dict[str, Any]:
        return {"messages": await session(conversation).get_items(WINDOW)}

    return app


def runner(store: str, redis: str | None = None) -> FastAPI:
    """As the SDK's documentation shows it: its runner reads the session, asks the model and keeps the turn."""
    from agents import Agent, RunConfig, Runner, SessionSettings

    app = FastAPI()
    session = _opener(store, redis)
    agent = Agent(name="bench", instructions="You answer questions.", model=_silent_model())
    config = RunConfig(tracing_disabled=True, session_settings=SessionSettings(limit=WINDOW))

    @app.post("/agent/chat")
    async def chat(request: Request) -> dict[str, Any]:
        body = await request.json()
        result = await Runner.run(agent, body["message"], session=session(body["sessionId"]), run_config=config)
        return {"sessionId": body["sessionId"], "language": "en", "reply": result.final_output}

    return app


def _reply(body: dict[str, Any]) -> dict[str, Any]:
    return {"sessionId": body["sessionId"], "language": "en", "reply": REPLY}


def _opener(store: str, redis: str | None) -> Any:
    opened: dict[str, Any] = {}

    def session(id_: str) -> Any:
        if id_ not in opened:
            opened[id_] = _session(id_, store, redis)
        return opened[id_]

    return session


def _session(id_: str, store: str, redis: str | None) -> Any:
    if redis is None:
        from agents import SQLiteSession

        return SQLiteSession(id_, store.removeprefix("sqlite:///"))
    from agents.extensions.memory import RedisSession

    return RedisSession.from_url(id_, url=redis, ttl=3_600)


def _silent_model() -> Any:
    from agents import Model, ModelResponse, Usage
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    class Silent(Model):
        async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
            text = ResponseOutputText(text=REPLY, type="output_text", annotations=[])
            said = ResponseOutputMessage(id="msg", content=[text], role="assistant", status="completed", type="message")
            return ModelResponse([said], Usage(), None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    return Silent()
