"""What a question asks for, by its words: its form, the kind of thing it wants, its subject and common attributes.

"When is the gym open?" is about a gym: a sentence on the opening hours of something else does not answer it. Patterns run
on folded text, so that questions typed without diacritics match too.
"""

from __future__ import annotations

# ruff: noqa: E501 -- tables of patterns, one row per language or form
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from threadkeep.models.language import closest
from threadkeep.recall.normalise import (
    BY_LANGUAGE,
    fold,
    function_words,
    is_syllable,
    is_written_without_spaces,
    stem,
    terms_of,
    words_of,
)

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


QUESTION_MARKS = ("?", "？")
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
    return folded.endswith(QUESTION_MARKS) or bool(re.search(own, folded) if own else _ASKS.search(folded))


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
_AMOUNT_OF_MONEY = re.compile(
    r"\d[\d.,]*\s*(?:million|mln|m\b|k\b|trieu|tr\b|cu\b|dong|vnd|usd|pln|zl|\$|€|萬|万|元)|[$€]\s*\d"
)

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
        return lambda said: bool(_AMOUNT_OF_MONEY.search(fold(said)))
    return None


# Folded, as terms are. They bear on nothing, and would make what does a smaller share of the question.
_ASKING = {
    "vi": frozenset({"the", "nao", "sao", "gi", "dau", "may", "bao", "nhieu", "khong", "cho", "hoi", "xin", "shop"}),
    "zh-Hant": frozenset({"多", "少", "錢", "幾", "嗎", "幾點", "請問"}),
    "zh-Hans": frozenset({"多", "少", "钱", "几", "吗", "几点", "请问"}),
}
# Hours and prices, which many things have; the house itself, where all of them are; wanting. Vietnamese in pairs.
_OF_MANY = {
    "en": "open opens opening close closes closing closed hour hours time times cost costs price prices cheapest"
    " cheaper"
    " free charge charges fee fees",
    "pl": "otwarty otwarta otwarte otwarcia czynny czynna czynne godzina godzinie godziny zamykany zamykana"
    " kosztuje kosztują koszt cena cenie ceny najtańszy najtańsza bezpłatny bezpłatna bezpłatne darmowy darmowa darmowe"
    " płatny płatna płatne",
    "vi": "gia gio luc mo_cua dong_cua thoi_gian gia_ca gia_tien nhieu_tien re_nhat khach_san cua_hang"
    " toi_muon toi_can cho_toi mo dong mien_phi mat_tien ton_tien tinh_tien mat_phi thu_phi tinh_phi",
    "zh-Hant": "開放時間 營業時間 開門 關門 打烊 價格 價錢 費用 最便宜 飯店 酒店 免費 收費",
    "zh-Hans": "开放时间 营业时间 开门 关门 打烊 价格 价钱 费用 最便宜 饭店 酒店 免费 收费",
}
# Units that prices are given by; alone in a question they mean that long ("and for two nights?").
_BY_TIME = {
    "en": "night nights day days",
    "pl": "noc noce nocy doba dobę doby dzień dni",
    "vi": "dem mot_dem moi_dem ban_dem qua_dem mot_ngay moi_ngay",
    "zh-Hant": "一晚 每晚 晚上 每天 一天",
    "zh-Hans": "一晚 每晚 晚上 每天 一天",
}
# Alone in a question, these refer to the subject before it; beside other words they may be the subject themselves.
_OF_WHAT_WENT_BEFORE = {"en": "stock available", "pl": "dostępny dostępna dostępne", "vi": "con_hang het_hang"}


# In text without spaces, question words would form pairs with their neighbours.
_ASKING_IN_CHINESE = re.compile(
    r"[請请][問问]|多少[錢钱]?|[怎][麼么]算|在?哪[裡里兒儿]|可以|(?:[幾几][點点][鐘钟]?|什[麼么][時时]候|何[時时])"
    r"(?:[開开]始|[結结]束|[開开關关][門门])?|[嗎吗呢]|^那"
)


_AMOUNT = re.compile(
    r"\b\d+[.,]\d{1,2}\b(?! ?(?:gb|tb|ghz|inch|w)\b)|\b\d+ ?(?:million|mln|triệu|trieu|củ|cu|萬|万)(?!\w)",
    re.IGNORECASE,
)


