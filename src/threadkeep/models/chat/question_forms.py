"""The form of a question: whether it is one, which kind of thing it wants, and whether it refers to the last answer.

Patterns run on folded text, so that questions typed without diacritics match too.
"""

from __future__ import annotations

# ruff: noqa: E501 -- tables of patterns, one row per language or form
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence

from threadkeep.models.language import closest
from threadkeep.recall.normalise import fold

# Folded. Which kind of thing a question wants, and how a text shows that it has one.
_KINDS = (
    (
        r"\b(?:how much|price\w*|costs?|cheap\w*|charges?|fees?|ile (?:to )?(?:kosztuje|za)|cen[aey]|tan\w+|kosztuje|platn\w+|ile by"
        r"|gia|re nhat|bao nhieu tien|may tien|nhieu tien|het nhieu|mat tien|ton tien|phi)\b|多少[錢钱]|[價价][格錢钱]|便宜|[費费]",
        r"\d[\d., ]*(?:dong|vnd|pln|zl|usd|eur)\b|[$€]\s?\d|\d+ ?元|茲羅提|\b(?:free|mien phi|bezplatn\w+)\b|免[費费]",
    ),
    (
        r"\b(?:when|what time|until when|till|hours?|o ktorej|od ktorej|do ktorej|kiedy|ktora godzin\w+|may gio|luc nao|khi nao|bao gio)\b"
        r"|[幾几][點点]|什[麼么][時时]候|何[時时]",
        r"\b\d{1,2}[:.]\d\d\b|[點点]|\b(?:cuoi|dau) thang\b|\bend of\b",
    ),
    (
        r"\b(?:how long|how many (?:months|years|days)|bao lau|may (?:ngay|thang|nam|hom)|jak dlugo|ile (?:dni|miesiecy|lat)|na jak dlugo)\b|多久",
        r"\b\d+[ -](?:(?:working )?days?|months?|years?|ngay|thang|nam|dni|miesi\w+|lat)\b|\d+[天年]|[個个]月",
    ),
    (
        r"\b(?:where|gdzie|o dau|cho nao)\b|哪[裡里兒儿]|哪边",
        r"\b(?:floor|restaurant|centre|center|parter\w*|restauracj\w+|tang|nha hang|trung tam)\b|[樓楼]|餐[廳厅]",
    ),
)
_UNITS = (
    (r"\b(?:watts?|wattage|watow|bao nhieu w|may w|cong suat)\b|瓦", r"\b\d+ ?w\b"),
    (r"\b(?:gigabytes?|(?:how many|bao nhieu|may|ile) gb)\b", r"\b\d+ ?gb\b"),
)
_ASKS_FOR_UNITS = tuple((re.compile(asked), re.compile(shown)) for asked, shown in _UNITS)
_ASKS_FOR_PEOPLE = re.compile(
    r"\b(?:how many (?:people|persons|guests|of us)|ilu (?:os\w+|gosci|nas)|may (?:nguoi|khach)|bao nhieu nguoi)\b|[幾几多][少個个]?[人位]"
)
_PEOPLE = re.compile(r"\b\d+ (?:people|persons|guests|os\w+|gosci|nguoi|khach)\b|\d+ ?[人位]")
_ASKS_FOR_KINDS = tuple((re.compile(asked), re.compile(shown)) for asked, shown in _KINDS)
_POINTS_BACK = re.compile(
    r"\b(?:it|its|that one|this one|these|those|them|they|inside|in there)\b|\b(?:tam|w tym|tego|tej|ten|ta|to)\b"
    r"|\b(?:bo|con|cai|chiec|loai|mau|goi|phong|ban|san pham|hang) (?:nay|do|kia|ay)\b|\bno\b|\bhang ve\b|\bco lai\b"
    r"|[這这那]|它|其中"
)


