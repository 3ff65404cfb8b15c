"""A model that says what it was told to say, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from agents import Model, ModelResponse, Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText


def said(text: str) -> ResponseOutputMessage:
    part = ResponseOutputText(annotations=[], text=text, type="output_text", logprobs=[])
    return ResponseOutputMessage(id="m1", content=[part], role="assistant", status="completed", type="message")


def call(name: str, arguments: str, id_: str = "call-1") -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(id="fc1", call_id=id_, name=name, arguments=arguments, type="function_call")


class ScriptedModel(Model):
    def __init__(self, *turns: Any) -> None:
        self._turns = list(turns)
        self.asked: list[list[Any]] = []

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **options: Any) -> ModelResponse:
        self.asked.append(list(input))
        return ModelResponse(output=[self._turns.pop(0)], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        raise NotImplementedError
