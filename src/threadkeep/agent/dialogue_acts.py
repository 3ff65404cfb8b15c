"""Dialogue acts that documents do not answer, by lists of words: small talk, complaints, requests, "who are you?".

The words are listed by language. A message is small talk if it is made of these and of nothing else; its words are
folded: people leave diacritics out, and shorten what they write every day. Complaints with their marks are compared with
marks, and without where the message has none; a single Vietnamese syllable means too much without them and is then not
looked for. One list serves both scripts of Chinese.
"""

from __future__ import annotations

# ruff: noqa: E501 -- tables of patterns, one row per language or form
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from threadkeep.agent.spelling import spelt
from threadkeep.models.chat.questions import QUESTION_MARKS, is_question
from threadkeep.models.language import closest
from threadkeep.recall.normalise import CJK, fold, is_written_without_spaces

Act = Literal["goodbye", "thanks", "never_mind", "help", "understood", "hello", "enough"]
# Which of several counts: "hi, thanks, bye" is a goodbye.
BY_WEIGHT: tuple[Act, ...] = ("goodbye", "thanks", "never_mind", "help", "understood", "hello", "enough")

# Used in every language.
_EVERYWHERE: dict[Act, str] = {
    "thanks": "thanks|thank you|thank u|thankyou|thx|thks|tks|tnx|thanx",
    "goodbye": "bye|bye bye|byebye|goodbye",
    "hello": "hello|hi|hey",
    "understood": "ok|okay|okey|oki|okie|oke|okela|kk",
}
_EVERYWHERE_BESIDE = "super|wow|lol|haha|hehe|hihi|xd"

