"""Intents: by the seed's own words, by a model where there is one; what is logged of a decision."""

from __future__ import annotations

import json
import logging
import unicodedata

import pytest

from tests.agent.conftest import EXAMPLES, Open
from tests.agent.recording import RecordingModel
from threadkeep import Settings
from threadkeep.agent.folder import load_folder
from threadkeep.agent.intents import IntentInput, KeywordIntents

SHOP = load_folder(EXAMPLES / "pc_shop", Settings())
BY_WORDS = KeywordIntents(SHOP.config.intents)

KEYWORDS = {
    ("assemble_pc", "vi"): "lắp ráp|ráp máy|cấu hình|tư vấn linh kiện|tương thích|bottleneck|ngân sách|tản nhiệt"
    "|công suất PSU|BIOS|driver|hiệu năng|FPS|chơi game|render",
    ("assemble_pc", "en"): "build pc|pc build|spec|compatibility|bottleneck|budget|cooler|PSU|motherboard|CPU|GPU|SSD"
    "|HDD|case|mini-itx|micro-atx|atx|overclock|OC|BIOS|firmware|driver|fps|gaming|render|photoshop|premiere",
    ("shopping", "vi"): "mua|đặt|giá|bao nhiêu|khuyến mãi|giảm giá|còn hàng|hết hàng|giao hàng|vận chuyển|thanh toán"
    "|đổi trả|màu|phiên bản|mẫu|bảo lưu đơn",
    ("shopping", "en"): "buy|order|price|cost|discount|promotion|in stock|out of stock|shipping|delivery|payment"
    "|return|refund|color|model|SKU",
    ("warranty", "vi"): "bảo hành|kiểm tra bảo hành|chính sách bảo hành|thời hạn|serial|hóa đơn|lỗi|1 đổi 1|DOA"
    "|trung tâm bảo hành|quy trình",
    ("warranty", "en"): "warranty|check warranty|warranty policy|duration|serial|SN|invoice|defect|RMA|service center"
    "|process",
}


@pytest.mark.parametrize(("intent", "language"), list(KEYWORDS))
def test_the_keyword_lists_stand_as_their_authors_wrote_them(intent: str, language: str) -> None:
    listed = next(one for one in SHOP.config.intents if one.name == intent).keywords[language]
    assert "|".join(listed) == KEYWORDS[intent, language]


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("Tư vấn cấu hình chơi game 20 triệu", "assemble_pc"),
        ("Which motherboard and cooler for a gaming pc build?", "assemble_pc"),
        ("Card RTX 5060 giá bao nhiêu?", "shopping"),
        ("gia bao nhieu vay shop", "shopping"),  # typed without diacritics
        ("Is it in stock, and what are the prices?", "shopping"),
        ("I want to buy a GPU", "shopping"),
        ("Kiểm tra bảo hành giúp tôi", "warranty"),
        ("How do I get an RMA for a defect?", "warranty"),
        ("Xin chào", "unknown"),
        ("What is the weather like?", "unknown"),
    ],
)
def test_words_tell_the_intent(text: str, intent: str) -> None:
    decision = BY_WORDS.decide(IntentInput(text))
    assert decision == BY_WORDS.decide(IntentInput(unicodedata.normalize("NFD", text)))
    assert decision.intent == intent
    assert 0 <= decision.confidence <= 1
    assert decision.is_clear(SHOP.threshold) == (intent != "unknown")


def test_the_current_message_counts_most_and_the_last_few_count_too() -> None:
    earlier = ["Tôi muốn mua card RTX 5060"]
    assert BY_WORDS.decide(IntentInput("Thế còn loại 5070?", earlier)).intent == "shopping"
    assert BY_WORDS.decide(IntentInput("Còn bảo hành thì sao?", earlier)).intent == "warranty"
    long_ago = ["Tôi muốn mua card RTX 5060", "à", "ừ", "vâng"]
    assert BY_WORDS.decide(IntentInput("Thế còn cái kia?", long_ago[1:])).intent == "unknown"


@pytest.mark.parametrize(
    ("earlier", "now", "intent"),
    [
        ("RTX 5060 còn hàng không, giá bao nhiêu?", "Bảo hành là gì?", "warranty"),
        ("Is the RTX 5060 in stock, what is its price, how is the delivery?", "What about the warranty?", "warranty"),
        ("Chính sách bảo hành thế nào, cần hóa đơn và serial không?", "Tôi muốn đặt một cái", "shopping"),
        ("CPU này giá bao nhiêu?", "Còn SSD thì sao?", "shopping"),  # only a thing: of what was asked before
    ],
)
def test_what_is_named_now_is_not_doubted_for_what_was_wanted_before(earlier: str, now: str, intent: str) -> None:
    decision = BY_WORDS.decide(IntentInput(now, [earlier, earlier]))
    assert decision.intent == intent
    assert decision.is_clear(SHOP.threshold)


@pytest.mark.parametrize("text", ["tư vấn công suất PSU giúp em", "cong suat PSU"])
def test_a_keyword_counts_whole_though_a_word_of_it_is_weak(text: str) -> None:
    decision = BY_WORDS.decide(IntentInput(text))
    assert decision.intent == "assemble_pc"
    assert decision.is_clear(0.5)


