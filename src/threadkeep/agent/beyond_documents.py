"""What documents do not answer: a complaint, a request to do something, a question about the assistant itself.

Words with their marks are compared with marks, and without where the message has none; a single Vietnamese syllable
means too much without them and is then not looked for.
"""

# ruff: noqa: E501 -- tables of patterns, one row per language or form

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Literal

from threadkeep.agent.spelling import spelt
from threadkeep.recall.normalise import fold, is_written_without_spaces

Beyond = Literal["complaint", "request", "who"]

_ASKED = ("?", "？")
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
    words = _words(text)
    is_question = text.rstrip().endswith(_ASKED)
    if len(text) <= _LONGEST_ABOUT_ITSELF and _ASKS_ABOUT_ITSELF.search(fold(words)):
        return "who"
    if complained_of(text) or (not is_question and _matches("feels", words)):
        return "complaint"
    return "request" if _ASKS_TO_DO.search(fold(words)) else None


def complained_of(text: str) -> list[str]:
    """What the message says is broken or missing, in its own words, folded."""
    return [fold(one) for one in _matches("fails", _words(text))]


def _words(text: str) -> str:
    return spelt(text).replace("’", "'")


def _matches(table: str, words: str) -> list[str]:
    return [one for pattern in _patterns(table, words.isascii()) for one in pattern.findall(words)]


@cache
def _patterns(table: str, plain: bool) -> list[re.Pattern[str]]:
    return [_listed(tag, words, plain) for tag, words in _COMPLAINTS[table].items()]


def _listed(tag: str, words: str, plain: bool) -> re.Pattern[str]:
    some = words.split("|")
    if plain:
        some = [fold(one) for one in some if tag != "vi" or " " in one]
    ordered = "|".join(re.escape(one) for one in sorted(some, key=len, reverse=True))
    return re.compile(ordered if is_written_without_spaces(words) else rf"(?<!\w)(?:{ordered})(?!\w)")
