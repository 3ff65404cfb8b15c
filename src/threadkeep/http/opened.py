"""What routes work on."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Header, Request

from threadkeep.http.answering import Answering
from threadkeep.http.fields import KEY_HEADER
from threadkeep.http.streams import Streams
from threadkeep.memory import Memory


async def _memory(request: Request) -> Memory:
    return request.app.state.memory


async def _answering(request: Request) -> Answering:
    return request.app.state.answering


async def _streams(request: Request) -> Streams:
    return request.app.state.streams


Opened = Annotated[Memory, Depends(_memory)]
Answers = Annotated[Answering, Depends(_answering)]
Listening = Annotated[Streams, Depends(_streams)]
KeyHeader = Annotated[str | None, Header(alias=KEY_HEADER, min_length=1, max_length=255)]
