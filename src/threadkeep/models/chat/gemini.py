"""Gemini through its own SDK: messages are `Content` of `user` and `model`, the instruction is `system_instruction`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib import import_module
from typing import Any

from threadkeep.errors import MissingExtra, ModelError, ModelUnavailable
from threadkeep.models.chat import REFUSED, Patience
from threadkeep.ports.chat import CalledTools, ChatMessage, ChatReply, ChatRequest, Said, ToolCall, Usage


class GeminiModel:
    """`client` is a `google.genai.Client`, or whatever else has its `aio.models.generate_content`."""

    generates = True

    def __init__(self, client: Any, name: str, patience: Patience | None = None) -> None:
        self.name = f"google_genai:{name}"
        self._client = client
        self._model = name
        self._patience = patience or Patience()
        self._types = _sdk("google.genai.types")

    async def reply(self, request: ChatRequest) -> ChatReply:
        return await self._patience.answer(self.name, lambda: self._generated(request))

    async def _generated(self, request: ChatRequest) -> ChatReply:
        try:
            response = await self._client.aio.models.generate_content(
                model=self._model, contents=self.contents(request), config=self._config(request)
            )
        except Exception as error:  # the SDK's errors quote what was sent
            text = f"{self.name}: failed ({type(error).__name__})"
            refused = getattr(error, "code", None) in REFUSED
            raise (ModelError(text) if refused else ModelUnavailable(text)) from None
        return _reply(response)

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | ChatReply]:
        """In one piece."""
        reply = await self.reply(request)
        if reply.text:
            yield reply.text
        yield reply

    async def close(self) -> None:
        """Do nothing: the caller that opened the client closes it."""

    def contents(self, request: ChatRequest) -> list[Any]:
        return [self._content(one) for one in request.messages]

    def _content(self, message: ChatMessage) -> Any:
        types = self._types
        if isinstance(message, Said):
            role = "user" if message.role == "user" else "model"
            return types.Content(role=role, parts=[types.Part(text=message.content)])
        if isinstance(message, CalledTools):
            if message.native is not None:
                return message.native
            calls = [types.FunctionCall(name=call.name, args=dict(call.arguments)) for call in message.calls]
            return types.Content(role="model", parts=[types.Part(function_call=call) for call in calls])
        answer = types.FunctionResponse(name=message.name, response={"result": message.content})
        return types.Content(role="user", parts=[types.Part(function_response=answer)])

    def _config(self, request: ChatRequest) -> Any:
        types = self._types
        declared = [
            types.FunctionDeclaration(
                name=tool.name, description=tool.description, parameters_json_schema=dict(tool.parameters)
            )
            for tool in request.tools
        ]
        return types.GenerateContentConfig(
            system_instruction=request.system or None,
            tools=[types.Tool(function_declarations=declared)] if declared else None,
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )


def _reply(response: Any) -> ChatReply:
    candidates: Any = response.candidates or []
    content: Any = candidates[0].content if candidates else None
    parts: list[Any] = list(content.parts or []) if content is not None else []
    text = "".join(part.text for part in parts if part.text and not part.thought)
    called: list[Any] = [part.function_call for part in parts if part.function_call]
    calls = tuple(ToolCall(call.id or f"call_{n}", call.name, dict(call.args or {})) for n, call in enumerate(called))
    used: Any = response.usage_metadata
    usage = Usage(used.prompt_token_count or 0, used.candidates_token_count or 0) if used else Usage()
    return ChatReply(text, calls, usage, content)


def gemini_client() -> Any:
    """With the key that the environment holds, and the address in `GOOGLE_GEMINI_BASE_URL` where that is set."""
    return _sdk("google.genai").Client()


def _sdk(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise MissingExtra("gemini", "the Gemini client") from None
