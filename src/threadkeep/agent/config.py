"""What `assistant.toml` may say, and what an assistant says by itself where its folder gives no words of its own.

Data only: words, thresholds and names, never code.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from threadkeep.models.language import closest
from threadkeep.policy.redact.engine import KINDS
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


# How a model is to treat the messages before the current one. The Polish block is the concierge's own.
HISTORY_BLOCKS = {
    "pl": """\
Historia rozmowy
- Możesz otrzymywać historię poprzednich wiadomości w tej samej sesji (user/assistant).
- Jeśli historia jest pusta, traktuj bieżące pytanie jak pierwsze w nowej rozmowie.
- Jeśli historia jest niepusta, wykorzystaj ją jako kontekst odpowiedzi, nie powtarzaj jednak mechanicznie całej treści — odnoś się do niej naturalnie.""",  # noqa: E501
    "vi": """\
Lịch sử hội thoại
- Có thể có các tin nhắn trước đó của cùng phiên (user/assistant).
- Nếu lịch sử trống, hãy coi câu hỏi hiện tại là câu đầu tiên của một cuộc trò chuyện mới.
- Nếu có lịch sử, hãy dùng nó làm ngữ cảnh một cách tự nhiên, không lặp lại máy móc toàn bộ nội dung.""",
    "zh-Hant": """\
對話紀錄
- 你可能會收到同一個會話中先前的訊息（user/assistant）。
- 如果沒有紀錄，請把目前的問題當作新對話的第一個問題。
- 如果有紀錄，請自然地把它當作回答的脈絡，不要機械地重複全部內容。""",
    "zh-Hans": """\
对话记录
- 你可能会收到同一个会话中先前的消息（user/assistant）。
- 如果没有记录，请把当前的问题当作新对话的第一个问题。
- 如果有记录，请自然地把它当作回答的上下文，不要机械地重复全部内容。""",
    "en": """\
