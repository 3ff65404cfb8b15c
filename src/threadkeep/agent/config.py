"""What `assistant.toml` may say. Data only: words, thresholds and names, never code."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from threadkeep.policy.redact.kinds import KINDS
from threadkeep.settings import LanguageTag

Name = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Line = Annotated[str, StringConstraints(min_length=1, max_length=2_000)]
Words = dict[LanguageTag, tuple[Line, ...]]
UNKNOWN = "unknown"
LONGEST_SLOT_MINUTES = 24 * 60


class _Strict(BaseModel):
    """Refuses unknown keys: a key that no setting reads is a typing mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class IntentConfig(_Strict):
    """One thing users come for. `retrieval`: look things up always, never, or when one of `retrieval_words` is said."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,49}$")]
    description: str = ""  # for a model that classifies the intent
    retrieval: Literal["always", "never", "when"] = "always"
    keywords: Words = Field(min_length=1)
    more_keywords: Words = {}  # count as the ones above, for a list that must stand as its authors wrote it
    weak_keywords: Words = {}  # of those above: they name things, and any intent may be about a thing
    retrieval_words: Words = {}

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.name == UNKNOWN:
            raise ValueError("the name `unknown` is taken: it stands for no intent at all")
        if self.retrieval == "when" and not self.retrieval_words:
            raise ValueError('retrieval = "when" needs retrieval_words')
        return self


class Address(_Strict):
    """What the assistant calls itself and the user, in a language that has more than one way to."""

    me: Name
    you: Name


class Phrases(_Strict):
    """Whole sentences that the assistant says by itself, in one language. What is not given is not said."""

    instruction: str = ""  # instructs a model which language to answer in
    clarify: tuple[Line, ...] = ()
    ask_on: str = ""
    farewell: str = ""
    nothing_found: str = ""
    offline: str = ""
    you_said: str = ""  # before something the user said earlier, quoted
    stop: tuple[Line, ...] = ()  # a message that is just this ends the conversation
    hello: tuple[Line, ...] = ()  # a message that is just this is greeted, where nothing else answers it
    thanks: tuple[Line, ...] = ()  # a message that is just this is answered with `welcome`, without a model
    welcome: str = ""
    noted: str = ""  # to a statement without a question, where nothing else answers it
    understood: str = ""  # to a user who says that it is clear, or that it does not matter
    sorry: str = ""  # to a complaint
    broken: str = ""  # looked up for a complaint of something broken, and answered after `sorry`
    cannot: str = ""  # to a user who wants something done, before what is known of it
    agreed: str = ""  # to a user who requests this language


class Budgets(_Strict):
    """Tokens of the prompt, by the tokenizer that the settings name."""

    history: int = Field(3_000, ge=1)
    memory: int = Field(600, ge=0)
    knowledge: int = Field(1_500, ge=0)


class Slots(_Strict):
    """Which masked values tools may read later in the conversation, and for how long they are kept, encrypted."""

    types: tuple[str, ...] = ()
    minutes: float = Field(30, gt=0, le=LONGEST_SLOT_MINUTES)

    @model_validator(mode="after")
    def _known(self) -> Self:
        if unknown := [name for name in self.types if name not in KINDS]:
            raise ValueError(f"{unknown[0]!r} is no type of masked value; use {', '.join(KINDS)}")
        return self


class Reflecting(_Strict):
    after_each_turn: bool = False
    rolling_summary: bool = False  # of what falls out of the history's budget


class AssistantConfig(_Strict):
    name: Name
    languages: tuple[LanguageTag, ...] = ()  # the only ones it answers in; none: whatever the settings allow, or any
    default_language: LanguageTag
    model: str | None = None  # `provider:name`; THREADKEEP_CHAT_MODEL wins; None answers offline
    tenant: Name = "default"  # whose documents `knowledge/` becomes
    datasources: tuple[Name, ...] = ()  # it answers from; its own go by its name. Otherwise all there are
    confidence_threshold: float | None = Field(None, ge=0, le=1)  # otherwise INTENT_CONFIDENCE_THRESHOLD
    recalled: int = Field(5, ge=0, le=100)  # messages that have left the window, and as many passages of documents
    recall_scope: Literal["conversation", "user"] = "user"  # for unnamed users always the conversation
    budgets: Budgets = Budgets.model_validate({})
    slots: Slots = Slots.model_validate({})
    reflection: Reflecting = Reflecting()
    address: dict[LanguageTag, Address] = {}
    phrases: dict[LanguageTag, Phrases] = {}
    also_called: dict[LanguageTag, dict[Name, tuple[Name, ...]]] = {}  # what users call a thing: what documents do
    intents: tuple[IntentConfig, ...] = ()

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.languages and self.default_language not in self.languages:
            raise ValueError(f"default_language {self.default_language!r} is not one of languages")
        names = [one.name for one in self.intents]
        if len(set(names)) != len(names):
            raise ValueError("two intents have the same name")
        return self