WORDS: dict[str, dict[Act, str]] = {
    "en": {
        "hello": "hello there|hi there|hey there|hiya|howdy|yo|greetings|good morning|good afternoon|good evening"
        "|good day|morning|evening",
        "thanks": "thank|ty|tysm|cheers|ta|much appreciated|appreciate it|appreciated|grateful|very helpful|so helpful"
        "|that helps|helpful|thanks a lot|many thanks",
        "goodbye": "good bye|cya|cu|c u|see you|see ya|see u|later|laters|ttyl|talk to you later|talk later|good night"
        "|goodnight|take care|have a (?:nice|good|great|lovely|wonderful) (?:day|evening|night|one|weekend|time)"
        "|that s all|that is all|thats all|that will be all|that ll be all|that s it|that was all|i m done|im done"
        "|nothing else|gotta go|got to go|i have to go|have to go|i must go|i m off|farewell|so long|speak soon"
        "|no thanks|no thank you|no thx|no need|not needed",
        "enough": "no|nope|nah|nothing|not really|i m good|im good|we re good|all good|i m fine|im fine|i m all set|all set",
        "never_mind": "never mind|nevermind|nvm|forget it|forget about it|doesn t matter|no worries|no problem",
        "understood": "got it|gotcha|i see|understood|fair enough|makes sense|that makes sense|alright|all right"
        "|all clear|sounds good|good to know|noted|i understand|fine",
        "help": "i have a question|i have got a question|i ve got a question|have a question|quick question|a question"
        "|can you help(?: me)?|could you help(?: me)?|i need(?: some| your)? help|need help|help me|help"
        "|can i ask(?: you)? something|may i ask(?: you)? something|can i ask you a question",
    },
    "vi": {
        "hello": "xin chao|chao|alo|alo alo|hallo (?:ban|shop|em|anh|chi|ad)|helo|hi ban",
        "thanks": "cam on|camon|cam mon|cam un|biet on|da ta|cam on nhieu|cam on rat nhieu",
        "goodbye": "tam biet|bai|bai bai|baibai|pai|pp|bb|hen gap lai|hen gap|gap lai sau|hen lan sau|gap sau"
        "|di day|di nhe|di nha|nghi day|ngu day|ngu ngon|thoi chao|chao tam biet|the thoi|vay thoi|the la het|het roi"
        "|xong roi|khong con gi|khong can nua|khong can gi them|khong can gi nua|khong can|khong hoi gi nua"
        "|chuc (?:ban|shop|em|anh|chi)?(?: ?mot)? ?ngay (?:tot lanh|vui ve)"
        "|(?:khong|chua|chang|cha) (?:can|hoi|muon|mua|thac mac)(?: (?:gi|nua|them|dau|khac|hoi|ho tro|giup|mua))*"
        "|(?:khong con|khong co|het) (?:gi|cau hoi|thac mac)(?: (?:gi|nao))* (?:nua|them|khac)(?: dau)?",
        # Behind other words it makes a question: "được không".
        "enough": "thoi|^khong|^(?:da|vang|thoi|u) khong(?! (?:sao|co|con|can|hoi|muon|mua|phai|thac))",
        "never_mind": "bo qua|bo qua di|khong sao|khong co gi|thoi khoi|khoi can|khoi",
        "understood": "ro roi|hieu roi|ra vay|ra the|ra la vay|biet roi|nam duoc roi|duoc roi|on roi|vay a|the a|tot qua"
        "|hay qua|tuyet voi|vay la ro",
        "help": "cho (?:minh|toi|em|anh|chi) hoi|cho hoi|(?:giup|ho tro|tu van)(?: cho)? (?:minh|toi|em|anh|chi)(?: voi)?"
        "|(?:can|muon)(?: duoc)? (?:giup|giup do|ho tro|tu van|hoi)|co cau hoi|help",
    },
    "pl": {
        "hello": "dzien dobry|dobry|dobry wieczor|czesc|witam|witaj|witajcie|hej|hejka|siema|siemka|siemanko|halo|elo"
        "|serwus|dzindobry",
        "thanks": "dziekuje|dzieki|dziekujemy|dziekowac|dzienki|dzienkuje|dziena|dzieks|dziex|dzx|podziekowania|wdzieczny"
        "|wdzieczna",
        "goodbye": "do widzenia|dowidzenia|do zobaczenia|do uslyszenia|do jutra|na razie|narazie|nara|pa|pa pa|papa"
        "|pozdrawiam|pozdro|milego (?:dnia|wieczoru|popoludnia|weekendu)|dobrej nocy|dobranoc|to wszystko|to juz wszystko"
        "|to tyle|to na tyle|to by bylo na tyle|trzymaj sie|trzymajcie sie|zegnam|zegnaj|lece|spadam|uciekam"
        "|nic wiecej|nie dziekuje|nie (?:trzeba|potrzebuje|potrzeba)(?: (?:juz|nic|niczego|wiecej))*",
        "enough": "nie|nic",
        "never_mind": "niewazne|nie wazne|nieistotne|juz nic|nie szkodzi|nic nie szkodzi|nic takiego",
        "understood": "rozumiem|zrozumiano|jasne|juz wiem|wiem juz|w porzadku|spoko|dobrze|dobra|swietnie|wszystko jasne",
        "help": "potrzebuje pomocy|potrzebna pomoc|pomocy|pomoz(?: mi)?|mam(?: jedno)? pytanie|mozesz(?: mi)? pomoc"
        "|moze mi pan[i]? pomoc|moge o cos (?:za|s)pytac|chcialbym o cos zapytac|chcialabym o cos zapytac",
    },
    "zh": {
        "hello": "你好|您好|哈囉|哈啰|嗨|喂|早安|早上好|午安|晚上好|早",
        "thanks": "謝謝|谢谢|多謝|多谢|感謝|感谢|謝啦|谢啦|謝了|谢了|感恩|辛苦了|辛苦",
        "goodbye": "再見|再见|掰掰|拜拜|下次見|下次见|回頭見|回头见|改天見|改天见|明天見|明天见|晚安|不用了|不需要了|沒事了|没事了"
        "|就這樣|就这样|先這樣|先这样|沒有了|没有了|沒問題了|没问题了",
        "enough": "不用|不必|不需要|沒有|没有",
        "never_mind": "算了|沒關係|没关系|沒事|没事|不要緊|不要紧",
        "understood": "好的|好|明白|明白了|知道了|了解|瞭解|懂了|清楚了|原來如此|原来如此|收到|行",
        "help": "我有(?:個|个)?(?:問題|问题)|(?:想|可以)?(?:請問|请问)(?:一下)?|想問(?:一下)?|想问(?:一下)?|需要(?:幫助|帮助|幫忙|帮忙|協助)"
        "|(?:請|请)?(?:幫|帮)(?:我|幫忙|个忙|個忙)|救命",
    },
}
# Of languages that nothing is worded in: a guest who says these is answered in English, as for all else he says.
WORDS.update(
    {
        "de": {
            "hello": "hallo|guten tag|guten morgen|guten abend|gruss gott|grussgott|grussgott|moin|moin moin|servus|gruezi",
            "thanks": "danke|danke schon|dankeschon|danke sehr|vielen dank|besten dank|herzlichen dank",
            "goodbye": "tschuss|tschuess|auf wiedersehen|bis bald|bis spater|gute nacht|nein danke|das war s|das ist alles",
        },
        "fr": {
            "hello": "bonjour|bonsoir|salut|coucou",
            "thanks": "merci|merci beaucoup|merci bien",
            "goodbye": "au revoir|bonne nuit|bonne journee|bonne soiree|a bientot|non merci|c est tout",
        },
        "es": {
            "hello": "hola|buenas|buenos dias|buenas tardes|buenas noches",
            "thanks": "gracias|muchas gracias|mil gracias",
            "goodbye": "adios|hasta luego|hasta pronto|no gracias|eso es todo",
        },
        "it": {"hello": "ciao|buongiorno|buonasera", "thanks": "grazie|grazie mille", "goodbye": "arrivederci"},
        "uk": {
            "hello": "привіт|вітаю|добрии день|добрии вечір|доброго дня|доброго ранку|доброго вечора|здрастуите",
            "thanks": "дякую|дуже дякую|щиро дякую|дякую дуже",
            "goodbye": "до побачення|бувайте|на добраніч|гарного дня",
        },
        "ru": {
            "hello": "привет|здравствуите|добрыи день|добрыи вечер|доброе утро",
            "thanks": "спасибо|большое спасибо|спасибо большое",
            "goodbye": "до свидания|пока|спокоинои ночи|хорошего дня",
        },
    }
)
# What stands beside them and says nothing: politeness, address, emphasis.
BESIDE: dict[str, str] = {
    "en": "oh|ah|well|then|so|very|much|so much|a lot|lots|a bunch|a million|a ton|really|you|you all|y all|for|the|your"
    "|help|info|information|time|answer|again|now|today|tonight|and|i needed|i need|everything|all|great|lovely|perfect"
    "|wonderful|amazing|awesome|brilliant|cool|nice|excellent|sweet|yes|yeah|yep|sir|madam|guys|mate|dear|friend|indeed"
    "|just|my|kindly|please|soon|around|too|it|is|was|that|sorry|for now|anyway|kind|of|to|know",
    "vi": "vang|da|uh|u|um|uhm|a|oi|nha|nhe|nhen|nghe|ne|nhi|ha|hen|em|anh|chi|ban|shop|ad|admin|minh|toi|to|moi nguoi"
    "|ca nha|qua|lam|that|nhieu|nhiu|rat|roi|thi|vay|the|voi|ay|luon|them|sau|nay|day|thoi|da tu van|da ho tro|da giup"
    "|da giup do|vi|cac|em nhe|lan|hom nay|z|nhoa|ah|co|chu|bac|di|lan sau|cho|xin|phep|truoc",
    "pl": "no|to|a|i|bardzo|pieknie|slicznie|serdecznie|uprzejmie|wielkie|wielki|stokrotne|stokrotnie|raz|jeszcze|za|pomoc"
    "|informacje|informacja|odpowiedz|rozmowe|wszystko|panu|pani|panstwu|pan|swietnie|dobra|dobrze|tak|ci|wam|dzis"
    "|dzisiaj|na dzis|w takim razie|wiec|i do|naprawde|fajnie|ekstra|juz|z gory|razie|prosze|chwile",
    "zh": "你們|你们|您們|你|您|大家|啊|呀|啦|喔|哦|噢|嗯|的|了|那就|那|非常|真的|真是|很|幫忙|帮忙|太好了|太|吧|囉|先|我走|我|有|請|请|一下|都",
}
# He goes, and may come back.
LEAVING: dict[str, str] = {
    "en": r"\b(?:i ll|i will|let me|need to|have to) (?:think|sleep|consider|mull)\b|\b(?:i ll|i will) (?:come|get|be) back\b"
    r"|\bthink (?:it|about it) over\b",
    "vi": r"\bsuy nghi (?:them|lai|da)\b|\bnghi them\b|\b(?:quay|ghe|tro) lai sau\b|\b(?:xem|hoi|tham khao|can nhac) (?:them|lai) (?:da|roi)\b"
    r"|\b(?:lien he|nhan|hoi) lai sau\b",
    "pl": r"\b(?:zastanowie|pomysle|przemysle|namysle|zastanowimy)\b|\b(?:wroce|odezwe sie) (?:pozniej|jutro|potem)\b",
    "zh": r"再想想|考慮一下|考虑一下|想一下再|再看看|晚點再|晚点再",
}


