"""A folder, a memory and settings to an assistant that answers. Imported only where one is wanted: it needs extras."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from threadkeep.agent.spelling import Spelling, words_in
from threadkeep.compose.knowledge import Knowledge, open_knowledge
from threadkeep.compose.optional import part
from threadkeep.compose.vectors import count_tokens
from threadkeep.errors import InvalidSetting, MissingExtra
from threadkeep.memory import Memory
from threadkeep.models.chat.questions import names_no_subject
from threadkeep.models.language import OfflineDetector
from threadkeep.models.language.detection import model_detector
from threadkeep.ports.chat import Asked, ChatModel, Snippet
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.knowledge import Access, ChunkKey
from threadkeep.ports.models import LanguageDetector
from threadkeep.recall.question import Asked as AskedBefore
from threadkeep.recall.question import enriched
from threadkeep.resilience.breaker import opened_once_possible
from threadkeep.settings import Settings, load_settings

if TYPE_CHECKING:
    from threadkeep.agent.assistant import Assistant
    from threadkeep.agent.folder import AssistantFolder
    from threadkeep.agent.turn import Documents
    from threadkeep.models.chat.choice import ChatChoice

_log = logging.getLogger("threadkeep.assistant")
_READ_AT_ONCE, _MOST_LEARNT = 200, 2_000  # chunks of documents, for their words
_REMEMBERED = 3  # questions that lend something to a follow-up, besides the first


@asynccontextmanager
async def open_assistant(
    memory: Memory,
    settings: Settings | None = None,
    folder: str | Path | None = None,
    *,
    url: str | None = None,
    model: ChatModel | None = None,
    detector: LanguageDetector | None = None,
    clock: Clock = system_clock,
) -> AsyncGenerator[Assistant]:
    """A `Responder` on this memory, configured by `folder` (or `THREADKEEP_ASSISTANT`).

    `url` is the memory's archive (or `DATABASE_URL`): the folder's `knowledge/`, which is indexed now, is stored there
    too. `model` and `detector` are an application's own, left open; otherwise the ones that the settings name: beside a
    model of Gemini, `GEMINI_MODEL_LANG` names the language of a message that leaves the offline detector unsure.
    Raises `InvalidAssistant`, `InvalidSetting`, `MissingExtra` and `StoreError`. While the archive is unavailable the
    assistant answers without its documents, and has them within seconds of its return.
    """
    settings = settings or load_settings()
    where = folder or settings.assistant
    if where is None:
        raise InvalidSetting("THREADKEEP_ASSISTANT", "is not set", "name the assistant's folder")
    loaded: AssistantFolder = _part("agent.folder").load_folder(Path(where), settings)
    graph = _part("agent.assistant")  # before the documents, which would name an extra that is not enough
    archive = url or settings.database_url
    async with AsyncExitStack() as stack:
        chosen = model or chat_model(loaded, settings)
        if model is None:
            stack.push_async_callback(chosen.close)
            language_model = None if detector else _language_model(loaded, settings)
            if language_model is not None:
                stack.push_async_callback(language_model.close)
                detector = model_detector(language_model)
        shelf = _Shelf(loaded)
        if loaded.knowledge is not None:
            learn = None if chosen.generates else shelf.learn
            opening = partial(_indexed, loaded, loaded.knowledge, settings, archive, learn)
            await stack.enter_async_context(opened_once_possible("documents", opening, shelf.fill))
        parts = _part("agent.turn").AssistantParts(
            loaded,
            memory,
            chosen,
            detector or OfflineDetector(),
            count_tokens(settings),
            partial(_documents, shelf, loaded) if loaded.knowledge else None,
            clock,
            shelf.spelling if not chosen.generates else Spelling,
        )
        assistant = graph.Assistant(parts)
        stack.push_async_callback(assistant.settled)
        yield assistant


def chat_model(folder: AssistantFolder, settings: Settings) -> ChatModel:
    """The one that the settings name, or else the folder. Raises `InvalidSetting` and `MissingExtra`."""
    from threadkeep.agent.config import DEFAULTS, phrases_in
    from threadkeep.models.chat.choice import chat_model_for
    from threadkeep.models.chat.offline import OfflineModel

    config = folder.config
    tags = {*config.languages, *config.phrases, *DEFAULTS}
    said = {tag: phrases_in(tag, config.phrases).you_said for tag in sorted(tags)}
    return chat_model_for(_choice(folder, settings), OfflineModel(said, config.also_called))


def _choice(folder: AssistantFolder, settings: Settings) -> ChatChoice:
    from threadkeep.models.chat.choice import ChatChoice

    return ChatChoice(
        settings.chat_model or folder.config.model,
        settings.chat_timeout_seconds,
        settings.chat_retries,
        settings.chat_base_url,
        settings.ollama_host,
        settings.ollama_port,
    )


def _language_model(folder: AssistantFolder, settings: Settings) -> ChatModel | None:
    from threadkeep.models.chat.choice import chat_model_for, gemini_name
    from threadkeep.models.chat.offline import OfflineModel

    choice = _choice(folder, settings)
    if gemini_name(choice.model) is None:
        return None
    return chat_model_for(replace(choice, model=f"google_genai:{settings.gemini_model_lang}"), OfflineModel())


class _Shelf:
    """Empty until the documents can be read."""

    def __init__(self, folder: AssistantFolder) -> None:
        self.knowledge: Knowledge | None = None
        lists = (words for one in folder.config.intents for words in (one.keywords, one.more_keywords))
        self._keywords = " ".join(word for words in lists for some in words.values() for word in some)
        self._spelling = Spelling(words_in(self._keywords))

    def fill(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge

    def learn(self, texts: Iterable[str]) -> None:
        """Add the words of the documents to those that a misspelt word is corrected to."""
        self._spelling = Spelling(words_in(" ".join((self._keywords, *texts))))

    def spelling(self) -> Spelling:
        return self._spelling


@asynccontextmanager
async def _indexed(
    folder: AssistantFolder,
    documents: Path,
    settings: Settings,
    archive: str,
    learn: Callable[[Iterable[str]], None] | None = None,
) -> AsyncGenerator[Knowledge]:
    async with open_knowledge(archive, settings) as knowledge:
        source = _part("knowledge.indexing").Source(folder.config.name, folder.config.tenant)
        report = await knowledge.indexer.index(documents, source)
        for skipped in report.skipped:
            _log.warning("a document was left out: %s: %s", skipped.path, skipped.reason)
        if learn is not None:
            learn(await _texts(folder, knowledge))
        yield knowledge


async def _texts(folder: AssistantFolder, knowledge: Knowledge) -> list[str]:
    infos = await knowledge.store.documents(folder.config.tenant, folder.config.name)
    keys = [ChunkKey(one.document_id, one.version, chunk) for one in infos for chunk in range(one.chunks)]
    access, texts = Access(folder.config.tenant), list[str]()
    for batch in (keys[at : at + _READ_AT_ONCE] for at in range(0, min(len(keys), _MOST_LEARNT), _READ_AT_ONCE)):
        texts += [passage.content for passage in (await knowledge.store.read(access, batch)).passages]
    return texts


async def _documents(
    shelf: _Shelf, folder: AssistantFolder, request: Asked, question: str, earlier: Sequence[str], budget: int
) -> Documents:
    """The assistant's own documents are public; a user of its own tenant may have more, where it names none."""
    from threadkeep.agent.turn import Documents

    config = folder.config
    if shelf.knowledge is None or not question.strip():
        return Documents()
    given = request.access or Access(request.scope.tenant, request.scope.user)
    # Roles are left out: an assistant answers a SUPER_ADMIN too from what that user may read, not from everybody's.
    access = Access(config.tenant, given.user, acting=given.acting) if given.tenant == config.tenant else None
    before = [AskedBefore(one) for one in (*earlier[:1], *earlier[1:][-_REMEMBERED:])]
    if earlier and names_no_subject(question):
        question = f"{earlier[-1]} {question}"
    carried = enriched(question, before).carried
    found = await shelf.knowledge.ask(
        access or Access(config.tenant),
        question,
        k=config.recalled,
        budget=budget,
        datasources=config.datasources or None,
        carried=carried,
    )
    return Documents(found.text, [Snippet(hit.content, hit.chunk_id, heading=hit.heading) for hit in found.hits])


def _part(name: str) -> Any:
    """The extra that LangGraph's own adapter names is not enough for an assistant."""
    try:
        return part(name, "assistant", "an assistant")
    except MissingExtra:
        raise MissingExtra("assistant", "an assistant") from None
