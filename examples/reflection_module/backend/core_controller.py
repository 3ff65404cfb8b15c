"""Where modules are mounted: routers stay as they are, the memory module is only started and stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from backend.chat_router import router
from backend.memory_router import router as memory_router
from backend.modules.memory.core import memory


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    memory.start_worker()  # or leave it to `python -m backend.jobs.memory_flush_worker`
    yield
    await asyncio.to_thread(memory.close)


app = FastAPI(lifespan=lifespan)
app.include_router(router)
app.include_router(memory_router)
