"""What is said in the demo: four languages, with things in it that must not be kept."""

from __future__ import annotations

from dataclasses import dataclass

from threadkeep.events import (
    DebugTrace,
    Event,
    ModelResponse,
    SystemNote,
    Thought,
    ToolRequest,
    ToolResult,
    UserMessage,
)


@dataclass(frozen=True, slots=True)
class Step:
    language: str
    events: tuple[Event, ...]
    secrets: tuple[str, ...]  # must never stand in a file


SCRIPT = (
    Step(
        "vi",
        (
            UserMessage("Tôi dị ứng với đậu phộng. Số của tôi là 0912 345 678.", language="vi"),
            ToolRequest("find_guest", {"phone": "0912 345 678"}),
            ToolResult("find_guest", {"room": "Phòng tổng thống 808"}),
            ModelResponse("Dạ, tôi sẽ tránh đậu phộng cho bạn.", language="vi"),
        ),
        ("0912 345 678", "Phòng tổng thống 808"),
    ),
    Step(
        "pl",
        (
            UserMessage("Wolę pokój z widokiem na morze. Mój adres: jan.kowalski@example.pl", language="pl"),
            Thought("Gość brzmi na zmęczonego, zaproponuję późne wymeldowanie."),
            ModelResponse("Zapisałem: pokój z widokiem na morze.", language="pl"),
        ),
        ("jan.kowalski@example.pl", "brzmi na zmęczonego"),
    ),
    Step(
        "zh-Hant",
        (
            UserMessage("我對花生過敏,信用卡號碼是 4111 1111 1111 1111。", language="zh-Hant"),
            DebugTrace("retrieval took 12 ms for guest 花生"),
            ModelResponse("了解,我會避免花生。", language="zh-Hant"),
        ),
        ("4111 1111 1111 1111", "retrieval took 12 ms"),
    ),
    Step(
        "en",
        (
            SystemNote("You are the concierge of Hotel Lotus."),
            UserMessage(
                modality="voice", summary="Asks for a quiet table for two at eight.", meta={"mime": "audio/ogg"}
            ),
            UserMessage(modality="image", data=b"\x89PNG raw pixels of a passport"),
            ModelResponse(
                "A quiet table for two at eight is booked.", function_calls=({"book": "table 7 by the sea"},)
            ),
        ),
        ("concierge of Hotel Lotus", "raw pixels of a passport", "table 7 by the sea"),
    ),
)

# Asked without diacritics, and in another word order than it was said.
QUESTIONS = ("di ung dau phong", "花生過敏", "widok na morze")