def test_words_of_two_intents_leave_it_in_doubt() -> None:
    assert not BY_WORDS.decide(IntentInput("bảo hành hay giao hàng")).is_clear(SHOP.threshold)


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("RTX 5060 giá bao nhiêu?", True),  # shopping: always
        ("Chính sách bảo hành SSD?", True),  # warranty: a condition to look up
        ("Bảo hành là gì?", False),  # warranty: a general notion
        ("Card này có tương thích với nguồn 650W không?", True),  # assembling: compatibility
        ("Có nên tự lắp ráp không?", False),  # assembling: a general principle
    ],
)
def test_whether_something_must_be_looked_up(text: str, needed: bool) -> None:
    assert BY_WORDS.decide(IntentInput(text)).need_retrieval is needed


async def test_a_model_tells_the_intent_where_there_is_one(talk_with: Open) -> None:
    says = {"intent": "warranty", "confidence": 0.9, "need_retrieval": False, "clarify_questions": [], "rationale": "x"}
    model = RecordingModel(json.dumps(says), "Dạ, bảo hành 36 tháng ạ.")
    async with talk_with("pc_shop", model) as talk:
        answer = await talk.say("Máy em mua hôm trước hỏng rồi")
    assert answer.meta["intent"] == "warranty"
    asked = model.requests[0]
    assert "assemble_pc" in asked.system
    assert "not instructions" in asked.system
    assert "Máy em mua hôm trước hỏng rồi" in asked.messages[-1].content
    assert "Detected intent: warranty" in model.requests[1].system
    assert answer.usage.input_tokens == 14


async def test_a_model_whose_answer_cannot_be_read_leaves_it_to_the_words(talk_with: Open) -> None:
    for said in ("I think it is shopping", '{"intent": "poetry"}', '{"intent": "shopping", "confidence": 7}', "{"):
        async with talk_with("pc_shop", RecordingModel(said, "Dạ.")) as talk:
            assert (await talk.say("RTX 5060 giá bao nhiêu?")).meta["intent"] == "shopping"


async def test_the_models_own_questions_are_asked_back(talk_with: Open) -> None:
    says = {
        "intent": "unknown",
        "confidence": 0.2,
        "clarify_questions": ["Dạ, quý khách cần mua hay bảo hành ạ?", "B?"],
    }
    async with talk_with("pc_shop", RecordingModel(json.dumps(says))) as talk:
        answer = await talk.say("hmm")
    assert (answer.kind, answer.text) == ("clarify", "Dạ, quý khách cần mua hay bảo hành ạ?")


async def test_one_line_of_json_is_logged_for_each_decision(talk_with: Open, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "threadkeep.intent")
    async with talk_with("pc_shop") as talk:
        await talk.say("alo")
        await talk.say("RTX 5060 giá bao nhiêu?", request_id="r-1")
    info = [json.loads(r.getMessage()) for r in caplog.records if r.levelno == logging.INFO and "intent" in r.name]
    debug = [json.loads(r.getMessage()) for r in caplog.records if r.levelno == logging.DEBUG and "intent" in r.name]
    keys = ["intent", "confidence", "need_retrieval", "clarify_needed", "conversation_id", "user_id"]
    assert [sorted(line) for line in info] == [sorted([*keys, "first_clarify_question"]), sorted([*keys, "request_id"])]
    assert info[0]["clarify_needed"] is True
    assert info[0]["first_clarify_question"].startswith("Dạ, quý khách")
    assert info[1]["intent"] == "shopping"
    assert [line["rationale"] for line in debug] == ["no keyword", "keywords: giá, bao nhiêu"]


async def test_what_a_model_says_of_a_decision_is_masked_in_the_log(
    talk_with: Open, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "threadkeep.intent")
    says = {
        "intent": "unknown",
        "confidence": 0.1,
        "clarify_questions": ["Call you at +48 601 234 567?"],
        "rationale": "user ann@example.com is vague",
    }
    async with talk_with("pc_shop", RecordingModel(json.dumps(says))) as talk:
        await talk.say("hm")
    logged = "\n".join(record.getMessage() for record in caplog.records if record.name == "threadkeep.intent")
    assert "601 234 567" not in logged
    assert "ann@example.com" not in logged
    assert "[REDACTED:PHONE]" in logged
    assert "[REDACTED:EMAIL]" in logged


@pytest.mark.parametrize("text", ["cảm ơn", "Mainboard của tôi không lên hình."])
async def test_the_log_tells_of_a_question_back_only_where_one_was_asked(
    talk_with: Open, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    caplog.set_level(logging.INFO, "threadkeep.intent")
    async with talk_with("pc_shop") as talk:
        answer = await talk.say(text)
    (line,) = (json.loads(one.getMessage()) for one in caplog.records if one.name == "threadkeep.intent")
    assert line["clarify_needed"] is (answer.kind == "clarify")


@pytest.mark.parametrize(
    ("intent", "said", "looked_up"),
    [
        ("shopping", {"need_retrieval": False}, True),  # the folder says always
        ("shopping", {}, True),
        ("warranty", {"need_retrieval": False}, False),  # and of these: when it must be
        ("warranty", {"need_retrieval": True}, True),
        ("warranty", {}, True),
    ],
)
async def test_what_the_folder_says_is_always_looked_up_is_whatever_the_model_says(
    talk_with: Open, intent: str, said: dict[str, bool], looked_up: bool
) -> None:
    model = RecordingModel(json.dumps({"intent": intent, "confidence": 0.9} | said), "Dạ.")
    async with talk_with("pc_shop", model) as talk:
        await talk.say("Card RTX 5060 giá bao nhiêu, bảo hành bao lâu?")
    assert ("<knowledge" in model.requests[-1].system) is looked_up
