"""A chat model that says what it is told to and remembers, word for word, what it was asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from threadkeep.ports.chat import ChatReply, ChatRequest, Said, ToolCall, Usage
from threadkeep.ports.models import Detection, LanguageDetector

Line = str | ChatReply | Exception | Callable[[ChatRequest], ChatReply | str]


class RecordingModel:
    """Lines are said one after the other, the last one again and again."""

    name = "recording"
    generates = True

    def __init__(self, *lines: Line) -> None:
        self._lines: Sequence[Line] = lines or ("Certainly.",)
        self.requests: list[ChatRequest] = []

    async def reply(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        line = self._lines[min(len(self.requests), len(self._lines)) - 1]
        if isinstance(line, Exception):
            raise line
        said = line if isinstance(line, str | ChatReply) else line(request)
        return ChatReply(said, usage=Usage(7, 3)) if isinstance(said, str) else said

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | ChatReply]:
        reply = await self.reply(request)
        for word in reply.text.split(" ") if reply.text else ():
            yield f"{word} "
        yield reply

    async def close(self) -> None: ...

    @property
    def turns(self) -> list[tuple[str, str]]:
        """What the last request showed of the talk."""
        return turns_of(self.requests[-1])


def turns_of(request: ChatRequest) -> list[tuple[str, str]]:
    return [(one.role, one.content) for one in request.messages if isinstance(one, Said)]


def calls(name: str, **arguments: object) -> ChatReply:
    return ChatReply("", (ToolCall("call-1", name, arguments),), Usage(5, 2))


class CountedDetector:
    """Counts the calls of the detector behind it in `calls`."""

    def __init__(self, detector: LanguageDetector) -> None:
        self._detector = detector
        self.calls = 0

    async def detect(self, text: str, allowed: Sequence[str] | None = None) -> Detection:
        self.calls += 1
        return await self._detector.detect(text, allowed)
