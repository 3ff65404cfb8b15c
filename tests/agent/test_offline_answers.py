"""Without a model: what bears on the question's subject is quoted, and nothing about something else."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.agent.conftest import EXAMPLES, SETTINGS
from threadkeep import Scope, open_memory
from threadkeep.agent.dialogue_acts import is_goodbye, is_statement
from threadkeep.compose.assistant import open_assistant
from threadkeep.models.chat.offline import OfflineModel
from threadkeep.models.chat.questions import names_no_subject, numbers_named
from threadkeep.ports.chat import Answer, Asked, ChatRequest, Said, Snippet


class Case(NamedTuple):
    said: tuple[str, ...]  # the last message is the one whose answer counts
    must: tuple[str, ...]
    never: tuple[str, ...] = ()


def asked(*said: str, must: str | tuple[str, ...], never: str | tuple[str, ...] = ()) -> Case:
    return Case(said, (must,) if isinstance(must, str) else must, (never,) if isinstance(never, str) else never)


NOT_KNOWN = {
    "en": "I have no information about that",
    "pl": "Nie mam na ten temat informacji",
    "vi": "Hiện chưa có thông tin",
    "zh": "目前沒有這方面的資料",
}
HOTEL = [
    asked("When is the gym open?", must=NOT_KNOWN["en"], never="22:00"),
    asked("When does the restaurant open?", must="Breakfast is served", never="pool"),
    asked("What time does the pool close?", must="The pool is open"),
    asked("Do you have wifi?", must="Wi-Fi is free"),
    asked("When is breakfast?", "And how much is it?", must="65 PLN", never=("320", "80 PLN")),
    asked("When is breakfast?", "How much is it?", must="65 PLN", never=("pool", "Check-in")),
    asked("Ile kosztuje śniadanie?", "A o której?", must="7:00", never=("Breakfast", "room")),
    asked("Bãi đỗ xe ở đâu?", "Bao nhiêu tiền?", must="80 PLN", never="450"),
    asked("早餐幾點開始？", must="七點到十點半"),
    asked("早餐什麼時候開始？", must="七點到十點半"),
    asked("有停車場嗎？", "多少錢？", must="八十茲羅提", never=("早餐", "雙人房")),
    asked("有停車場嗎？", "那多少錢呢？", must="八十茲羅提", never=("早餐", "雙人房")),
    asked("早餐多少錢？", "幾點？", must="七點到十點半", never=("游泳池", "入住")),
    asked("早餐幾點？", "那晚餐呢？", must=NOT_KNOWN["zh"], never="早餐每天"),
    asked("早餐幾點？", "那停車場呢？", must="停車場", never="早餐每天"),
    asked("多少錢？", must=NOT_KNOWN["zh"], never="茲羅提"),
    asked("O której śniadanie?", "English please", must="How may I help you?", never=NOT_KNOWN["en"]),
    asked("When is breakfast?", "Nói tiếng Việt đi", must="Tôi có thể giúp gì", never=("Bữa sáng", NOT_KNOWN["vi"])),
    asked("When is breakfast?", "我想用中文", must="有什麼能為您服務", never=NOT_KNOWN["zh"]),
    asked("When is breakfast?", "Czy możemy rozmawiać po polsku?", must="W czym mogę pomóc", never=NOT_KNOWN["pl"]),
    asked("O której śniadanie?", "Please answer in English: is the pool open?", must="The pool is open"),
    asked("Thanks", must="You are welcome", never=NOT_KNOWN["en"]),
    asked("When is breakfast?", "Thanks, bye", must="goodbye", never="7:00"),
    asked("I am allergic to peanuts", must="noted", never=NOT_KNOWN["en"]),
    asked("Is there a sauna?", must=NOT_KNOWN["en"], never="Nie mam"),
    asked("Can I bring my dog?", must=NOT_KNOWN["en"], never="Nie mam"),
    asked("Kiedy jest czynna siłownia?", must=NOT_KNOWN["pl"], never="Basen"),
    asked("Ile kosztuje masaż?", must=NOT_KNOWN["pl"], never=("65", "320", "80")),
    asked("O której jest śniadanie?", "A ile kosztuje?", must="65 zł", never=("Pokój", "Parking")),
    asked("Ile kosztuje nocleg?", must="320 zł za noc", never=("Śniadanie", "Parking")),
    asked("Do której jest otwarty basen?", must="Basen jest czynny"),
    asked("Czy macie wifi?", must="Wi-Fi jest bezpłatne"),
    asked("Dziękuję", must="Bardzo proszę", never=NOT_KNOWN["pl"]),
    asked("Mam alergię na orzechy.", must="zapamiętam", never=NOT_KNOWN["pl"]),
    asked("Khách sạn có spa không?", must=NOT_KNOWN["vi"], never="Wi-Fi"),
    asked("Phòng gym mở cửa lúc mấy giờ?", must=NOT_KNOWN["vi"], never="Hồ bơi"),
    asked("Có wifi không?", must="Wi-Fi miễn phí"),
    asked("Hồ bơi đóng cửa lúc mấy giờ?", must="Hồ bơi mở cửa"),
    asked("Cảm ơn", must="Không có gì", never=NOT_KNOWN["vi"]),
    asked("Tôi bị dị ứng đậu phộng.", must="ghi nhận", never=NOT_KNOWN["vi"]),
    asked("三溫暖開放時間？", must=NOT_KNOWN["zh"], never="游泳池"),
    asked("停車多少錢？", must="地下停車場每天八十"),
    asked("單人房多少錢？", must=NOT_KNOWN["zh"], never="雙人房"),
    asked("蛋糕多少錢？", must=NOT_KNOWN["zh"]),
    asked("謝謝", must="不客氣", never=NOT_KNOWN["zh"]),
    asked("我對花生過敏。", must="已記下", never=NOT_KNOWN["zh"]),
    asked("hello", "Do you have wifi?", "Is there a pool?", must="The pool is open", never="Basen"),
]
SHOP = [
    asked("How much is the GAMER-30?", must="31.500.000", never=("20,900,000", "20.900.000")),
    asked("Is the RX 9060 XT in stock?", must="hết hàng", never=("RTX 5060", "RTX 5070")),
    asked("How much is the RTX 5090?", must="Em has no information", never="VND"),
    asked("How much is the RTX 5070?", must="15,490,000", never="8,990,000"),
    asked("Do you sell laptops?", must="Em has no information", never="chưa có thông tin"),
    asked("RTX 5090 giá bao nhiêu?", must="chưa có thông tin", never="đồng"),
    asked("RTX 5070 còn hàng không?", must="RTX 5070 12GB", never="RTX 5060"),
    asked("tôi muốn chơi game", "khoảng 30 triệu", "còn hàng không?", must="GAMER-30", never="8.990.000"),
    asked("Card nào rẻ nhất, giá bao nhiêu?", must="8.990.000", never="bảo hành 36 tháng"),
    asked("tôi muốn chơi game", must=("GAMER-20", "GAMER-30")),
    asked("Máy bị lỗi thì làm sao?", must="Sản phẩm lỗi phần cứng"),
    asked("RTX 5060 giá bao nhiêu?", "Cảm ơn", must="không có gì", never="8.990.000"),
    asked("Cảm ơn shop", must="không có gì", never="cần em tư vấn lắp ráp máy"),
    asked("hello", must="Would quý khách like advice", never="tư vấn"),
    asked("hello", "build pc", "How much is the RTX 5060?", must="8,990,000", never="8.990.000"),
    asked("hello", "RTX 5060 giá bao nhiêu?", must="8.990.000", never="8,990,000"),
]


async def answers_to(folder: str, cases: list[Case], place: Path) -> list[Answer]:
    url = f"sqlite:///{place}/memory.db"
    answers: list[Answer] = []
    async with (
        open_memory(url, settings=SETTINGS) as memory,
        open_assistant(memory, SETTINGS, EXAMPLES / folder, url=url) as assistant,
    ):
        for number, case in enumerate(cases):
            scope = Scope("default", f"guest-{number}", f"talk-{number}")
            answers.append([await assistant.respond(Asked(scope, text)) for text in case.said][-1])
    return answers


@pytest.mark.parametrize(("folder", "cases"), [("hotel_concierge", HOTEL), ("pc_shop", SHOP)], ids=["hotel", "shop"])
async def test_what_is_quoted_is_about_what_was_asked(folder: str, cases: list[Case], tmp_path: Path) -> None:
    answers = await answers_to(folder, cases, tmp_path)
    wrong = {
        " / ".join(case.said): answer.text
        for case, answer in zip(cases, answers, strict=True)
        if not all(part in answer.text for part in case.must) or any(part in answer.text for part in case.never)
    }
    assert wrong == {}


async def test_two_examples_on_one_store_answer_from_their_own_documents(tmp_path: Path) -> None:
    """As whoever tries one after the other in one folder has them."""
    (shop,) = await answers_to("pc_shop", [asked("How long is the warranty?", must="")], tmp_path)
    (hotel,) = await answers_to("hotel_concierge", [asked("How long is the warranty?", must="")], tmp_path)

    assert "36-month warranty" in shop.text
    assert NOT_KNOWN["en"] in hotel.text


@pytest.mark.parametrize(
    "text", ["多少錢？", "那多少錢呢？", "幾點開始", "请问多少钱", "Bao nhiêu tiền?", "Giá bao nhiêu ạ?"]
)
def test_what_only_asks_names_nothing(text: str) -> None:
    assert names_no_subject(text)


@pytest.mark.parametrize(
    "text", ["早餐多少錢？", "可以帶狗嗎？", "Bữa sáng bao nhiêu tiền?", "How much is parking?", "👍", ""]
)
def test_what_names_something_does_not_only_ask(text: str) -> None:
    assert not names_no_subject(text)


def test_a_number_tells_things_apart_only_after_a_name() -> None:
    known = ["RTX 5060 costs 8 million.", "Open from 7 to 10, for 36 months."]
    assert numbers_named("How much is the rtx 5090, for 12 months, from 8 on?", known) == {"5090"}
    assert numbers_named("Is room 214 ready?", known) == frozenset()


@pytest.mark.parametrize(
    ("text", "ends"), [("bye", True), ("Thanks, bye!", True), ("thanks", False), ("bye the way", False), ("", False)]
)
def test_thanks_before_a_goodbye_end_the_talk_too(text: str, ends: bool) -> None:
    assert is_goodbye(text, ["bye"], ["thanks"]) is ends


@pytest.mark.parametrize(
    ("text", "language", "tells"),
    [
        ("My name is Ann.", "en-GB", True),
        ("My room is cold, what now?", "en", False),
        ("I want a towel", "en", False),
        ("我住在214號房。", "zh-TW", True),
        ("Ich habe Hunger", "de", False),
    ],
)
def test_who_only_tells_something_asks_nothing(text: str, language: str, tells: bool) -> None:
    assert is_statement(text, language) is tells


async def test_a_section_is_quoted_by_its_own_heading_and_a_heading_only_if_it_says_all() -> None:
    faq = Snippet(
        "Within 14 days.\n\n## Opening hours on holidays\n\nNine to noon.\n\n## We sell no cigarettes",
        "shop/faq.md#chunk_0",
        heading="Shop › Refunds",
    )

    async def answer(question: str) -> str:
        request = ChatRequest("", [Said("user", question)], found=[faq], language="en")
        return (await OfflineModel().reply(request)).text

    assert await answer("What are your opening hours on holidays?") == "Nine to noon."
    assert await answer("How do refunds work?") == "Within 14 days."
    assert await answer("Do you sell cigarettes?") == "We sell no cigarettes"
