"""A chat model as a detector of languages, beside the offline one."""

from __future__ import annotations

from threadkeep.errors import ModelError
from threadkeep.models.language import ModelDetector, OfflineFirst
from threadkeep.ports.chat import ChatModel, ChatRequest, Said
from threadkeep.ports.language import LanguageDetector


def model_detector(model: ChatModel) -> LanguageDetector:
    """A detector that calls `model` where the offline one is unsure; where that fails, the text stays undecided."""

    async def complete(prompt: str) -> str:
        return (await model.reply(ChatRequest("", [Said("user", prompt)]))).text

    return OfflineFirst(ModelDetector(complete, failures=(ModelError,)))