_BAR = re.compile(r"\|(?![^(]*\))")


def alternatives(tag: str, act: Act) -> list[str]:
    """Patterns of folded words."""
    return _BAR.split(WORDS[tag].get(act, "")) + _BAR.split(_EVERYWHERE.get(act, ""))


def beside(tag: str) -> list[str]:
    return _BAR.split(BESIDE.get(tag, "")) + _BAR.split(_EVERYWHERE_BESIDE)


_MARKS = re.compile(r"[\s.!?,;:。！？，；~…ạ]+")
_ENDS = re.compile(r"[.!?,;:。！？，；~…]+")
_NOT_A_WORD = re.compile(rf"[^\w{CJK}]+|_")
_DRAWN_OUT = re.compile(r"([^\W\d_])\1{2,}")  # "thankssss"
_LONGEST = 200  # characters of small talk
_LONGEST_REASON = 6  # words behind "never mind" that say why
_LONGEST_LEAVE = 60  # and of a leave that is taken in other words

# Beginnings of plain statements, which want nothing: "I want" is a request.
_STATEMENTS = {
    "en": ("i am ", "i'm ", "i’m ", "i have ", "my ", "we are ", "we have ", "our "),
    "pl": ("jestem ", "mam ", "nazywam się ", "mieszkam ", "jesteśmy ", "mamy ", "mój ", "moja ", "moje "),
    "vi": ("tôi là ", "tôi bị ", "tôi tên ", "tên tôi ", "tôi ở ", "tôi có ", "tôi đang ", "mình là ", "em là "),
    "zh-Hant": ("我是", "我叫", "我對", "我有", "我住", "我的", "我姓"),
    "zh-Hans": ("我是", "我叫", "我对", "我有", "我住", "我的", "我姓"),
}
_INTRODUCES = re.compile(
    r"\b(?:this is|i am|i m|my name is|name s) (?!an? |the |not |in )[a-z]+\b|\bmam na imie\b|\bnazywam sie\b"
    r"|\b(?:ten|ten la|ten toi la|ten minh la) (?!gi\b)[a-z]+$|\b(?:toi|minh|em|anh|chi) ten\b|我姓|我叫|我是"
)
_WANTS = re.compile(
    r"\b(?:want|need|looking|would like|i d like|wonder|please|can|could|hoping|chce|chcialb\w+|szukam"
    r"|potrzebuj\w+|prosze|czy|can|muon|hoi|tim|mua|dat|tu van|giup)\b|想|要|需要|請|请|幫|帮"
)


