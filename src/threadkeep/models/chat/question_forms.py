"""What form a question has: whether it is one, what kind of thing it asks for, and whether it means what was quoted.

Patterns run on folded text, so that what is asked without diacritics is asked all the same.
"""

# ruff: noqa: E501 -- tables of patterns, a language or a form to a line

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from threadkeep.models.language import closest
from threadkeep.recall.normalise import fold

# Folded. What kind of thing is asked for, and how a text shows that it has one.
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


def kind_asked_for(question: str) -> re.Pattern[str] | None:
    """How a sentence shows, folded, that it has what is asked for: a price, an hour, a duration, a place."""
    folded = fold(question)
    return next((shown for asked, shown in _ASKS_FOR_KINDS if asked.search(folded)), None)


def asks_for_a_price(question: str) -> bool:
    return bool(_ASKS_FOR_KINDS[0][0].search(fold(question)))


def unit_asked_for(question: str) -> re.Pattern[str] | None:
    """How a sentence shows, folded, that it has a figure in what is asked for."""
    folded = fold(question)
    return next((shown for asked, shown in _ASKS_FOR_UNITS if asked.search(folded)), None)


def asks_for_people(question: str) -> re.Pattern[str] | None:
    """How a sentence shows how many there may be: nothing else answers that."""
    return _PEOPLE if _ASKS_FOR_PEOPLE.search(fold(question)) else None


_AMOUNTS = re.compile(r"(\d+(?:[.,]\d{1,2})?) ?(?:million|mln|triệu|trieu|củ|cu|m)(?!\w)", re.IGNORECASE)
_PRICES = re.compile(r"(?<!from )(?<!từ )\d{1,3}(?:[.,]\d{3}){2,}")  # "for orders from 2,000,000" is none


def amounts_in(question: str) -> list[float]:
    return [float(found.replace(",", ".")) * 1_000_000 for found in _AMOUNTS.findall(question)]


def is_near(amounts: Iterable[float], text: str) -> bool:
    """Whether one of the prices in a text is about as much as somebody wants to spend."""
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


def asks(text: str, language: str | None = None) -> bool:
    """Whether it is a question, with a mark or, as in a chat, without."""
    folded = fold(_SYLLABLE.sub(_as_marked, unicodedata.normalize("NFC", text.strip())))
    own = closest(_BEGINS_A_QUESTION, language)
    return folded.endswith(_ASKED) or bool(re.search(own, folded) if own else _ASKS.search(folded))


def _as_marked(syllable: re.Match[str]) -> str:
    """Itself, if it may be the word that asks."""
    word = syllable[0].lower()
    plain = fold(word)
    return "_" if word != plain and _MARKED.get(plain, word) != word else word
