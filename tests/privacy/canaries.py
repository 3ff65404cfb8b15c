"""A thousand marked strings, each on a path that must not lead anywhere."""

from collections.abc import Callable
from dataclasses import dataclass

from threadkeep import DebugTrace, Event, ModelResponse, SystemNote, Thought, ToolRequest, ToolResult, UserMessage


@dataclass(frozen=True)
class Canary:
    needle: str
    event: Event


def _mark(path: str, number: int) -> str:
    return f"canary{path}{number:04d}quill"


def _card(number: int) -> str:
    """A valid number of its own: fifteen digits and the Luhn check digit."""
    body = f"4556{number:011d}"
    doubled = [int(digit) * (2 if place % 2 == 0 else 1) for place, digit in enumerate(body)]
    return body + str(-sum(digit - 9 if digit > 9 else digit for digit in doubled) % 10)


REFUSED: dict[str, tuple[int, Callable[[str], Event]]] = {
    "toolarguments": (150, lambda c: ToolRequest("search", {"query": c, "nested": [{"deep": c}]})),
    "toolresult": (150, lambda c: ToolResult("search", {"rows": [c, {"text": f"about {c}"}]})),
    "thought": (100, Thought),
    "debug": (100, DebugTrace),
    "system": (50, SystemNote),
    "rawmedia": (100, lambda c: UserMessage(modality="image", summary="a photo", data=c.encode() * 20)),
    "transcript": (50, lambda c: UserMessage(c, modality="voice", summary="asks about breakfast")),
    "nosummary": (50, lambda c: UserMessage(c, modality="voice", data=c.encode())),
    "meta": (50, lambda c: UserMessage(modality="image", summary="a map", meta={"mime": c, "path": c, "note": [c]})),
    "functioncall": (50, lambda c: ModelResponse("Looking it up.", function_calls=({"name": "f", "args": {"q": c}},))),
    "channel": (50, lambda c: ModelResponse(c, channel="audio")),
}

PERSONAL: dict[str, tuple[int, Callable[[int], str]]] = {
    "mail": (40, lambda n: f"{_mark('mail', n)}@example.com"),
    "phone": (20, lambda n: f"+48601{n + 234500:06d}"),
    "card": (20, _card),
    "secret": (10, lambda n: f"sk-proj-{_mark('secret', n)}AbCdEf0123456789ABCDEFGH"),
    "url": (10, lambda n: f"https://files.example.com/report?access_token={_mark('url', n)}A1b2C3d4E5"),
}


def all_canaries() -> list[Canary]:
    refused = [
        Canary(_mark(path, number), make(_mark(path, number)))
        for path, (count, make) in REFUSED.items()
        for number in range(count)
    ]
    return refused + personal_canaries()


def personal_canaries() -> list[Canary]:
    canaries: list[Canary] = []
    for path, (count, make) in PERSONAL.items():
        for number in range(count):
            value = make(number)
            needle = _mark(path, number) if path in ("mail", "secret", "url") else value
            canaries.append(Canary(needle, UserMessage(f"please use {value} for the booking")))
    return canaries