def without_question_words(question: str) -> str:
    """The question without question words and amounts: "1.5 million" must not match a 1 or a 5."""
    return _ASKING_IN_CHINESE.sub(" ", _AMOUNT.sub(" ", question))


def _terms(words: str) -> frozenset[str]:
    whole = words.split()
    return frozenset(one for one in whole if "_" in one).union(terms_of(" ".join(w for w in whole if "_" not in w)))


# Everyday words for what documents call otherwise; few, and only such as hardly mean anything else.
_ALSO_CALLED = {
    "en": {"accommodation": "room", "lodging": "room"},
    "pl": {"nocleg": "pokój noc", "noclegi": "pokój noc"},
}
_OTHER_NAMES = {
    tag: {stem(fold(word)): terms_of(names) for word, names in words.items()} for tag, words in _ALSO_CALLED.items()
}
_LITTLE = BY_LANGUAGE["vi"]
_LITTLE_VIETNAMESE = _LITTLE | _ASKING["vi"] | {"tien", "gia", "gio", "luc", "vay", "a"}
_ATTRIBUTES = {tag: _terms(words) for tag, words in _OF_MANY.items()}
_TIMES = {tag: _terms(words) for tag, words in _BY_TIME.items()}
_CARRIED_ON = {tag: _terms(f"{_OF_MANY[tag]} {words}") for tag, words in _OF_WHAT_WENT_BEFORE.items()}


# Beside a subject, they name nothing.
_LIGHT_WORDS = {
    "en": "one ones each piece within inside tell know like get take need want say come would"
    " two three four five six seven eight ten",
    "pl": "sztuka sztukę jeden jedna jedno chodzi wyjdzie wyszło trzeba"
    " dwa dwie trzy cztery pięć sześć siedem dziesięć",
    "vi": "mot cai con chiec bo may minh em anh chi ban shop the thi dang luc hom tien gia gio vay a bao nhieu"
    " het",  # "hết nhiêu": what it comes to
}
_LIGHT = {tag: frozenset(stem(fold(word)) for word in words.split()) for tag, words in _LIGHT_WORDS.items()}


def is_light(term: str, language: str | None) -> bool:
    """Or a single character of what is written without spaces, a single digit, or a pair of what is light."""
    if is_written_without_spaces(term):
        return len(term) == 1
    light = closest(_LIGHT, language) or frozenset[str]()
    return (len(term) == 1 and term.isdigit()) or all(light & {half, stem(half)} for half in term.split("_"))


def is_question_word(term: str, language: str | None) -> bool:
    """Whether the term is a question word. A pair goes by its last syllable: the first may be half of a word."""
    asking = closest(_ASKING, language) or frozenset[str]()
    last = term[-1] if is_written_without_spaces(term) else term.split("_")[-1]
    return term in asking or last in asking


def names_no_subject(question: str) -> bool:
    """Whether the question names no subject of its own: "how much?"."""
    rest = without_question_words(question)
    if any(map(is_written_without_spaces, rest)) or not any(map(str.isalnum, question)):
        return False
    return all(word in _LITTLE_VIETNAMESE for word in words_of(rest))


def little_terms(question: str, language: str | None) -> frozenset[str]:
    """The question's function words, stemmed."""
    words = words_of(question)
    return frozenset(stem(word) for word in function_words(words, language).intersection(words))


def other_names(terms: Iterable[str], language: str | None) -> list[str]:
    """What else the things may be called that the terms name."""
    known = closest(_OTHER_NAMES, language) or {}
    return [name for term in terms for name in known.get(term, ()) if "_" not in name]


# Before or behind a noun, such a word says which one is meant.
_NOT_WHICH = re.compile("per|for|rent|book|reserve|have|having|get|use|using|take|nice|good|hotel|normal|usual|average")
_POLISH_ADJECTIVE = re.compile(r"\w{3,}(?:n|sk|ow|ck|t|w|zn)(?:y|a|e|ego|ej|i|iego|iej)")


