"""What a newcomer asks first, and gets answered out of the documents, without a model and without invention."""

from pathlib import Path

import pytest

from tests.agent.conftest import EXAMPLES
from threadkeep import Scope
from threadkeep.compose.assistant import open_assistant
from threadkeep.compose.memory import open_memory
from threadkeep.ports.chat import Answer, Asked
from threadkeep.settings import Settings

SHOP = {
    "Chính sách bảo hành thế nào?": "bảo hành 36 tháng",
    "Chinh sach bao hanh the nao?": "bảo hành 36 tháng",
    "Card đồ họa bảo hành mấy tháng?": "Card đồ họa và bo mạch chủ được bảo hành 36 tháng",
    "RTX 5060 giá bao nhiêu?": "8.990.000 đồng",
    "Tôi muốn ráp máy chơi game 20 triệu": "GAMER-20",
    "Có giao hàng miễn phí không?": "Giao hàng miễn phí trong nội thành",
    "Shop có trả góp không?": "trả góp",
    "Đổi trả thế nào?": "Đổi trả trong 7 ngày",
    "RX 9060 XT còn hàng không?": "hết hàng đến cuối tháng",
    "What is your warranty policy?": "36-month warranty",
    "How long is the warranty on an SSD?": "SSDs 60 months",
    "How much is the RTX 5070?": "15,490,000 VND",
    "Do you deliver for free?": "Delivery is free in the city",
    "I want to build a gaming PC": "GAMER-20",
    "My graphics card is broken": "graphics cards and motherboards 36 months",
}
HOTEL = {
    "O której jest śniadanie?": "od 7:00 do 10:30",
    "Czy jest parking?": "80 zł",
    "O której trzeba się wymeldować?": "wymeldowanie do 11:00",
    "Dzień dobry": "W czym mogę pomóc?",
    "Hi": "How may I help you?",
    "What time is breakfast?": "7:00 to 10:30",
    "Is there a parking lot?": "80 PLN",
    "Is the wifi free?": "Wi-Fi is free",
    "When is check-out?": "until 11:00",
    "早餐幾點？": "七點到十點半",
    "有停車場嗎？": "地下停車場",
    "退房時間是幾點？": "退房時間為十一點前",
    "無線網路免費嗎？": "免費無線網路",
}
UNKNOWN = {
    "Czy mogę przyjechać z psem?": "Nie mam na ten temat informacji",
    "Do you allow pets?": "I have no information about that",
    "可以帶寵物嗎？": "目前沒有這方面的資料",
}


async def answers_to(folder: str, questions: dict[str, str], place: Path) -> dict[str, Answer]:
    url = f"sqlite:///{place}/memory.db"
    settings = Settings(DATABASE_URL=url)  # pyright: ignore[reportCallIssue]
    async with (
        open_memory(url, settings=settings) as memory,
        open_assistant(memory, settings, EXAMPLES / folder, url=url) as assistant,
    ):
        asked = [
            Asked(Scope("default", f"guest-{number}", f"talk-{number}"), text) for number, text in enumerate(questions)
        ]
        return {one.text: await assistant.respond(one) for one in asked}


@pytest.mark.parametrize(
    ("folder", "questions"), [("pc_shop", SHOP), ("hotel_concierge", HOTEL | UNKNOWN)], ids=["shop", "hotel"]
)
async def test_first_questions_are_answered_from_the_documents(
    folder: str, questions: dict[str, str], tmp_path: Path
) -> None:
    answers = await answers_to(folder, questions, tmp_path)
    wrong = {
        question: answers[question].text for question, told in questions.items() if told not in answers[question].text
    }
    assert wrong == {}


async def test_of_a_document_in_several_languages_the_talks_own_is_quoted(tmp_path: Path) -> None:
    asked = {"Czy jest parking?": "", "Is there a parking lot?": ""}
    polish, english = [one.text for one in (await answers_to("hotel_concierge", asked, tmp_path)).values()]
    assert "costs" not in polish
    assert "kosztuje" not in english
