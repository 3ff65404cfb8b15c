"""`threadkeep demo`: a conversation in four languages; what was kept, refused and masked; then erased, with proof."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from threadkeep.cli.erase import print_proof
from threadkeep.cli.options import AnyStore, Json, store_path
from threadkeep.cli.output import print_json, screen
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
from threadkeep.scope import Scope
from threadkeep.settings import load_settings
from threadkeep.sync import SyncMemory

_GUEST = Scope("threadkeep-demo", "guest", "lobby")


@dataclass(frozen=True, slots=True)
class _Stage:
    memory: SyncMemory
    files: Path | None  # the store's file; None for one that lives in memory

    def found(self, texts: Iterable[str]) -> int:
        """How many of the texts stand in the store's files, write-ahead log included."""
        if self.files is None:
            return 0
        content = b"".join(file.read_bytes() for file in self.files.parent.glob(f"{self.files.name}*"))
        return sum(text.encode("utf-8") in content for text in texts)


def demo(url: AnyStore = None, json: Json = False) -> None:
    """Keep, refuse, mask, recall, erase: on a temporary store unless --url names one."""
    with tempfile.TemporaryDirectory(prefix="threadkeep-demo-") as folder:
        settings = load_settings()
        redis = None if url else ""  # a temporary store is no archive for a Redis to stand in front of
        url = url or f"sqlite:///{folder}/demo.db"
        with SyncMemory(url, redis=redis, settings=settings) as memory:
            report = _play(_Stage(memory, store_path(url, settings)))
    if json:
        print_json(report)
    else:
        _print(report)
    if not report["ok"]:
        raise typer.Exit(1)


def _play(stage: _Stage) -> dict[str, Any]:
    turns = [_append(stage.memory, step) for step in SCRIPT]
    kept = [text for turn in turns for text in turn["kept"]]
    secrets = [secret for step in SCRIPT for secret in step.secrets]
    recalled = [{"question": question, "best": _best(stage.memory, question)} for question in QUESTIONS]
    files = {"kept_texts_before": stage.found(kept), "refused_or_masked": stage.found(secrets)}
    proof = stage.memory.erase(_GUEST.whole_user)
    files["kept_texts_after"] = stage.found(kept)
    clean = files["refused_or_masked"] == files["kept_texts_after"] == 0
    # Unless the scan finds what is there, its finding nothing proves nothing.
    scan_works = stage.files is None or files["kept_texts_before"] == len(kept)
    return {
        "ok": proof.complete and clean and scan_works and all(one["best"] for one in recalled),
        "turns": turns,
        "recalled": recalled,
        "proof": proof.as_dict(),
        "found_in_files": files,
    }


def _append(memory: SyncMemory, step: Step) -> dict[str, Any]:
    receipt = memory.append(_GUEST, step.events)
    stored = {message.id: message.content for message in memory.history(_GUEST, limit=len(receipt.kept)).messages}
    return {
        "language": step.language,
        "events": len(step.events),
        "kept": [stored[id_] for id_ in receipt.kept],
        "refused": dict(receipt.refused),
        "stripped": dict(receipt.stripped),
        "redacted": dict(receipt.redacted),
    }


def _best(memory: SyncMemory, question: str) -> str | None:
    hits = memory.recall(_GUEST, question, k=1).hits
    return hits[0].content if hits else None


def _print(report: dict[str, Any]) -> None:
    console = screen()
    talk = Table(title="The conversation", title_justify="left", show_lines=True)
    for heading in ("", "kept", "refused or stripped", "masked"):
        talk.add_column(heading, overflow="fold")  # Chinese has no spaces to break at
    for turn in report["turns"]:
        not_kept = turn["refused"] | turn["stripped"]
        talk.add_row(turn["language"], "\n".join(turn["kept"]), _counts(not_kept), _counts(turn["redacted"]))
    console.print(talk)
    recall = Table(title="Recall", title_justify="left")
    for heading in ("asked", "recalled"):
        recall.add_column(heading, overflow="fold")
    for one in report["recalled"]:
        recall.add_row(one["question"], one["best"])
    console.print(recall)
    print_proof(report["proof"])
    files = report["found_in_files"]
    console.print(
        f"A scan of the store's files, byte by byte, found {files['kept_texts_before']} of the kept texts before the"
        f" erase and {files['kept_texts_after']} after it; of what was refused or masked, {files['refused_or_masked']}."
    )


def _counts(counts: Mapping[str, int]) -> str:
    return "\n".join(f"{name} × {count}" for name, count in counts.items())


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

# Without diacritics, and in another word order than the message.
QUESTIONS = ("di ung dau phong", "花生過敏", "widok na morze")