@dataclass(frozen=True, slots=True)
class SmallTalk:
    """`language` is that of its words: `zh` for both scripts of Chinese."""

    act: Act
    language: str


def is_just_one_of(text: str, phrases: Iterable[str]) -> bool:
    """But for case, spaces and marks, and for diacritics where the text has none."""
    said = _bare(text)
    like = fold if said.isascii() else str
    return bool(said) and any(said == _bare(like(phrase)) for phrase in phrases)


def is_goodbye(text: str, stops: Iterable[str], thanks: Iterable[str]) -> bool:
    """Just that, or thanks and then that."""
    stops, thanks = list(stops), list(thanks)
    *before, last = [piece for piece in _ENDS.split(text) if _bare(piece)] or [""]
    thanked = all(is_just_one_of(piece, thanks) for piece in before)
    return is_just_one_of(text, stops) or (thanked and is_just_one_of(last, stops))


def small_talk(text: str, first: str | None = None) -> SmallTalk | None:
    """None for a message that says anything else. `first` is the language to look in before the others."""
    if len(text) > _LONGEST:
        return None
    words = _words(text)
    tags = sorted(WORDS, key=lambda tag: tag != (first or "").split("-")[0].lower())
    asked = text.rstrip().endswith(QUESTION_MARKS)
    for tag in tags:
        if (act := _act(words, tag)) and (not asked or act in ("help", "hello")):
            return SmallTalk(act, tag)
    if asked:
        return None
    if (said := _first_said(text, first)) is not None:
        return said
    if len(text) > _LONGEST_LEAVE:
        return None
    leaves = (tag for tag in tags if tag in LEAVING and re.search(LEAVING[tag], words))
    return next((SmallTalk("goodbye", tag) for tag in leaves), None)