Conversation history
- You may be given earlier messages of the same session (user/assistant).
- If there are none, treat the current question as the first of a new conversation.
- If there are some, use them as context for your answer; refer to them naturally and do not repeat them wholesale.""",
}

_INSTRUCTION = "Answer in {language}, briefly and politely."

# For models that know a language by its name better than by its tag.
_NAMES = {
    "ar": "Arabic",
    "bg": "Bulgarian",
    "ca": "Catalan",
    "cs": "Czech",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "es": "Spanish",
    "fa": "Persian",
    "fi": "Finnish",
    "fr": "French",
    "he": "Hebrew",
    "hi": "Hindi",
    "hr": "Croatian",
    "hu": "Hungarian",
    "id": "Indonesian",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "lt": "Lithuanian",
    "nb": "Norwegian",
    "nl": "Dutch",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sk": "Slovak",
    "sl": "Slovenian",
    "sr": "Serbian",
    "sv": "Swedish",
    "th": "Thai",
    "tr": "Turkish",
    "uk": "Ukrainian",
}

DEFAULTS = {
    "vi": Phrases(
        instruction="Hãy trả lời bằng tiếng Việt, ngắn gọn, lịch sự.",
        clarify=("Xin vui lòng cho biết rõ hơn yêu cầu của quý khách ạ?",),
        farewell="Xin cảm ơn và hẹn gặp lại!",
        nothing_found="Hiện chưa có thông tin về điều này.",
        offline="(Trả lời tự động từ tài liệu sẵn có, không dùng mô hình ngôn ngữ.)",
        you_said="Trước đó quý khách đã nói:",
        stop=("không, cảm ơn", "tạm biệt", "kết thúc"),
        hello=("xin chào", "chào", "chào bạn", "chào em", "chào shop"),
        thanks=("cảm ơn", "cám ơn", "cảm ơn bạn", "cảm ơn nhiều", "cảm ơn em", "cảm ơn shop"),
        welcome="Không có gì ạ!",
        noted="Vâng, xin ghi nhận ạ.",
        understood="Vâng ạ. Quý khách cần hỗ trợ thêm gì không ạ?",
        sorry="Rất tiếc về sự bất tiện này, xin lỗi quý khách.",
        cannot="Tôi không tự làm việc này được ạ.",
        agreed="Vâng, từ giờ xin trả lời bằng tiếng Việt.",
    ),
    "pl": Phrases(
        instruction="Odpowiadaj po polsku, zwięźle i uprzejmie.",
        clarify=("Czy mogę prosić o doprecyzowanie, w czym mogę pomóc?",),
        farewell="Dziękuję za rozmowę. Do usłyszenia!",
        nothing_found="Nie mam na ten temat informacji.",
        offline="(Odpowiedź ułożona z posiadanych informacji, bez modelu językowego.)",
        you_said="Wcześniej padło:",
        stop=("nie, dziękuję", "do widzenia", "to wszystko"),
        hello=("dzień dobry", "dobry wieczór", "cześć", "witam", "hej"),
        thanks=("dziękuję", "dzięki", "dziękuję bardzo", "bardzo dziękuję", "dziękujemy"),
        welcome="Bardzo proszę!",
        noted="Dziękuję, zapamiętam.",
        understood="Dobrze. Czy mogę jeszcze w czymś pomóc?",
        sorry="Bardzo przepraszam za tę niedogodność.",
        cannot="Niestety nie mogę tego zrobić.",
        agreed="Oczywiście, odtąd po polsku.",
    ),
    "zh-Hant": Phrases(
        instruction="請用繁體中文回答，簡短有禮。",
        clarify=("請問您能再說明一下您的需求嗎？",),
        farewell="謝謝您，再見！",
        nothing_found="目前沒有這方面的資料。",
        offline="（此回覆取自現有資料，未使用語言模型。）",
        you_said="您先前說過：",
        stop=("不用了，謝謝", "不用了", "再見"),
        hello=("你好", "您好", "哈囉", "早安", "晚安"),
        thanks=("謝謝", "謝謝你", "謝謝您", "多謝", "感謝"),
        welcome="不客氣！",
        noted="好的，已記下。",
        understood="好的。還有什麼需要協助的嗎？",
        sorry="造成您的不便，非常抱歉。",
        cannot="抱歉，我無法直接為您辦理。",
        agreed="好的，接下來用中文回答。",
    ),
    "zh-Hans": Phrases(
        instruction="请用简体中文回答，简短有礼。",
        clarify=("请问您能再说明一下您的需求吗？",),
        farewell="谢谢您，再见！",
        nothing_found="目前没有这方面的资料。",
        offline="（此回复取自现有资料，未使用语言模型。）",
        you_said="您之前说过：",
        stop=("不用了，谢谢", "不用了", "再见"),
        hello=("你好", "您好", "哈啰", "早上好", "晚上好"),
        thanks=("谢谢", "谢谢你", "谢谢您", "多谢", "感谢"),
        welcome="不客气！",
        noted="好的，已记下。",
        understood="好的。还有什么需要帮助的吗？",
        sorry="给您带来不便，非常抱歉。",
        cannot="抱歉，我无法直接为您办理。",
        agreed="好的，接下来用中文回答。",
    ),
    "en": Phrases(
        instruction="Answer in English, briefly and politely.",
        clarify=("Could you tell me a little more about what you need?",),
        farewell="Thank you, and goodbye!",
        nothing_found="I have no information about that.",
        offline="(Put together from what is on record, without a language model.)",
        you_said="You said earlier:",
        stop=("no, thank you", "no thanks", "goodbye", "bye"),
        hello=("hello", "hi", "hey", "good morning", "good afternoon", "good evening", "good day"),
        thanks=("thanks", "thank you", "thanks a lot", "thank you very much", "many thanks", "thx"),
        welcome="You are welcome!",
        noted="Thank you, I have noted that.",
        understood="All right. Is there anything else I can help with?",
        sorry="I am sorry about that.",
        cannot="I cannot do that myself.",
        agreed="Of course, in English from now on.",
    ),
}


def phrases_in(language: str, own: dict[str, Phrases]) -> Phrases:
    """The folder's words, what they leave out from ours; in English where neither has any in the language.

    The instruction to a model names the language all the same.
    """
    given, ours = closest(own, language, same_script=True), closest(DEFAULTS, language)
    if given is None and ours is None:
        english = phrases_in("en", own)
        return english.model_copy(update={"instruction": _INSTRUCTION.format(language=_named(language))})
    ours = ours or DEFAULTS["en"].model_copy(update={"instruction": _INSTRUCTION.format(language=_named(language))})
    if given is None:
        return ours
    return ours.model_copy(update={name: getattr(given, name) for name in given.model_fields_set})


def _named(tag: str) -> str:
    name = closest(_NAMES, tag)
    return f"{name} ({tag})" if name else f"the language whose BCP 47 tag is {tag}"
