"""The chat model as a rewriter of follow-up questions: one call, a short deadline, none while it is unavailable."""

from __future__ import annotations

import asyncio

from threadkeep.errors import ModelError, ModelUnavailable
from threadkeep.ports.chat import ChatModel, ChatRequest, Said
from threadkeep.resilience.breaker import Breaker

_SYSTEM = "You rewrite search queries. Answer with the rewritten query alone, in the language of the current query."


class QueryRewriter:
    """From a prompt to a text. Raises `ModelError` and `TimeoutError`: the question is then enriched by rule."""

    def __init__(self, model: ChatModel, seconds: float) -> None:
        self._model = model
        self._seconds = seconds
        self._breaker = Breaker("The model that rewrites queries", first_pause=5.0, longest_pause=60.0)

    async def __call__(self, prompt: str) -> str:
        if not self._breaker.allows():
            raise ModelUnavailable(f"{self._model.name} did not answer lately")
        request = ChatRequest(_SYSTEM, [Said("user", prompt)])
        try:
            async with asyncio.timeout(self._seconds):
                reply = await self._model.reply(request)
        except (ModelError, TimeoutError) as error:
            self._breaker.failed(error)
            raise
        self._breaker.succeeded()
        return reply.text

    async def close(self) -> None:
        await self._model.close()