def says_nothing(word: str) -> bool:
    """Politeness, address, emphasis, in any language."""
    return any(_pattern(tag).fullmatch(fold(word)) for tag in WORDS)


def is_wish(word: str) -> bool:
    return bool(_WANTS.fullmatch(fold(word)))


def without_greeting(text: str) -> str:
    """The text behind a leading hello; the text itself where it does not begin with one, or holds nothing else."""
    for piece in _ENDS.finditer(text):
        hello = small_talk(text[: piece.start()])
        if hello is not None and hello.act == "hello" and text[piece.end() :].strip():
            return text[piece.end() :].strip()
        break
    return text


def is_statement(text: str, language: str) -> bool:
    lowered = spelt(text.strip())
    return not lowered.endswith(QUESTION_MARKS) and lowered.startswith(closest(_STATEMENTS, language) or ("\0",))


def only_introduces(text: str) -> bool:
    """Who the user is, and no wish."""
    words = _words(text)
    return not text.rstrip().endswith(QUESTION_MARKS) and bool(_INTRODUCES.search(words)) and not _WANTS.search(words)


def _first_said(text: str, first: str | None) -> SmallTalk | None:
    """The act of a message of several parts: what stands after "never mind" or before "bye" is no question."""
    pieces = [piece for piece in _ENDS.split(text) if _words(piece)]
    if len(pieces) > 1 and not any(is_question(piece) or _WANTS.search(_words(piece)) for piece in pieces[:-1]):
        last = small_talk(pieces[-1], first)
        if last is not None and last.act == "goodbye":
            return last
    end = _ENDS.search(text)
    rest = _words(text[end.end() :]) if end else ""
    if end is None or not rest or len(rest.split()) > _LONGEST_REASON:
        return None
    if _WANTS.search(rest) or any(map(str.isdigit, rest)) or is_question(rest):
        return None
    said = small_talk(text[: end.start()], first)
    return said if said is not None and said.act in ("never_mind", "thanks", "goodbye") else None


def _act(words: str, tag: str) -> Act | None:
    pattern, found, at = _pattern(tag), set[str](), 0
    while at < len(words):
        match = pattern.match(words, at)
        if match is None:
            return None
        found.add((match.lastgroup or "").rpartition("_")[0])
        at = match.end()
    if found >= {"enough", "thanks"}:  # who wants nothing, and says thanks for it
        return "goodbye"
    return next((act for act in BY_WEIGHT if act in found), None)


@cache
def _pattern(tag: str) -> re.Pattern[str]:
    """The longest first, whatever it is part of; Chinese words end where they end."""
    some = [(one, act) for act in BY_WEIGHT for one in alternatives(tag, act) if one]
    some += [(one, "beside") for one in beside(tag) if one]
    ordered = sorted(some, key=lambda row: -len(row[0]))
    groups = "|".join(f"(?P<{act}_{place}>{one})" for place, (one, act) in enumerate(ordered))
    return re.compile(rf"(?:{groups})(?: +|$|(?<=[{CJK}])|(?=[{CJK}]))")


