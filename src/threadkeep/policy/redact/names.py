# ruff: noqa: E501  (tables of words and forms)
"""Names that people give themselves, or that stand beside a title or a label: looked for with `names="rules"`.

Other names need the recogniser in `ner.py`.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from threadkeep.policy.redact.gazetteer import words
from threadkeep.policy.redact.rule import FORM, SPACE, Family, Rule, Spans, View, every

_W: Final = r"[A-Z\u00c0-\u1fff][A-Za-z\u00c0-\u1fff'\-]{1,20}(?![A-Za-z])"
_FULL: Final = rf"{_W}(?:[ ](?:[A-Z]\.|{_W}|(?:van|von|de|da|di|del|der|la|le|al|bin|ibn)(?=[ ][A-Z]))){{0,3}}"
_NOT: Final = (
    r"(?!(?:I|The|A|An|My|Not|No|Yes|And|But|So|Very|Sorry|Happy|Glad|Sure|OK|Here|There|From|In|At|On)(?![a-z]))"
)

_ENGLISH: Final = re.compile(
    rf"(?<![A-Za-z])(?i:my (?:full |first |last )?name(?:'s| is|:)|name[ ]?:|i am called|call me"
    rf"|name of (?:the )?(?:customer|client|patient|guest|user|employee) is"
    rf"|(?:customer|client|patient|guest|user|employee|contact|full|first|last|cardholder|card holder"
    rf"|account holder)(?:'s)? name(?: is|[ ]?:))\s{{1,6}}{_NOT}({_FULL})"
)
_SPEAKER: Final = re.compile(
    rf"{_NOT}{_FULL}(?=[ ](?:speaking|here|from|with|calling)(?![a-z])"
    rf"|[,.!][ ]*(?:\n|$|[Cc]an|[Cc]ould|[Hh]ow|[Nn]ice|[Ii] |[Mm]y |[Aa]nd ))"
)
_WORK: Final = (
    r"(?!(?:Bean|Robot|Strange|House|Who|Pepper|Doubtfire|Martens|Darcy|Universe|World|Saigon|Marple|Dolittle|Dre|Seuss|Jekyll|Hyde|Watson|Potato|Ed|Right|Big"
    r"|Fox|Popper|Incredible|Miyagi|Burns|Spock|Evil|No|Octopus|Doom|Zhivago|Kildare|Muscle|Clean|Beast|Bingley|Dalloway|Brown's|America)(?![A-Za-z]))"
)
"""Films, books and brands that begin with a title."""
_PLACES: Final = words(
    "Restaurant Cafe Caf Bar Pizza Burger Diner Bakery Bistro Grill Kitchen Hotel Hospital Clinic Memorial"
    " Museum Street St Blvd Boulevard Avenue Road School University Stadium Theatre Theater Show Movie movie"
    " film restaurant show series cafe bar museum shop Shop Store Cup Award Prize"
)
_PLACE: Final = rf"(?![ ](?:{'|'.join(sorted(_PLACES))})(?![A-Za-z]))"
_TITLED: Final = rf"(?<![A-Za-z])(?:Mr|Mrs|Ms|Miss|Mx|Dr|Prof|Sir|Madam|Mister)\.?[ ]{_WORK}({_FULL}){_PLACE}"
_VIETNAMESE: Final = (
    rf"(?<![A-Za-z])(?i:(?:toi|minh|em|anh|chi|con|chau|to|be)[ ](?:ten|la ten)(?:[ ]la)?|ten[ ](?:cua[ ])?"
    rf"(?:toi|minh|em|anh|chi|con|chau|khach hang|day du|khach)[ ]la|ho(?:[ ]va)?[ ]ten(?:[ ]la)?|chu "
    rf"(?:tai khoan|the)|nguoi (?:nhan|gui)|ten(?: khach hang)?[ ]?:)[ :]{{1,3}}({_FULL})"
)
_VIETNAMESE_TITLE: Final = (
    rf"(?<![A-Za-z])(?:[Aa]nh|[Cc]hi|[Oo]ng|[Bb]a|[Cc]o|[Cc]hu|[Bb]ac|[Ee]m|[Tt]hay)[ ]({_W}(?:[ ]{_W}){{1,3}})"
)
_POLISH: Final = (
    rf"(?<![A-Za-z])(?i:nazywam sie|mam na imie|na imie mi|moje (?:imie|nazwisko)(?: i nazwisko)? to|imie"
    rf"(?: i nazwisko)?[ ]?:|nazwisko[ ]?:|odbiorca[ ]?:?|nadawca[ ]?:?|wlasciciel[ ]?:?|podpisano[,:]?"
    rf"|z powazaniem,?)\s{{1,4}}({_FULL})"
)
_POLISH_SELF: Final = rf"(?<![A-Za-z])[Jj]estem[ ]({_W}[ ]{_W})(?=[,.!\n]|$|[ ](?:z|i|ze)[ ])"
_POLISH_WORK: Final = (
    r"(?!(?:Tadeusz|Samochodzik|Kleks|Wolodyjowski|Hilary|Twardowski|Japa|Kotowski|Bovary|Dulska|Dalloway)(?![a-z]))"
)
_POLISH_TITLE: Final = rf"(?<![A-Za-z])(?:[Pp]an|[Pp]ani|[Pp]ana|[Pp]anu|[Pp]anem|[Pp]ania|[Pp]anstwo|[Dd]r|[Mm]gr|[Ii]nz)\.?[ ]{_POLISH_WORK}({_FULL})"

_SURNAME: Final = (
    "王李張张刘劉陳陈楊杨黃黄趙赵吳吴周徐孫孙馬马朱胡郭何高林羅罗鄭郑梁謝谢宋唐許许韓韩馮冯鄧邓曹彭曾肖蕭萧田董袁潘于蔣蒋蔡余杜葉叶"
    "程蘇苏魏呂吕丁任沈姚盧卢姜崔鍾钟譚谭陸陆汪范金石廖賈贾夏韋韦付方白鄒邹孟熊秦邱江尹薛閻阎段雷侯龍龙史陶黎賀贺顧顾毛郝龔龚邵萬万錢钱嚴严"
    "覃武戴莫孔向湯汤柯洪游詹簡简施連连溫温莊庄賴赖古傅駱骆卓阮關关佟牛樊樂乐歐欧陽阳紀纪童梅盛刁鍾焦巴弓包左季安常柴翟聶聂章魯鲁葛管齊齐倪"
    "俞甘尚舒符柳甄鮑鲍藍蓝單单文桂辛嵇岳苗花殷祝涂麥麦裴司車车尤冉冷黨党穆晏霍畢毕易容耿蒲凌成戚邢計计龐庞項项屈"
)
_HAN: Final = r"\u3400-\u9fff"
_CHINESE: Final = (
    rf"(?:我叫做?|我的名字(?:是|叫)|名字叫做?|本人(?:姓名)?(?:是|叫)?|我是(?=[{_SURNAME}][{_HAN}]{{1,2}}(?:[，。,.;！!\s]|$))"
    rf"|姓名[：:\s]\s?|名叫|聯絡人[：:]\s?|联系人[：:]\s?|收件人[：:]\s?)"
    rf"([{_SURNAME}][{_HAN}]{{1,2}}|[{_HAN}]{{2,4}}(?=[，。,.！!；;\\s]|$)|[A-Z][a-z]{{1,15}}"
    rf"(?:[ ][A-Z][a-z]{{1,15}})?)(?![{_HAN}](?:先生|小姐))"
)
_SHOP: Final = (
    "(?![的之]?(?:餐廳|餐厅|飯店|饭店|酒店|麵|面館|面馆|火鍋|火锅|咖啡|茶|小吃|烘焙|蛋糕|牛排|食堂|酒吧|診所|诊所|醫院|医院|學校|学校|公司|紀念|纪念|故居|路|街|樂園|乐园|漢堡|汉堡"
    "|披薩|披萨|便當|便当|豆漿|豆浆|館|馆|店|廚房|厨房|果汁|牛肉|水餃|鍋貼|滷味|雞排))"
)
"""Behind a title: a shop, a hospital or a street that has the name."""
_CHINESE_TITLE: Final = (
    rf"(?<![主現现責责班歷历擔担《「『])([{_SURNAME}][{_HAN}]{{0,2}}?)(?:先生|小姐|女士|太太){_SHOP}"
    rf"|(?<![主現现責责班歷历擔担])([{_SURNAME}][{_HAN}]{{1,2}})(?:醫師|醫生|医生|医师|老師|老师|教授|經理|经理|律師|律师){_SHOP}"
)
_CHINESE_SURNAME: Final = rf"(?:我姓|敝姓|免貴姓|免贵姓)([{_SURNAME}])"


def _rule(name: str, pattern: str) -> tuple[Rule]:
    return (Rule(f"name.{name}", "NAME", every(pattern), FORM - 2),)


def _english(view: View) -> Spans:
    for left, right in view.around(("name", "call"), before=24, after=128):
        yield from (match.span(1) for match in _ENGLISH.finditer(view.text, left, right))


def _titled(view: View) -> Spans:
    for match in _TITLED_PATTERN.finditer(view.text):
        if match[1].split(" ")[-1] not in _PLACES:
            yield match.span(1)


_TITLED_PATTERN: Final = re.compile(_TITLED)


def _speaking(view: View) -> Spans:
    for lead in _LEADS:
        at = view.lower.find(lead)
        while at >= 0:
            name = _SPEAKER.match(view.text, at + len(lead))
            if name is not None and not view.lower[at - 1 : at].isalpha():
                yield name.span()
            at = view.lower.find(lead, at + 1)


_LEADS: Final = ("this is ", "i'm ", "i am ", "it's ")


def _vietnamese_title(view: View) -> Spans:
    """`Động cơ Diesel` folds to a title and a name; where the text has diacritics, the title must have its own."""
    plain = view.original.isascii()
    for match in _VIETNAMESE_TITLED.finditer(view.text):
        start, end = view.original_span(match.start(), match.start(1) - 1)
        if view.lower[match.start(1) :].startswith(_LANDMARKS):
            continue
        if plain or unicodedata.normalize("NFC", view.original[start:end]).lower() in _TITLES:
            yield match.span(1)


_VIETNAMESE_TITLED: Final = re.compile(_VIETNAMESE_TITLE)
_LANDMARKS: Final = (
    "na hills",
    "ria vung",
    "trieu street",
    "dinh square",
    "vi national",
    "den tay ninh",
    "huyen thanh quan",
    "chua xu",
    "chua tien",
)
_TITLES: Final = frozenset(("anh", "chị", "ông", "bà", "cô", "chú", "bác", "em", "thầy"))

_ENGLISH_TITLES: Final = ("Mr", "Mrs", "Ms", "Miss", "Mx", "Dr", "Prof", "Sir", "Madam", "Mister")


_CHINESE_TITLES: Final = ("先生", "小姐", "女士", "太太", "醫", "医", "老師", "老师", "教授", "經理", "经理", "律")

_VIETNAMESE_WORDS: Final = "anh chi ong ba co chu bac em thay"
_CAPITAL: Final = r"[A-Z\x{80}-\x{10FFFF}]"
_VIETNAMESE_TITLE_SIGN: Final = rf"(?i-u:{_VIETNAMESE_WORDS.replace(' ', '|')})[ ]{_CAPITAL}"
_ENGLISH_TITLE_SIGN: Final = rf"(?:{'|'.join(_ENGLISH_TITLES)})\.?[ ]{_CAPITAL}"
_VIETNAMESE_SIGN: Final = rf"(?i-u:ten|la|khoan|the|nhan|gui|:)[ :]{{1,3}}{_CAPITAL}"
_ENGLISH_SIGN: Final = (
    r"(?i-u:name(?:'s| is|[ ]?:)|called|call me|(?:customer|client|patient|guest|user|employee) is)"
    rf"{SPACE}{{1,6}}{_CAPITAL}"
)

FAMILIES: Final = (
    Family(
        (Rule("name.en", "NAME", _english, FORM - 2),),
        words="name call called",
        sign=_ENGLISH_SIGN,
        narrow=_ENGLISH_SIGN,
    ),
    Family(
        (Rule("name.en.speaking", "NAME", _speaking, FORM - 2),),
        sign=rf"(?i-u:{'|'.join(_LEADS)}){_CAPITAL}",
    ),
    Family(
        (Rule("name.en.title", "NAME", _titled, FORM - 2),),
        words=" ".join(_ENGLISH_TITLES).lower(),
        sign=_ENGLISH_TITLE_SIGN,
        narrow=_ENGLISH_TITLE_SIGN,
    ),
    Family(_rule("vi", _VIETNAMESE), words="ten chu nguoi", narrow=_VIETNAMESE_SIGN),
    Family(
        (Rule("name.vi.title", "NAME", _vietnamese_title, FORM - 2),),
        words=_VIETNAMESE_WORDS,
        sign=_VIETNAMESE_TITLE_SIGN,
        narrow=_VIETNAMESE_TITLE_SIGN,
    ),
    Family(_rule("pl", _POLISH), words="odbiorca nadawca wlasciciel nazywam imie nazwisko podpisano powazaniem"),
    Family(_rule("pl.self", _POLISH_SELF), words="jestem"),
    Family(_rule("pl.title", _POLISH_TITLE), words="pan pani pana panu panem pania panstwo mgr inz"),
    Family(_rule("zh", _CHINESE), han=True, strings=("叫", "名", "本人", "我是", "人:", "人：")),
    Family(_rule("zh.title", _CHINESE_TITLE), han=True, strings=_CHINESE_TITLES),
    Family(_rule("zh.surname", _CHINESE_SURNAME), han=True, strings=("我姓", "敝姓", "免貴姓", "免贵姓")),
)
