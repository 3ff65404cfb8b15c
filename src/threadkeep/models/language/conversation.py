"""The language of a conversation: requested, carried on, detected from the message, or the default, in that order.

Requests are such as "please answer in English", "proszę po angielsku", "請用英文回答". Their patterns run on folded
text, so that requests typed without diacritics match too. Every gap in them is bounded: the time is linear in the
length of the text.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from threadkeep.models.language.latin import folded
from threadkeep.models.language.scripts import script_in, script_of
from threadkeep.models.language.tags import SUPPORTED, allowed_tags, closest
from threadkeep.ports.models import CERTAIN, LanguageDetector, LanguageRules, as_tag

_log = logging.getLogger("threadkeep.language")
Source = Literal["requested", "session", "detected", "script", "default", "unknown"]


@dataclass(frozen=True, slots=True)
class Decision:
    tag: str | None
    source: Source

    @property
    def settled(self) -> str | None:
        """What to keep for the conversation; None for a default or a guess by the script, as the next message may
        decide it."""
        return self.tag if self.source in ("requested", "session", "detected") else None


def spoken_as(tag: str | None, languages: Sequence[str]) -> str | None:
    """Which of `languages` a tag means (`en-GB` is their `en`); itself where there are none, and any is spoken."""
    named = as_tag(tag)
    return closest({one: one for one in languages}, named) if languages and named else named


async def decide(text: str, session: str | None, rules: LanguageRules, detector: LanguageDetector) -> Decision:
    """The language to answer `text` in.

    The detector is called only when the session has no language and the user requests none: a session's language is
    carried, whatever a later message looks like, unless `rules` do not have it. A message too short to decide falls
    back to the default, which is not to be kept: the detector is called again until one message decides. Where it is
    written in a script that the default is not, the guess of the detector is taken instead, and not kept either.
    """
    if requested := requested_language(text, rules.choice):
        return Decision(requested, "requested")
    if session and spoken_as(session, rules.allowed):
        _log.info("language detection skipped: the session is held in %s", session)
        return Decision(session, "session")
    detection = await detector.detect(text, rules.choice)
    if detection.confidence >= CERTAIN:
        return Decision(detection.tag, "detected")
    if rules.default and detection.confidence and script_in(detection.tag) != script_in(rules.default):
        return Decision(detection.tag, "script")
    return Decision(rules.default, "default" if rules.default else "unknown")


_LONGEST = 2_000
_OTHER_WORDS = 1
_POLITE_WORDS = """
can could would will may you we i us me please pls sorry hi hello ok okay from now on for the rest of thanks thank
if possible is it do mind
prosze prosba czy moze mozemy mozna mozesz pan pani pana przepraszam dziekuje teraz od dalej
vui long lam on xin nhe a di duoc khong co the tu gio tro bay em anh chi ban shop cam giup toi minh cho
請 请 你 您 我 可 以 嗎 吗 麻 煩 烦 好 謝 谢 能 從 从 現 现 在 開 开 始
"""
_POLITE = frozenset(_POLITE_WORDS.split())
_WORDS = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")

# What the languages are called in each of the four, folded. The scripts of Chinese come before Chinese.
_NAMES = {
    "Hant": r"traditional chinese|tieng (?:trung|hoa) phon the|(?:tradycyjn\w+ chinsk\w+|chinsk\w+ tradycyjn\w+)"
    r"|繁[體体](?:中文|字)?|正[體体](?:中文|字)?",
    "Hans": r"simplified chinese|tieng (?:trung|hoa) gian the|(?:uproszczon\w+ chinsk\w+|chinsk\w+ uproszczon\w+)"
    r"|[简簡][体體](?:中文|字)?",
    "zh": r"chinese|mandarin|tieng (?:trung(?: quoc)?|hoa)|chinsk(?:u|i|iego|im)|mandarynsk(?:u|i|im)"
    r"|中文|[汉漢][语語]|[国國][语語]|普通[话話]|[华華][语語文]",
    "en": r"english|tieng anh|angielsk(?:u|i|iego|im)|英[文语語]",
    "vi": r"vietnamese|tieng viet|wietnamsk(?:u|i|iego|im)|越南?[文语語话話]",
    "pl": r"polish|tieng ba lan|polsk(?:u|i|iego|im)|波[兰蘭][文语語话話]",
}
_NAME = "(?:" + "|".join(f"(?P<{key}>{names})" for key, names in _NAMES.items()) + ")"
# "I prefer English breakfast" has more words behind it, and requests no language.
_ENDS = r"(?=\W*$| *[.!?,;。！？，；]| please| prosze| nhe| di| duoc khong|吧|嗎|吗|好)"
_PLEASE = r"(?:please|pls|plz|prosze|poprosze|nhe|duoc khong|giup (?:toi|minh|em)|gium)"

# Narrow on purpose: "is there a menu in English", "does the guide speak English" ask for something else.
_FRAMES = (
    r"\b(?:answer|reply|respond|speak|talk|write|chat|continue|communicate|explain|tell)\b[^.!?\n]{0,30}?\bin NAME\b",
    r"\b(?:switch|change|(?:go )?back)\b[^.!?\n]{0,20}?\b(?:to|into) NAME\b",
    r"\b(?:prefer|rather)(?: to)?(?: (?:speak|speaking|talk|write|use))?(?: in)? NAMEENDS",
    r"(?:^|\b(?:you|please|we|let'?s) )(?:speak|use) NAME\b",
    r"^\W*(?:in |po )?NAME[, ]{1,3}PLEASE\W*$",
    r"\bPLEASE,? (?:in |po )NAME\b",
    r"\b(?:tra loi|phan hoi|noi|noi chuyen|viet|giai thich|tu van|ho tro|giao tiep|nhan tin)\b"
    r"[^.!?\n]{0,20}?\b(?:bang|qua|theo) NAME\b",
    r"\b(?:chuyen|doi)\b[^.!?\n]{0,20}?\bsang NAME\b",
    r"\b(?:tra loi|phan hoi|noi chuyen|giao tiep|nhan tin)(?: (?:toi|minh|em|lai))? NAME\b",
    r"\b(?:quay|tro) (?:lai|ve)(?: voi)? NAMEENDS",
    r"\b(?:em|shop)(?: co the| co)? noi NAME (?:duoc |dc )?(?:khong|ko|nhe|di|chu)\b",
    r"(?:^|\b(?:ban|minh|hay|vui long|xin|lam on|chung ta) )(?:co the |co )?(?:noi|su dung|dung) NAME\b",
    r"\b(?:odpowie\w+|odpowiada\w*|odpis\w+|pisz|pisac|napisz|mow|mowic|mowisz|mowi pani?|mowicie|mowmy"
    r"|porozmawia\w+|rozmawia\w+|kontynu\w+|wyjasni\w*)\b[^.!?\n]{0,20}?\b(?:po|w jezyku) NAME\b",
    r"\bwol(?:e|imy|al(?:a|i)?bym|elibysmy)\b[^.!?\n]{0,20}?\b(?:po|w jezyku) NAME\b",
    r"\b(?:wroc\w*|wracaj\w*|powroc\w*)\b[^.!?\n]{0,12}?\bdo (?:jezyka )?NAMEENDS",
    r"\b(?:przejd\w+|przejs\w+|przelacz\w*|zmien\w*)\b[^.!?\n]{0,20}?\bna (?:jezyk )?NAME\b",
    r"(?:[請请](?![問问])|麻[煩烦]|改|[換换]|切[換换]|直接)[^。！？!?\n]{0,8}?[用說说講讲寫写成到為为] ?NAME",
    r"(?:^|[你您]|我[們们])(?:可以|可不可以|能|能不能|能否|[會会])[^。！？!?\n]{0,3}?[用說说講讲] ?NAME",
    r"我[們们]?(?:比[較较])?(?:想|要|希望)[^。！？!?\n]{0,2}?[用說说講讲] ?NAMEENDS",
    r"^\W*(?:[用說说講讲] ?)?NAME ?(?:好|行|可以|ok)[嗎吗不]",
    r"^\W*[用說说講讲] ?NAME ?[吧啦]?\W*$",
    r"[用以] ?NAME ?[來来]?(?:回|答|跟|和|[與与]|聊|[溝沟]|解|告|交|[覆复])",
)
# What turns the request round, right before it: "don't answer in English", "nie mów po angielsku", "不要用英文回答".
_NOT = re.compile(
    r"(?:\b(?:don'?t|don’t|do not|never|stop|not|cannot|can'?t|cant|khong|chua|nie|dung)\W{0,2}(?:\w{1,8} ){0,2}"
    r"|[不別别勿][要用必想會会]?[^。！？\n]{0,2})$"
)
# Asking how something is said is not asking for an answer in it, and a translation is of a text.
_HOW = re.compile(
    r"\b(?:how (?:do|can|to)\b.{0,20}\bsay|translat|ti[eế]ng anh la gi|jak (?:sie )?(?:mowi|powiedziec|jest|napisac)"
    r"|przetlumacz|dich (?:sang|ra|cau)|noi the nao)|怎[么麼樣样]|如何[說说]|翻[譯译]"
)


_ANY_NAME = re.compile(_NAME)
_REQUESTS = tuple(
    re.compile(frame.replace("NAME", _NAME).replace("PLEASE", _PLEASE).replace("ENDS", _ENDS)) for frame in _FRAMES
)


def requested_language(text: str, allowed: Iterable[str] | None = None) -> str | None:
    """The allowed tag of the language that the user wants to be answered in; None without such a request.

    Of several requests the last one counts. Chinese of no named script is the script the request is written in.
    """
    choice = allowed_tags(SUPPORTED if allowed is None else allowed)
    requests = _requests_in(folded(text[:_LONGEST].lower()))
    if not requests:
        return None
    name = max(requests, key=lambda match: match.end()).lastgroup or ""
    if name in ("Hant", "Hans"):
        return choice.chinese(name)
    return choice.chinese(script_of(text)[0]) if name == "zh" else choice.first(name)


def only_requests_a_language(text: str) -> bool:
    """Nothing else, but for the few words that make it polite."""
    plain = folded(text[:_LONGEST].lower())
    requests = _requests_in(plain)
    if not requests:
        return False
    first, last = min(match.start() for match in requests), max(match.end() for match in requests)
    beside = [word for word in _WORDS.findall(f"{plain[:first]} {plain[last:]}") if word not in _POLITE]
    return len(beside) <= _OTHER_WORDS


def _requests_in(plain: str) -> list[re.Match[str]]:
    if not _ANY_NAME.search(plain) or _HOW.search(plain):
        return []
    found = (match for request in _REQUESTS for match in request.finditer(plain))
    return [match for match in found if not _NOT.search(plain[max(0, match.start() - 24) : match.start()])]