def kind_wanted(question: str) -> re.Pattern[str] | None:
    """The pattern of folded sentences that have what the question wants: a price, an hour, a duration, a location."""
    folded = fold(question)
    return next((shown for asked, shown in _ASKS_FOR_KINDS if asked.search(folded)), None)


def wants_price(question: str) -> bool:
    return bool(_ASKS_FOR_KINDS[0][0].search(fold(question)))


def unit_wanted(question: str) -> re.Pattern[str] | None:
    """The pattern of folded sentences that have a figure in the wanted unit."""
    folded = fold(question)
    return next((shown for asked, shown in _ASKS_FOR_UNITS if asked.search(folded)), None)


def wants_head_count(question: str) -> re.Pattern[str] | None:
    """The pattern of sentences that say for how many people; only those answer the question."""
    return _PEOPLE if _ASKS_FOR_PEOPLE.search(fold(question)) else None


_AMOUNTS = re.compile(r"(\d+(?:[.,]\d{1,2})?) ?(?:million|mln|triệu|trieu|củ|cu|m)(?!\w)", re.IGNORECASE)
_PRICES = re.compile(r"(?<!from )(?<!từ )\d{1,3}(?:[.,]\d{3}){2,}")  # "for orders from 2,000,000" is none


def amounts_in(question: str) -> list[float]:
    return [float(found.replace(",", ".")) * 1_000_000 for found in _AMOUNTS.findall(question)]


def is_near(amounts: Iterable[float], text: str) -> bool:
    """Whether one of the prices in a text is within 15 % of one of the amounts."""
    return any(0.85 * amount <= price <= 1.15 * amount for amount in amounts for price in prices_in(text))


# Before an amount, or after it where a language says so: what it must not pass, or must.
_AT_MOST = re.compile(
    r"\b(?:under|below|less than|cheaper than|at most|up to|within|max(?:imum)?|no more than|ponizej|taniej niz|tansz\w+ niz"
    r"|mniej niz|najwyzej|maks\w*|duoi|khong qua|toi da|re hon|thap hon|it hon|nho hon|be hon|chua toi) +[$€]?\d|\d[^.?!]{0,8}(?:以下|以內|以内)"
)
_AT_LEAST = re.compile(
    r"\b(?:over|above|more than|at least|powyzej|ponad|wiecej niz|drozej niz|tren|hon|lon hon|cao hon|nhieu hon|dat hon|it nhat)"
    r" +[$€]?\d|\d[^.?!]{0,8}(?:以上)"
)
_LESS = re.compile(
    r"\b(?:cheaper|less expensive|lower[ -]priced|tansz\w+|taniej|(?:re|mem|thap) hon)\b|更?便宜(?:一?點|一?点|的)"
)
_MORE = re.compile(
    r"\b(?:stronger|faster|better|more (?:powerful|expensive)|pricier|higher[ -]end|drozsz\w+|lepsz\w+|mocniejsz\w+|szybsz\w+"
    r"|(?:manh|cao|xin|dat|ngon|khoe|tot|nhanh|cao cap) hon)\b|更[強强好貴贵快]"
)


def fits(question: str, text: str, quoted: str = "") -> bool | None:
    """Whether a text has a price above or below the one that a question names, or above or below what was quoted.

    None where the question sets no such bound.
    """
    folded = fold(question)
    amounts = amounts_in(question)
    bounds = amounts or prices_in(quoted)
    below, above = (_AT_MOST, _AT_LEAST) if amounts else (_LESS, _MORE)
    if bounds and below.search(folded):
        return any(price < min(bounds) for price in prices_in(text))
    if bounds and above.search(folded):
        return any(price > max(bounds) for price in prices_in(text))
    return None


def prices_in(text: str) -> list[float]:
    return [float(re.sub("[.,]", "", price)) for price in _PRICES.findall(text)]


def points_back(question: str) -> bool:
    return bool(_POINTS_BACK.search(fold(question)))