def is_of_another_kind(question: str, language: str | None, named: Collection[str], known: Collection[str]) -> bool:
    """Whether it wants a kind of a thing that documents do not have: a triple room, where they know single ones.

    `named` are the terms of it that they hold, `known` all of theirs.
    """
    words, little = words_of(question), function_words(words_of(question), language)

    def tells_which(word: str) -> bool:
        term = stem(word)
        attributes = closest(_ATTRIBUTES, language) or frozenset[str]()
        unknown = term not in known and word not in little and term not in attributes and not is_light(term, language)
        return unknown and word.isalpha() and not _NOT_WHICH.fullmatch(word)

    base = (language or "").split("-")[0]
    for before, word in pairwise(words):
        if base == "en" and stem(word) in named and tells_which(before):
            return True
        pair = ((before, word), (word, before)) if base == "pl" else ()
        if any(stem(noun) in named and _POLISH_ADJECTIVE.fullmatch(one) and tells_which(one) for noun, one in pair):
            return True
    return False


# By language and name: what documents call a thing that users call so.
AlsoCalled = Mapping[str, Mapping[str, Sequence[str]]]


def names_for(question: str, language: str | None, called: AlsoCalled) -> dict[str, Sequence[str]]:
    """What a question names in other words than documents, and what they call it; without marks it is met without."""
    plain = question.isascii()
    said = fold(question) if plain else question.casefold()
    table = closest(called, language) or {}

    def is_said(word: str) -> bool:
        spelt = fold(word) if plain else word.casefold()
        if is_written_without_spaces(spelt):
            return spelt in said
        return bool(re.search(rf"(?<!\w){re.escape(spelt)}(?!\w)", said))

    return {word: names for word, names in table.items() if is_said(word)}


def attributes_in(terms: Collection[str], language: str | None, is_carried: bool = False) -> frozenset[str]:
    """Those of a question's terms that many subjects have, with the syllables they are made of.

    `is_carried` says that the question has a subject from the one before.
    """
    carried = closest(_CARRIED_ON, language) if is_carried else None
    table = carried or closest(_ATTRIBUTES, language) or frozenset[str]()
    found = table.intersection(terms)
    syllables = {stem(half) for one in found for half in one.split("_")}
    between = {one for one in terms if "_" in one and syllables.issuperset(map(stem, one.split("_")))}
    return found | between | syllables.intersection(terms)


def times_in(terms: Iterable[str], language: str | None) -> frozenset[str]:
    """Those of a question's terms that say for how long."""
    return (closest(_TIMES, language) or frozenset[str]()).intersection(terms)


def subjects_in(
    terms: Iterable[str], attributes: Collection[str], language: str | None, foreign: Collection[str] = ()
) -> frozenset[str]:
    """Those of which a sentence must hold one to bear on the question; none where it names no subject.

    Single syllables and characters stand in everything: where words are written as two of them, only such pairs, and
    what is `foreign` to that, count.
    """
    rest = frozenset(terms).difference(attributes)
    pairs = {one for one in rest if is_written_without_spaces(one) and len(one) == 2}
    if language is None or language.split("-")[0].lower() == "vi":
        pairs |= {one for one in rest if "_" in one}
    said_in_two = any(not _LITTLE.intersection(one.split("_")) for one in pairs)
    written_in_two = any(map(is_written_without_spaces, rest))
    return rest & pairs.union(foreign) if said_in_two or written_in_two else rest


def foreign_terms(question: str) -> frozenset[str]:
    """Of the words in it that are no Vietnamese syllables: names, numbers, borrowed ones."""
    return frozenset(stem(word) for word in words_of(question) if not is_syllable(word))


_MODEL = re.compile(r"(?<![\w.,-])\d{3,}(?![\w.,])")  # "the 5060", without its name
_NUMBERED = re.compile(r"([^\W\d_]+)[ \-\u2011](\d+)(?!\w)")


_OF_A_MODEL = re.compile(rf"{_MODEL.pattern}|\b[A-Z]{{2,}}-\d")


def names_a_model(text: str) -> bool:
    return bool(_OF_A_MODEL.search(text))


def numbers_named(question: str, texts: Iterable[str]) -> frozenset[str]:
    """The numbers that distinguish things of a kind: "RTX 5090", where the texts know an "RTX 5060".

    Only after what the texts write with a capital: "from 7" and "for 36 months" are no names.
    """
    asked = {(fold(name), number) for name, number in _NUMBERED.findall(question)}
    alone = set(_MODEL.findall(question))
    if not asked and not alone:
        return frozenset()
    known = {(fold(name), number) for text in texts for name, number in _NUMBERED.findall(text) if name != name.lower()}
    names, numbers = {name for name, _ in known}, {number for _, number in known}
    return frozenset(number for name, number in asked if name in names) | (alone & numbers)
