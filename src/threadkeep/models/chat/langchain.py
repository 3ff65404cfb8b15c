"""Any chat model that LangChain knows, by `init_chat_model`. LangSmith's tracing is off for what is said here."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from threadkeep.errors import ModelError, ModelTimeout, ModelUnavailable
from threadkeep.models.chat import REFUSED, Patience
from threadkeep.ports.chat import CalledTools, ChatMessage, ChatReply, ChatRequest, Said, ToolCall, Usage
from threadkeep.recall.context import visible

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage


class LangChainModel:
    generates = True

    def __init__(self, model: BaseChatModel, name: str, patience: Patience | None = None) -> None:
        self.name = name
        self._model = model
        self._patience = patience or Patience()

    async def reply(self, request: ChatRequest) -> ChatReply:
        return await self._patience.answer(self.name, lambda: self._invoked(request))

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | ChatReply]:
        """Yield pieces of text, then the reply. An attempt is not repeated once it has yielded text."""
        ends = asyncio.get_running_loop().time() + self._patience.seconds
        for attempt in range(self._patience.retries + 1):
            said = False
            try:
                async for piece in self._streamed(request, ends):
                    said = True
                    yield piece
                return
            except ModelUnavailable:
                if said or attempt == self._patience.retries:
                    raise
            await asyncio.sleep(self._patience.first_pause * 2**attempt)

    async def close(self) -> None:
        """LangChain's clients close themselves."""

    async def _invoked(self, request: ChatRequest) -> ChatReply:
        try:
            with untraced():
                return _reply(await self._bound(request).ainvoke(native_messages(request)))
        except Exception as error:  # each vendor has errors of its own, and some quote what was sent
            raise self._failure(error) from None

    async def _streamed(self, request: ChatRequest, ends: float) -> AsyncIterator[str | ChatReply]:
        whole: Any = None
        try:
            async with asyncio.timeout_at(ends):
                pieces = self._bound(request).astream(native_messages(request))
                while True:
                    with untraced():
                        chunk = await anext(pieces, None)
                    if chunk is None:
                        break
                    whole = chunk if whole is None else whole + chunk
                    if text := _text(chunk):
                        yield text
        except GeneratorExit:
            raise
        except TimeoutError:
            raise ModelTimeout(f"{self.name} took longer than {self._patience.seconds:g} seconds") from None
        except Exception as error:
            raise self._failure(error) from None
        yield _reply(whole) if whole is not None else ChatReply("")

    def _bound(self, request: ChatRequest) -> Any:
        if not request.tools:
            return self._model
        tools = [
            {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
            for t in request.tools
        ]
        return self._model.bind_tools(tools)

    def _failure(self, error: Exception) -> ModelError:
        if isinstance(error, ModelError):
            return error
        if isinstance(error, TimeoutError) or "timeout" in type(error).__name__.lower():
            return ModelTimeout(f"{self.name} took too long")
        status = _status(error)
        text = f"{self.name}: failed ({type(error).__name__}{f', status {status}' if status else ''})"
        return ModelError(text) if status in REFUSED else ModelUnavailable(text)


def native_messages(request: ChatRequest) -> list[BaseMessage]:
    """The system instruction, then the conversation in the model's own roles, the current message last.

    What is attached to it comes in LangChain's own form of media, which each provider's package turns into the
    provider's.
    """
    from langchain_core.messages import HumanMessage, SystemMessage

    system: list[BaseMessage] = [SystemMessage(visible(request.system))] if request.system else []
    messages = system + [_native(one) for one in request.messages]
    if request.attached:
        text = messages[-1].text
        blocks: list[Any] = [{"type": "text", "text": text}] if text else []
        for one in request.attached:
            kind, data = one.mime.partition("/")[0], base64.b64encode(one.data).decode("ascii")
            blocks.append({"type": kind, "base64": data, "mime_type": one.mime})
        messages[-1] = HumanMessage(blocks)
    return messages


def _native(message: ChatMessage) -> BaseMessage:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    if isinstance(message, Said):
        content = visible(message.content)
        return HumanMessage(content) if message.role == "user" else AIMessage(content)
    if isinstance(message, CalledTools):
        if isinstance(message.native, AIMessage):
            return message.native  # some models sign their calls and want the signature back
        calls: list[Any] = [{"id": call.id, "name": call.name, "args": dict(call.arguments)} for call in message.calls]
        return AIMessage(message.text, tool_calls=calls)
    return ToolMessage(visible(message.content), tool_call_id=message.call_id, name=message.name)


def _reply(message: Any) -> ChatReply:
    from langchain_core.messages import AIMessage, AIMessageChunk, message_chunk_to_message

    native = message_chunk_to_message(message) if isinstance(message, AIMessageChunk) else message
    calls = tuple(
        ToolCall(str(call.get("id") or f"call_{place}"), call["name"], call.get("args") or {})
        for place, call in enumerate(getattr(native, "tool_calls", None) or ())
    )
    used: Any = getattr(native, "usage_metadata", None) or {}
    usage = Usage(int(used.get("input_tokens") or 0), int(used.get("output_tokens") or 0))
    return ChatReply(_text(native), calls, usage, native if isinstance(native, AIMessage) else None)


def _text(message: Any) -> str:
    """Of a message that may come in blocks: its text, and not what the model thought."""
    content: str | list[Any] = message.content
    if isinstance(content, str):
        return content
    return "".join(
        block if isinstance(block, str) else str(block.get("text") or "")
        for block in content
        if isinstance(block, str) or block.get("type") == "text"
    )


def _status(error: BaseException) -> int | None:
    """The HTTP status, also where LangChain's package raised an error of its own around the vendor's, as for Gemini."""
    cause: BaseException | None = error
    while cause is not None:
        for holder in (cause, getattr(cause, "response", None)):
            for name in ("status_code", "code"):
                if isinstance(value := getattr(holder, name, None), int):
                    return value
        cause = cause.__cause__
    return None


@contextmanager
def untraced() -> Generator[None]:
    """LangChain and LangGraph send whole runs to LangSmith where `LANGSMITH_TRACING` is set; not from in here."""
    if find_spec("langsmith") is None:
        yield
        return
    from langsmith.run_helpers import tracing_context  # pyright: ignore[reportUnknownVariableType]

    with tracing_context(enabled=False):
        yield