_ASKED = ("?", "？")
_BEGINS_A_QUESTION = {
    "en": r"^(?:and |but |so |or |ok |okay )?(?:what|when|where|who|whom|whose|which|why|how|is|are|was|were|do|does|did|can"
    r"|could|will|would|should|may|has|have you|any|tell me|show me)\b",
    "pl": r"^(?:a |i |to |no |ale )?(?:czy|co|kto|kiedy|gdzie|jak|jaki|jaka|jakie|ile|ilu|ktory|ktora|ktore|o ktorej|od ktorej|do ktorej"
    r"|dlaczego|czemu|macie|jest|sa|moge|mozna|da sie)\b",
    "vi": r"\b(?:khong|chua|gi|nao|dau|may|bao nhieu|bao lau|bao gio|sao|the nao|ai|ha|phai khong|chu)(?: (?:a|vay|the|nhi|ban|shop|em|ad|nhe|day))*\W*$"
    r"|\b(?:may|bao nhieu) (?:ngay|gio|thang|nam|tien|cai|hom|nguoi|gb|w)\b|^(?:co|con|bao|may|gia|cho (?:minh|toi|em|anh|chi)? ?hoi)\b",
    "zh": r"[嗎吗呢]|什[麼么]|[幾几]|哪|怎|多少|有沒有|有没有|可不可以|能不能|是不是",
}
_ASKS = re.compile("|".join(f"(?:{one})" for one in _BEGINS_A_QUESTION.values()))
# With other marks they are other words: "máy" is a machine, and "chủ" half of a mainboard.
_MARKED = {"may": "mấy", "gia": "giá", "con": "còn", "co": "có", "dau": "đâu", "chu": "chứ", "ha": "hả", "bao": "bao"}
_SYLLABLE = re.compile(r"[^\W\d_]+")


def is_question(text: str, language: str | None = None) -> bool:
    """Whether it is a question, with a mark or, as in a chat, without."""
    folded = fold(_SYLLABLE.sub(_as_marked, unicodedata.normalize("NFC", text.strip())))
    own = closest(_BEGINS_A_QUESTION, language)
    return folded.endswith(_ASKED) or bool(re.search(own, folded) if own else _ASKS.search(folded))


def _as_marked(syllable: re.Match[str]) -> str:
    """The syllable, if it may be a question word."""
    word = syllable[0].lower()
    plain = fold(word)
    return "_" if word != plain and _MARKED.get(plain, word) != word else word