def _words(text: str) -> str:
    return _DRAWN_OUT.sub(r"\1", " ".join(_NOT_A_WORD.sub(" ", fold(text)).split()))


def _bare(text: str) -> str:
    return " ".join(_MARKS.sub(" ", spelt(text)).split())


Beyond = Literal["complaint", "request", "who"]
_LONGEST_ABOUT_ITSELF = 80  # characters
# What is broken or missing: a complaint in a question, too ("the light is out, what now?").
_FAILS: Mapping[str, str] = {
    "en": "not working|isn't working|aren't working|doesn't work|does not work|don't work|didn't work|won't work"
    "|stopped working|won't turn on|won't start|won't boot|won't open|won't close|out of order|is broken|are broken"
    "|broke down|broke|is out|leaking|is leaking|no hot water|no signal|keeps crashing|keeps restarting|freezes|died"
    "|arrived damaged|is damaged|is missing|are missing|is cracked|is dead",
    "pl": "nie działa|nie działają|nie działało|nie włącza|nie chce się włączyć|nie uruchamia|nie świeci|nie grzeje"
    "|nie chłodzi|nie otwiera|nie zamyka|nie leci|zepsuty|zepsuta|zepsute|zepsuł się|zepsuła się|zepsuło się"
    "|popsuty|popsuta|popsute|popsuł się|popsuła się|popsuło się|awaria|cieknie|przecieka|zatkany|zatkana|zatkane"
    "|uszkodzony|uszkodzona|uszkodzone|pęknięty|pęknięta|brakuje|nie ma ciepłej wody|nie ma prądu|nie ma ręczników",
    "vi": "không hoạt động|không chạy|không lên|không nhận|không mở được|không bật được|không dùng được|không vào được"
    "|không đóng được|bị hỏng|bị hư|bị lỗi|đã hỏng|đã hư|lại hỏng|lại hư|lại lỗi|bị liệt|bị sọc|bị đơ|bị đứng|bị giật|bị rè|bị gãy|bị rách|bị móp"
    "|bật không được|không bật|không khởi động|không sạc được|không kết nối được|không nhận tín hiệu|mất tín hiệu|mất tiếng|không có tiếng|bị cháy|bị treo|bị sập|bị vỡ|bị nứt|bị chập|bị tắc|hỏng rồi|hư rồi"
    "|màn hình xanh|chết máy|rò nước|rỉ nước|chảy nước|mất điện|mất nước|không có nước nóng|không có nước",
    "zh": "壞了|坏了|壞掉|坏掉|故障|不能用|用不了|沒反應|没反应|漏水|打不開|打不开|關不上|关不上|不亮|沒有熱水|没有热水"
    "|沒熱水|没热水|堵住|堵了|不夠|不够|不見了|不见了|當機|死机|黑屏",
}
# Complaints about a quality. In a question they are none ("are the rooms noisy?").
_FEELS: Mapping[str, str] = {
    "en": "terrible|awful|horrible|disgusting|unacceptable|rude|dirty|filthy|noisy|too loud|so loud|too cold|too hot"
    "|freezing|smells|smelly|stinks|annoyed|annoying|angry|furious|disappointed|disappointing|unhappy|useless|ridiculous"
    "|complain|complaint|worst|been waiting|can't sleep|cannot sleep|couldn't sleep|cockroach|cockroaches|bed bugs"
    "|scam|rip-off|ripoff|too expensive|so expensive|overpriced|nobody answers|no one answers|nobody replies"
    "|no one replies|too slow|so slow|frustrated|frustrating|fed up|not happy|not satisfied|stupid|bad service",
    "pl": "brudno|brudny|brudna|brudne|za głośno|bardzo głośno|hałas|hałasują|hałasuje|śmierdzi|zimno w|za zimno"
    "|za gorąco|skandal|fatalny|fatalna|fatalne|fatalnie|okropny|okropna|okropne|okropnie|straszny|straszna|straszne"
    "|niezadowolony|niezadowolona|rozczarowany|rozczarowana|zdenerwowany|zdenerwowana|wściekły|wściekła|denerwuje"
    "|wkurza|skarga|skargę|poskarżyć|czekam już|czekałem|czekałam|czekaliśmy|nikt nie|beznadziejny|beznadziejna"
    "|beznadziejne|beznadzieja|do niczego|tragedia|nie można spać|nie mogę spać|nie mogłem spać|za drogo|zdzierstwo"
    "|nieuprzejmy|nieuprzejma|niemiły|niemiła|bezużyteczny|bezużyteczna|karaluch",
    "vi": "ồn|ồn quá|ồn ào|bẩn|bẩn quá|bẩn thỉu|dơ|dơ quá|hôi|hôi quá|mùi hôi|bực|bực mình|bực quá|bực bội|tức quá|tức giận"
    "|thất vọng|quá tệ|tệ quá|tệ thật|chán quá|chán thật|quá chán|lừa đảo|không ai trả lời|chẳng ai trả lời|chờ mãi"
    "|đợi mãi|đợi lâu|chờ lâu|lâu thế|lâu quá|lâu vậy|lâu dữ|chậm quá|chậm thế|đắt quá|đắt thế|đắt dữ|đắt vậy|mắc quá"
    "|mắc dữ|mắc vậy|không hài lòng|khó chịu|vô dụng|không ngủ được|phàn nàn|khiếu nại|bất lịch sự|nóng quá|lạnh quá"
    "|làm ăn kiểu gì|gián",
    "zh": "太吵|很吵|好吵|吵死|吵得|髒|脏|很臭|好臭|太冷|太熱|太热|差勁|差劲|太差|很差|投訴|投诉|生氣|生气|失望|糟糕|太爛|太烂"
    "|沒人理|没人理|等了|太慢|睡不著|睡不着|不滿|不满|太貴|太贵|沒用|没用",
}
_HIMSELF = "(?:toi|minh|em|anh|chi|mk|tui|to|co|chu|bac|e|a|c|m|t)"
# Requests for an action, which an assistant that only quotes cannot carry out. Folded.
_TO_DO: Mapping[str, str] = {
    "en": r"\b(?:can|could|would|will) (?:you|u) (?:please |kindly )?(?:book|reserve|order|arrange|send|call|cancel|change|bring)\b"
    r"|\b(?:want|like|need|love|wish) to (?:book|reserve|order|cancel|schedule|make an? (?:reservation|booking|appointment|order)"
    r"|place an order|speak (?:to|with)|talk to)\b|\bi ll take (?:it|one|two|three|the|\d)|\bi'll take (?:it|one|two|three|the|\d)"
    r"|^(?:please |pls |kindly )?(?:book|reserve|send|cancel|bring|schedule)\b|\b(?:get|call) (?:me )?(?:the|a|your) (?:manager|taxi|doctor)\b",
    "pl": r"\b(?:zarezerw\w+|zarezerwowac|rezerwuje|zamowic|zamowcie|anulowac|odwolac rezerwacj\w+|przyslac|przyslij\w*"
    r"|przyslijcie|wezwac|wezwijcie|wyslijcie kogos|umowic|umowcie)\b|\b(?:rozmawiac|porozmawiac|polaczyc|widziec sie) z (?:kierownik|menedzer|manager|dyrektor|szef)\w*",
    "vi": rf"\bdat (?:hang |lich |mua |don )?(?:giup|ho|gium|phong|ban|truoc|cho {_HIMSELF})\b"
    rf"|\bcho {_HIMSELF} (?:xin )?(?:dat|chot|order|book|giu|lay|len don|hen)\b|\b(?:chot|len|giu) (?:don|hang)\b"
    rf"|\b(?:muon|can|xin) dat (?:hang|lich|mua|truoc|don|coc|hen|\d+|mot|hai|ba|con|cai|bo|chiec|card|may)\b"
    rf"|\b(?:dat|len|hen) lich\b(?!.{{0,20}}\b(?:the nao|ra sao|khong)\b)"
    r"|\b(?:goi|cu|cho) (?:nguoi|nhan vien|ky thuat|le tan|taxi)\b|\b(?:gap|noi chuyen voi) (?:quan ly|nhan vien|nguoi that|giam doc)\b"
    r"|\bhuy (?:don|dat|phong)\b",
    "zh": r"預訂|预订|預約|预约|[訂订](?:位|房|一|個|个|桌)|(?:幫|帮)我(?:叫|訂|订|安排|取消|換|换)|取消(?:訂|订|預|预)|(?:找|見|见)(?:經理|经理|主管)",
}
_ABOUT_ITSELF: Mapping[str, str] = {
    "en": r"\bare (?:you|u) (?:a |an )?(?:real|bot|robot|human|person|machine|ai|computer|chatbot)\b|\bwho (?:are|r) (?:you|u)\b"
    r"|\bwhat (?:are|r) (?:you|u)\b\W*$|\bwhat (?:can|could) (?:you|u) do\b|\bhow can (?:you|u) help\b|\bwhat do (?:you|u) do\b"
    r"|\b(?:your|ur) name\b|\bwho am i (?:talking|speaking|chatting) (?:to|with)\b|\bam i (?:talking|speaking) (?:to|with) (?:a|an)\b",
    "pl": r"\bkim (?:ty )?jestes\b|\bkto ty\b|\bjestes (?:robotem|botem|czlowiekiem|maszyna|ai|sztuczna)\b|\bczy (?:rozmawiam|pisze) z\b"
    r"|\bco (?:potrafisz|umiesz|mozesz zrobic)\b|\bw czym (?:mozesz|moze pan|moze pani) pomoc\b|\bjak (?:masz na imie|sie nazywasz)\b",
    "vi": r"\b(?:ban|em|shop|may|ad) la (?:ai|gi|bot|robot|nguoi|may|con nguoi)\b|\bla nguoi hay\b|\bla (?:may|bot|robot) (?:hay|ha|a|phai|dung)\b"
    r"|\b(?:ban|em) ten (?:la )?gi\b|\b(?:lam|giup|ho tro) (?:duoc |minh duoc |toi duoc )?(?:nhung )?gi\b(?! cho)"
    r"|\b(?:co the|biet) (?:lam|giup|ho tro) (?:duoc )?(?:minh |toi )?(?:nhung )?gi\b",
    "zh": r"[你您]是(?:誰|谁|什麼人|什么人|機器人|机器人|真人|人嗎|人吗|AI|ai)|[你您](?:能|可以|會|会)(?:做|幫|帮)[^。！？]{0,4}(?:什麼|什么)|[你您]叫什[麼么]",
}

