"""Free conversation without a model: every kind of message that is no plain question, as people type it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.test_offline_answers import Case, answers_to, asked
from threadkeep.agent.dialogue_acts import beyond_documents, only_introduces, small_talk, without_greeting
from threadkeep.agent.spelling import Spelling, words_in
from threadkeep.models.chat.questions import is_question

SHOP, HOTEL = "pc_shop", "hotel_concierge"
NOTHING = ("no information", "chưa có thông tin", "Nie mam na ten temat", "沒有這方面")
PRICES = ("8.990.000", "8,990,000", "320", "450", "四百五十")

CLASSES: dict[str, list[tuple[str, Case]]] = {
    "thanks": [
        (SHOP, asked("RTX 5060 giá bao nhiêu?", "dạ cám ơn nhìu nha", must="không có gì", never=(*NOTHING, *PRICES))),
        (SHOP, asked("How much is the RTX 5070?", "thanx so muchhh", must="welcome", never=NOTHING)),
        (HOTEL, asked("Kiedy jest śniadanie?", "wielkie dzieki za informacje", must="Bardzo proszę", never=NOTHING)),
        (HOTEL, asked("早餐幾點？", "太好了，感謝您", must="不客氣", never=NOTHING)),
    ],
    "goodbyes": [
        (SHOP, asked("GAMER-20 giá bao nhiêu?", "thôi chào shop nhé", must="Hẹn gặp lại", never=NOTHING)),
        (SHOP, asked("tks shop nha, hom nao minh ghe lai sau, bai bai", must="Hẹn gặp lại", never=NOTHING)),
        (SHOP, asked("Bye!", must="See you again", never="Hẹn gặp lại")),
        (SHOP, asked("How much is the RTX 5060?", "great, see ya later", must="See you again", never=NOTHING)),
        (HOTEL, asked("Czy jest basen?", "dobra, to na razie!", must="Do usłyszenia", never=NOTHING)),
        (HOTEL, asked("有游泳池嗎？", "那就先這樣，掰掰", must="再見", never=NOTHING)),
    ],
    "complaints": [
        (SHOP, asked("Bàn phím mua tuần rồi bị hư phím, chán quá", must=("xin lỗi", "hóa đơn"), never=PRICES)),
        (SHOP, asked("The cooler I bought keeps crashing my PC", must="sorry", never=PRICES)),
        (SHOP, asked("giao cham qua, doi mai khong thay", must="xin lỗi", never=(*NOTHING, *PRICES))),
        (HOTEL, asked("The TV in my room doesn't work", must=("sorry", "reception"), never=PRICES)),
        (HOTEL, asked("W pokoju cieknie kran!", must=("przepraszam", "recepcji"), never=PRICES)),
        (HOTEL, asked("phong ban qua", must=("xin lỗi", "lễ tân"), never=PRICES)),
        (HOTEL, asked("房間的冷氣壞了，怎麼辦？", must=("抱歉", "櫃檯"), never=PRICES)),
    ],
    "what follows a complaint": [
        (HOTEL, asked("The heating is not working", "I'm in room 310", must="noted", never=PRICES)),
    ],
    "requests to do something": [
        (HOTEL, asked("Could you call me a taxi for six?", must="reception", never=("Check-in", *NOTHING))),
        (HOTEL, asked("Proszę zarezerwować stolik na jutro", must="recepcja", never="zarezerwowano")),
        (SHOP, asked("đặt giúp mình con RTX 5060", must=("không tự đặt", "8.990.000"))),
    ],
    "typos and missing spaces": [
        (SHOP, asked("RTX5070 gia bn", must="15.490.000", never="8.990.000")),
        (SHOP, asked("whats the waranty on motherbords", must="36 months")),
        (HOTEL, asked("is the parkin free", must="80 PLN", never="Wi-Fi")),
        (HOTEL, asked("o ktorej sniadnie?", must="7:00")),
    ],
    "follow-ups on what was quoted": [
        (SHOP, asked("RTX 5060 giá bao nhiêu?", "Có màu đen không?", must="màu đen")),
        (SHOP, asked("RTX 5070 giá bao nhiêu?", "con hang ko", must="RTX 5070", never=("RTX 5060", *NOTHING))),
        (SHOP, asked("Cấu hình GAMER-30 giá bao nhiêu?", "RAM của nó bao nhiêu GB?", must="32GB", never="GAMER-20")),
        (SHOP, asked("How much is the GAMER-20?", "how many watts is the PSU?", must="650 W")),
        (HOTEL, asked("When is breakfast served?", "Where?", must="ground floor", never=PRICES)),
        (HOTEL, asked("Is there a pool?", "And the gym?", must="no information", never="22:00")),
        (HOTEL, asked("雙人房多少錢？", "家庭房呢？", must="沒有這方面", never="四百五十")),
    ],
    "a language that is asked for": [
        (SHOP, asked("RTX 5060 giá bao nhiêu?", "reply in English please", must="English")),
        (SHOP, asked("còn hàng RTX 5070 không?", "could we speak English for the rest of this?", must="English")),
        (HOTEL, asked("Is there a pool?", "Proszę odpowiadać po polsku", must="po polsku")),
    ],
    "a request inside a greeting": [
        (HOTEL, asked("您好，請問停車場多少錢？", must="八十茲羅提")),
        (HOTEL, asked("Good afternoon! How much is a suite?", must="890")),
        (SHOP, asked("Chào shop, cho hỏi GAMER-20 giá nhiêu ạ", must="20.900.000")),
    ],
    "what the user told": [
        (HOTEL, asked("Hello, this is Robert", "When is breakfast?", "What's my name?", must="Robert")),
        (HOTEL, asked("Kiedy jest basen?", "Czy jest parking?", "O co pytałem na początku?", must="Kiedy jest basen?")),
        (SHOP, asked("my budget is 30 million", "How much did I say I have?", must="30 million", never=NOTHING)),
        (HOTEL, asked("do you charge for wifi", "is there a shuttle", must="no information", never="You said")),
    ],
    "the assistant itself": [
        (SHOP, asked("em là robot hả", must="trợ lý", never=NOTHING)),
        (HOTEL, asked("Who am I talking to?", must="Concierge", never=NOTHING)),
        (HOTEL, asked("你是真人嗎？", must="禮賓部", never=NOTHING)),
    ],
    "a call for help": [
        (HOTEL, asked("can you help me?", must="tell me a little more", never=NOTHING)),
        (HOTEL, asked("Mam pytanie", must="doprecyzowanie", never=NOTHING)),
    ],
    "unclear words that the documents answer": [
        (SHOP, asked("Shop có RX 9060 XT không?", must="hết hàng", never="tư vấn lắp ráp")),
        (SHOP, asked("Mua bàn phím thì bảo hành bao lâu?", must="12 tháng", never="tư vấn lắp ráp")),
    ],
    "free is no subject": [
        (HOTEL, asked("Is a room free tomorrow?", must="", never="Wi-Fi")),
        (HOTEL, asked("do you have sugar free jam", must="no information", never="Wi-Fi")),
    ],
    "refusals": [
        (SHOP, asked("RTX 5070 giá bao nhiêu?", "hok cần j nữa nha", must="Hẹn gặp lại", never=(*NOTHING, *PRICES))),
        (SHOP, asked("RTX 5070 giá bao nhiêu?", "ko", must="Hẹn gặp lại", never=(*NOTHING, *PRICES))),
        (SHOP, asked("RTX 5070 giá bao nhiêu?", "dạ không ạ, cảm ơn em", must="Hẹn gặp lại", never=NOTHING)),
        (SHOP, asked("RTX 5070 giá bao nhiêu?", "no that's all thank you", must="Hẹn gặp lại", never=NOTHING)),
        (SHOP, asked("How much is the RTX 5070?", "nah I'm good", must="See you again", never=(*NOTHING, *PRICES))),
        (HOTEL, asked("Kiedy jest śniadanie?", "nie trzeba, dzięki", must="Do usłyszenia", never=NOTHING)),
        (HOTEL, asked("早餐幾點？", "不用，謝謝", must="再見", never=NOTHING)),
    ],
    "orders and appointments": [
        (SHOP, asked("Cho tui chốt 1 bộ GAMER-30", must=("không tự đặt", "31.500.000"), never="GAMER-20")),
        (SHOP, asked("mình muốn đặt mua một con RTX 5070", must=("không tự đặt", "15.490.000"))),
        (SHOP, asked("cho chị hẹn lịch mang máy qua kiểm tra", must="không tự đặt", never=NOTHING)),
        (SHOP, asked("lên đơn giúp anh nhé", must="không tự đặt", never=NOTHING)),
        (SHOP, asked("I'd like to place an order for an RTX 5060", must=("cannot place orders", "8,990,000"))),
    ],
    "another name of two syllables": [
        (SHOP, asked("Bên mình có ship tận nơi không shop", must="Giao hàng miễn phí", never=NOTHING)),
        (SHOP, asked("ship tốn nhiêu tiền", must="Giao hàng miễn phí", never=("8.990.000", *NOTHING))),
        (SHOP, asked("what papers do I have to bring?", must="invoice", never=NOTHING)),
    ],
    "something broken, in Vietnamese": [
        (SHOP, asked("máy mình lấy hôm qua bật không lên", must=("xin lỗi", "hóa đơn"), never=PRICES)),
        (SHOP, asked("RTX 5060 vừa mua đã hỏng", must=("xin lỗi", "1 đổi 1"), never=PRICES)),
        (SHOP, asked("Chuột bị liệt nút, làm sao bây giờ?", must=("xin lỗi", "1 đổi 1"), never=PRICES)),
    ],
    "two things compared": [
        (SHOP, asked("5060 với 5070 khác nhau thế nào?", must=("8.990.000", "15.490.000"), never="GAMER")),
        (SHOP, asked("what's the difference between 5060 and 5070?", must=("8,990,000", "15,490,000"))),
    ],
    "what is told of a whole kind": [
        (SHOP, asked("GAMER-20 bảo hành bao lâu?", must="36 tháng", never="20.900.000")),
        (SHOP, asked("How long is the warranty on the RTX 5070?", must="36 months", never="15,490,000")),
        (SHOP, asked("RTX 5090 bảo hành bao lâu?", must="chưa có thông tin", never="36 tháng")),
    ],
    "above or below a price": [
        (SHOP, asked("Bộ nào không quá 25 triệu vậy shop?", must="GAMER-20", never=("GAMER-30", *NOTHING))),
        (SHOP, asked("card nào trên 12 triệu?", must="RTX 5070", never=("8.990.000", "9060", "GAMER"))),
        (SHOP, asked("any build under 25 million?", must="GAMER-20", never=("GAMER-30", "31.500.000"))),
        (SHOP, asked("có bộ nào rẻ hơn 15 triệu không", must="", never=("8.990.000", "20.900.000"))),
        (SHOP, asked("GAMER-20 giá bao nhiêu?", "Có bộ nào mạnh hơn không?", must="GAMER-30", never="GAMER-20")),
        (SHOP, asked("GAMER-30 giá bao nhiêu?", "có bộ nào rẻ hơn ko", must="GAMER-20", never="GAMER-30")),
    ],
    "a price of something else": [
        (HOTEL, asked("1 phòng đơn một đêm bao nhiêu?", must="chưa có thông tin", never="450")),
        (HOTEL, asked("Căn hộ giá bao nhiêu một đêm?", must="chưa có thông tin", never="450")),
        (HOTEL, asked("How much is parking per night?", must="80 PLN", never="320")),
        (HOTEL, asked("Ile kosztuje parking za noc?", must="80 zł", never="320")),
        (HOTEL, asked("How much is a family room?", must="no information", never="320")),
        (HOTEL, asked("Ile kosztuje pokój trzyosobowy?", must="Nie mam na ten temat", never="320")),
        (HOTEL, asked("Ile kosztuje basen?", must="Basen", never="80")),
        (HOTEL, asked("Ile kosztuje apartament?", must="890", never="65")),
        (HOTEL, asked("How much is a double room?", "and for three nights?", must="450 PLN", never=NOTHING)),
        (HOTEL, asked("Phòng đôi bao nhiêu?", "vậy 3 đêm hết bao nhiêu", must="450 PLN", never=NOTHING)),
        (HOTEL, asked("How much is the cheapest room?", must="320", never=NOTHING)),
        (HOTEL, asked("套房一晚多少錢？", must="沒有這方面", never="四百五十")),
    ],
    "a hello in a language without phrases": [
        (HOTEL, asked("hallo", must="How may I help you", never=("Xin chào", "Dzień dobry"))),
        (HOTEL, asked("Добрий день!", must="How may I help you", never=NOTHING)),
        (HOTEL, asked("merci beaucoup", must="You are welcome", never=NOTHING)),
        (SHOP, asked("hallo", must="lắp ráp máy", never=NOTHING)),
    ],
    "an amount": [(SHOP, asked("ráp giúp mình bộ máy tầm 31 triệu", must="GAMER-30", never="GAMER-20"))],
}


def _made(place: Path) -> Path:
    place.mkdir()
    return place


@pytest.mark.parametrize("what", list(CLASSES))
async def test_each_kind_of_message_is_met(what: str, tmp_path: Path) -> None:
    wrong: dict[str, str] = {}
    for folder in (SHOP, HOTEL):
        cases = [case for where, case in CLASSES[what] if where == folder]
        answers = await answers_to(folder, cases, _made(tmp_path / folder)) if cases else []
        for case, answer in zip(cases, answers, strict=True):
            if not all(part in answer.text for part in case.must) or any(part in answer.text for part in case.never):
                wrong[" / ".join(case.said)] = answer.text
    assert wrong == {}


@pytest.mark.parametrize(
    "text",
    [
        "Bye the way, is there parking?",
        "Thanks, how much is it?",
        "hi, I need a towel",
        "chào shop, còn hàng không",
        "ok?",
        "được không",
        "không có màu trắng",
        "no wifi",
    ],
)
def test_what_asks_for_something_is_no_small_talk(text: str) -> None:
    assert small_talk(text) is None


def test_a_greeting_is_left_out_of_what_is_looked_up() -> None:
    assert without_greeting("Hello! When is breakfast?") == "When is breakfast?"
    assert without_greeting("When is breakfast? Hello!") == "When is breakfast? Hello!"
    assert without_greeting("Hello!") == "Hello!"


@pytest.mark.parametrize("text", ["Is the pool noisy?", "gia ban phim", "em o phong nao", "Czy pokoje są głośne?"])
def test_a_question_about_how_it_feels_is_no_complaint(text: str) -> None:
    assert beyond_documents(text) is None


def test_who_introduces_himself_and_wants_something_is_answered() -> None:
    assert only_introduces("Hi, I'm Ann")
    assert not only_introduces("I'm Ann and I need a room")
    assert not only_introduces("I'm Ann, when is breakfast?")


def test_only_what_is_near_a_known_word_is_corrected() -> None:
    spelling = Spelling(words_in("Underground parking costs 80 PLN. RTX 5060, GAMER-20. Supplies"))
    assert spelling.meant("a prking lott", "en") == "a parking lott"
    assert spelling.meant("rtx5060 va gamer20", "vi") == "rtx 5060 va gamer 20"
    assert spelling.meant("walking a marking", "en") == "walking a marking"
    assert spelling.meant("k co j", "vi") == "khong co gi"
    assert spelling.meant("k co j", "en") == "k co j"


@pytest.mark.parametrize(
    ("text", "language", "is_one"),
    [
        ("con mau trang ko", "vi", True),
        ("czy jest winda", "pl", True),
        ("room 12", "en", False),
        ("幾點", "zh-Hant", True),
        ("máy mới mua", "vi", False),
        ("cho mình xem bo mạch chủ", "vi", False),
        ("mấy giờ mở cửa", "vi", True),
    ],
)
def test_a_question_needs_no_mark(text: str, language: str, is_one: bool) -> None:
    assert is_question(Spelling().meant(text, language), language) is is_one