# Folded. Questions about the first question.
_FIRST = re.compile(
    r"\b(?:first|begin|began|beginning|start(?:ed)? with|initially)\b[^.!?]*\b(?:i|we|me|my)\b|\b(?:i|my)\b[^.!?]*\b(?:first|begin|began|beginning|initially)\b"
    r"|\b(?:cau|dieu|cai)(?: hoi)? dau tien\b|\b(?:luc|ban) dau\b[^.!?]*\b(?:hoi|noi|nhan)\b"
    r"|\b(?:najpierw|na poczatku|pierwsz\w+|jako pierwsze)\b[^.!?]*\b(?:pyta\w*|mowi\w*|zapyta\w*|pisa\w*|napisa\w*)\b"
    r"|\b(?:pyta\w*|mowi\w*|zapyta\w*|pytani\w*)\b[^.!?]*\b(?:najpierw|na poczatku|pierwsz\w+)\b"
    r"|(?:一開始|一开始|最開始|最开始|剛開始|刚开始|最初|第一[個个][問问][題题])"
)
_ASKED_OR_SAID = re.compile(
    r"\b(?:ask\w*|question\w*|say|said|write|wrote|begin|began|start\w*|hoi|noi|nhan|pyta\w*|zapyta\w*|mowi\w*|pisa\w*|napisa\w*)\b|[問问說说]"
)
# What may be of the user, or of what is his here: "when is my check-out?".
_HIS = re.compile(
    r"\b(?:what|which|where|when|how \w+)(?:'s| is| was| are| were)? my\b"
    r"|\b(?:gdzie|kiedy|ktor\w+|co)\b[^.!?]*\b(?:mieszkam|jestem|przyjezdzam|wyjezdzam|przylatuje|wylatuje)\b"
    r"|\b(?:toi|minh) (?:dang )?o (?:phong|dau|tang)\b|我住"
)
# Questions about what the user wrote or is, which nothing else answers.
_OWN = re.compile(
    r"\bwho (?:am i|i am)\b|\b(?:which|what) \w+ am i\b"
    r"|\b(?:i|we) (?:told|said|mention\w*|gave|asked)\b|\bdid i (?:say|tell|mention|give|ask)\b|\b(?:do|can) you (?:still )?remember\b|\bremind me\b"
    r"|\b(?:minh|toi|em|anh|chi) (?:ten|ho)(?: la)? gi\b|\bten (?:minh|toi|em|anh|chi)(?: la)? gi\b"
    r"|\bcon nho\b|\bnho (?:minh|toi|em|anh|chi) (?:la|ten|o|da|noi|khong)\b|\b(?:minh|toi|em|anh|chi) (?:vua|da) (?:noi|ke|bao|hoi|nhac)\b|\bnhac lai\b"
    r"|\bprzypomn\w+\b|\bpamieta\w*\b|\b(?:mowil|wspominal|powiedzial|podal|pisal|pytal)[ae]m\b|\bjak (?:mam na imie|sie nazywam)\b|\bkim jestem\b"
    r"|我[剛刚][才剛刚]?[^。！？]{0,3}[說说問问講讲]|我[說说][過过]|記得我|记得我|還記得|还记得|我(?:叫|姓)什[麼么]|我是[誰谁]"
)
_WHO = re.compile(r"\bwho\b|\bname\b|\bten\b|\bho (?:la )?gi\b|\b(?:ai|kim|imie|nazyw\w+)\b|叫什|姓什|[誰谁]")
_TOLD_A_NAME = re.compile(
    r"\b(?:i'?m|i am|my name is|this is|name's) (?!an? |the |not |in |looking|from )[a-z]+|\bmam na imie\b|\bnazywam sie\b"
    r"|\b(?:ten la|ten toi la|ten minh la|ten) (?!gi\b)[a-z]+|我姓|我叫|我是"
)
_AMOUNT_ASKED = re.compile(
    r"\b(?:budget|amount|how much|ngan sach|bao nhieu tien|budzet\w*|kwot\w*|ile)\b|[預预]算|多少"
)
_AMOUNT = re.compile(r"\d[\d.,]*\s*(?:million|mln|m\b|k\b|trieu|tr\b|cu\b|dong|vnd|usd|pln|zl|\$|€|萬|万|元)|[$€]\s*\d")

Matches = Callable[[str], bool]


def first_question(question: str, earlier: Sequence[str]) -> str | None:
    """The user's first question, where this question wants that; else None."""
    folded = fold(question)
    wants_first = earlier and _FIRST.search(folded) and _ASKED_OR_SAID.search(folded)
    return next((one for one in earlier if is_question(one)), earlier[0]) if wants_first else None


def may_be_about_user(question: str) -> bool:
    """Whether an earlier message of the user may answer it."""
    return is_about_user(question) or bool(_HIS.search(fold(question)))


def is_about_user(question: str) -> bool:
    """Whether only an earlier message of the user can answer it, and no document."""
    return bool(_OWN.search(fold(question).replace("’", "'")))


def matcher_of_own_detail(question: str) -> Matches | None:
    """A test for the earlier messages that answer by their kind without sharing a word: a name, an amount."""
    folded = fold(question)
    if _WHO.search(folded):
        return lambda said: bool(_TOLD_A_NAME.search(fold(said)))
    if _AMOUNT_ASKED.search(folded):
        return lambda said: bool(_AMOUNT.search(fold(said)))
    return None