_COMPLAINTS = {"fails": _FAILS, "feels": _FEELS}
_ASKS_ABOUT_ITSELF = re.compile("|".join(_ABOUT_ITSELF.values()))
_ASKS_TO_DO = re.compile("|".join(_TO_DO.values()))


def beyond_documents(text: str) -> Beyond | None:
    """What a message is, in whatever language; None for what documents may answer."""
    words = _spelt_words(text)
    is_question = text.rstrip().endswith(QUESTION_MARKS)
    if len(text) <= _LONGEST_ABOUT_ITSELF and _ASKS_ABOUT_ITSELF.search(fold(words)):
        return "who"
    if complained_of(text) or (not is_question and _matches("feels", words)):
        return "complaint"
    return "request" if _ASKS_TO_DO.search(fold(words)) else None


def complained_of(text: str) -> list[str]:
    """What the message says is broken or missing, in its own words, folded."""
    return [fold(one) for one in _matches("fails", _spelt_words(text))]


def _spelt_words(text: str) -> str:
    return spelt(text).replace("’", "'")


def _matches(table: str, words: str) -> list[str]:
    return [one for pattern in _patterns(table, words.isascii()) for one in pattern.findall(words)]


@cache
def _patterns(table: str, plain: bool) -> list[re.Pattern[str]]:
    patterns: list[re.Pattern[str]] = []
    for tag, words in _COMPLAINTS[table].items():
        some = words.split("|")
        if plain:
            some = [fold(one) for one in some if tag != "vi" or " " in one]
        ordered = "|".join(re.escape(one) for one in sorted(some, key=len, reverse=True))
        patterns.append(re.compile(ordered if is_written_without_spaces(words) else rf"(?<!\w)(?:{ordered})(?!\w)"))
    return patterns
