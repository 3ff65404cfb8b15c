"""What the nodes of an assistant work with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from threadkeep.agent.config import Phrases
from threadkeep.agent.folder import AssistantFolder
from threadkeep.agent.phrases import DEFAULTS, phrases_in
from threadkeep.agent.small_talk import SmallTalk, is_just_one_of, small_talk
from threadkeep.agent.spelling import Spelling
from threadkeep.memory import Memory
from threadkeep.models.language import closest
from threadkeep.ports.chat import ChatModel, Snippet
from threadkeep.ports.clock import Clock, system_clock
from threadkeep.ports.language import LanguageDetector, LanguageRules
from threadkeep.ports.responder import Asked
from threadkeep.recall.context import CountTokens
from threadkeep.scope import Scope


@dataclass(frozen=True, slots=True)
class Documents:
    """What bears on a question: for the prompt, fenced, and one by one."""

    text: str = field(default="", repr=False)
    snippets: Sequence[Snippet] = ()


# Takes the caller's question and scope, its text as memory would keep it, the user's earlier questions, a token budget.
SearchDocuments = Callable[[Asked, str, Sequence[str], int], Awaitable[Documents]]


@dataclass(frozen=True, slots=True)
class AssistantParts:
    folder: AssistantFolder
    memory: Memory
    model: ChatModel
    detector: LanguageDetector
    count_tokens: CountTokens
    documents: SearchDocuments | None = None
    clock: Clock = system_clock
    spelling: Callable[[], Spelling] = Spelling  # by the words of the documents, once they can be read

    def languages(self, scope: Scope) -> LanguageRules:
        """The folder's own list, where it has one; otherwise what is spoken in the tenant, which may be any."""
        config = self.folder.config
        return LanguageRules(config.languages or self.memory.languages(scope).allowed, config.default_language)

    @property
    def worded(self) -> tuple[str, ...]:
        """Languages that there are phrases in."""
        config = self.folder.config
        return config.languages or tuple(dict.fromkeys((config.default_language, *config.phrases, *DEFAULTS)))

    def phrases(self, language: str) -> Phrases:
        return phrases_in(language, self.folder.config.phrases)

    def greeting(self, language: str) -> str | None:
        """The persona's, or its English one: `Greeting:` is in the assistant's default language."""
        persona = self.folder.persona
        own = {self.folder.config.default_language: "", **persona.greetings}
        return persona.greeting(language if closest(own, language) is not None else "en")

    def small_talk(self, text: str, settled: str | None = None) -> SmallTalk | None:
        """By the folder's own phrases, or else by everybody's words. `language` is one it may answer in.

        A `settled` language is looked in first, and is the one of a message that other languages say too.
        """
        config = self.folder.config
        for tag in dict.fromkeys((settled or config.default_language, *self.worded)):
            phrases = self.phrases(tag)
            if is_just_one_of(text, phrases.stop):
                return SmallTalk("goodbye", tag)
            if is_just_one_of(text, phrases.thanks):
                return SmallTalk("thanks", tag)
            if is_just_one_of(text, phrases.hello):
                return SmallTalk("hello", tag)
        said = small_talk(text, settled)
        spoken = said and next((tag for tag in self.worded if tag.split("-")[0] == said.language), None)
        of_any = None if said is None or config.languages else said.language
        return said and SmallTalk(said.act, spoken or of_any or config.default_language)

    def redacted(self, scope: Scope, text: str, language: str | None = None) -> str:
        """As memory would keep it."""
        return self.memory.redactor_at(scope)(text, language).text
