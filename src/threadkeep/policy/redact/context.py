# ruff: noqa: E501  (tables of cue words)
"""Which kind of number the words beside it announce.

The nearest cue wins: in `ID card 123… or phone at 456…` the second number is a phone. Cues are written folded, so each
stands for its form with and without diacritics. `OTHER` and `AMOUNT` announce numbers
that need no mask (`COMPANY` numbers are in public registers), but only in their own clause: a question about a price or an order often ends in a phone number.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from threadkeep.policy.redact.rule import Prescan

if TYPE_CHECKING:
    from threadkeep.policy.redact.rule import View

_WINDOW: Final = 56

_CUES: Final[dict[str, str]] = {
    "COMPANY": r"(?<!身分證)(?<!身份證)統一編號|統編|統一社會信用代碼|统一社会信用代码|營業登記[㐀-鿿]{0,2}|company (?:number|no|reg\w{0,10})|ein|krs",
    "PHONE": r"(?:tele|mobile |cell ?|i)?phones?|mobile|cell|fax|faks\w{0,3}|tel|telefon\w{0,4}|kom|komork\w{0,3}|zadzwon\w{0,3}|dzwon\w{0,4}|oddzwon\w{0,4}|numer kontaktowy|kontakt\w{0,6}|(?:moj|nasz|jego|jej|twoj) numer|numer (?:to|jest)|my number|(?:our|his|her|their) number|(?<![a-z] )number's"
    r"|call(?:ed|ing|s)?|ring|dial(?:ed|ing)?|sms\w{0,4}|texts?|text me|whatsapp|viber|zalo|telegram|signal|wechat|line|hotline|infolini\w|reach(?:ed|able)?|contact(?:ed|able)?|messages? to|answer(?:ing|s|ed)?|desk|registered|pager|reception|front desk|helpline|recepcj\w{1,2}|biur\w{1,2}|sekretariat\w{0,2}|sluzbow\w{1,3}|prywatn\w{1,3}|domow\w{1,3}"
    r"|dien thoai|dt|dtdd|sdt|so dt|so (?:cua )?(?:em|toi|anh|chi|minh)|goi|lien he|di dong|nhan tin|so may|may ban|alo|lien lac|le tan|tong dai|van phong|cskh|電話|电话|手機|手机|行動|聯絡|联络|联系|聯繫|致電|致电|撥打|拨打|傳真|传真|來電|来电|打給|打给|請打|请打|撥|拨|熱線|热线|分機|專線|座机|市話|櫃[台檯]|客服|前台|專線|我的號碼|我的号码|號碼是|号码是",
    "CARD": r"(?:credit|debit|bank|payment) ?card|card(?: ?(?:number|no|num|#))?|cc|ccn|visa|mastercard|amex|the (?:tin dung|ghi no|ngan hang|visa|thanh toan|mastercard|atm|napas)|so the|kart\w{1,3}(?: kredytow\w{1,3}| platnicz\w{1,4}| debetow\w{1,3})?|信用卡[㐀-鿿]{0,3}|卡號|卡号|金融卡|簽帳卡|银行卡[㐀-鿿]{0,2}|銀行卡[㐀-鿿]{0,2}|刷卡",
    "ACCOUNT": r"(?:bank |savings |checking |current )?accounts?(?: ?(?:number|no|num|#))?|acct|a/c|routing(?: number)?|aba|sort code|swift|bic|iban|wire|stk|so tai khoan|tai khoan|tk|chuyen khoan|kont\w{1,2}|rachun\w{2,4}|nrb|przelew\w{0,2}|帳號|账号|賬號|帳戶|账户|賬戶|戶頭|匯款|汇款|轉帳|转账|[退匯轉汇转]到|[退匯汇]至|存摺|hoan coc|hoan tien",
    "ID": r"(?<!order )(?<!user )(?<!ticket )(?<!invoice )(?<!tracking )(?<!session )(?<!product )(?<!item )(?<!transaction )id (?:number|no|#)|id(?:entity|entification)? ?cards?(?: (?:number|no|#))?|(?:national|personal|citizen|resident|tax|identity|identification|insurance|voter|health|patient|medicare|medical|government|taxpayer)[ -](?:id|identity|identification|security|insurance|card|code|number|no)(?: ?(?:card|number|no|code))?|nino|nhs|aadhaar|nric|tfn|pesel\w{0,2}|nip\w{0,2}|regon\w{0,2}|dow\.? ?os\.?|dow(?:od|odu|odem|odzie)(?: osobist\w{1,4})?|cccd|cmnd|cmt|cmtnd|can cuoc\w{0,3}(?: cong dan)?|chung minh\w{0,3}(?: nhan dan| thu)?|so dinh danh|dinh danh|mst|ma so thue|bhxh|bhyt|bao hiem\w{0,3}(?: xa hoi| y te)?|身[分份][證证][㐀-鿿]{0,4}|居留[證证][㐀-鿿]{0,2}|統一證號|[證证][件號号][㐀-鿿]{0,2}|健保[㐀-鿿]{0,2}|社保[㐀-鿿]{0,2}|身份号码|公民身份",
    "SSN": r"ssns?|ss (?:number|no|#)|social security(?: (?:number|no|card))?|itin",
    "IDISH": r"id|tin|sin|pan|fin|abn|acn|npi|mbi|dea|vat|brn|rrn|frn|cpf|cnpj|dni|nie|nif|rfc|curp|hetu|personnummer|bsn|steuer-?id|idnr|codice fiscale|medicare",
    "PASSPORT": r"passports?(?: ?(?:number|no|#))?|travel document|ho chieu|paszport\w{0,3}|護照[㐀-鿿]{0,3}|护照[㐀-鿿]{0,3}|通行證|通行证|台胞證|台胞证",
    "LICENSE": r"(?:driv(?:er|ers|er's|ing)) ?licen[cs]es?(?: ?(?:number|no|#))?|dl|gplx|giay phep lai xe|bang lai|praw\w{1,2} jazdy|駕照[㐀-鿿]{0,2}|驾照[㐀-鿿]{0,2}|駕駛執照|驾驶证[㐀-鿿]{0,2}",
    "PLATE": r"(?:licen[cs]e|number|registration) plates?|plates?|vehicle reg(?:istration)?|car reg(?:istration)?|reg|bien so(?: xe)?|bks|rejestracj\w{1,3}|rejestracyjn\w{1,3}|tablic\w{1,3}|nr rej|車牌[㐀-鿿]{0,2}|(?<![機机火列])[車车][號号]|车牌[㐀-鿿]{0,2}|牌照[㐀-鿿]{0,2}",
    "OTHER": r"orders?|invoices?|sku|parts?|model|isbn|issn|ean|upc|refs?|reference|tickets?|tracking|serial|version|ver|v|build|item|product|article|bug|issue|commit|doi|pmid|rfc|iso|batch|lot|chapter|page|pages|section|figure|transactions?|statement|don hang|ma don|ma van don|hoa don|ma sp|ma san pham|phien ban|zamowieni\w{1,2}|faktur\w{1,3}|numer seryjny|przesylk\w{1,2}|wersj\w{1,2}|訂單[㐀-鿿]{0,2}|订单[㐀-鿿]{0,2}|發票[㐀-鿿]{0,2}|发票[㐀-鿿]{0,2}|編號|编号|版本|序號|序号|型號|型号|單號|单号|流水号",
    "AMOUNT": r"score|between|years?|population|amount|price|total|income|salary|revenue|balance|sum|count|收入|金額|金额|價格|价格|薪水|評分|评分|餘額|余额|thu nhap|luong|gia|so tien|tong|dochod\w{0,2}|kwot\w{1,2}|cen\w{1,2}|pensj\w{1,2}|zarob\w{2,4}",
}
_START: Final = r"(?:(?<![a-z])|(?=[\u3400-\u9fff]))"
_END: Final = r"(?:(?![a-z])|(?<=[\u3400-\u9fff]))"
"""A Chinese word ends where a Latin letter begins: 車號BKR-7739."""
_ALL: Final = re.compile("|".join(f"(?P<{kind}>{_START}(?:{cues}){_END})" for kind, cues in _CUES.items()))
_LOOK_BEHIND: Final = re.compile(r"\(\?<![^)]*\)")
_ANY: Final = Prescan("|".join(_LOOK_BEHIND.sub("", cues).replace(r"\w", "[^ ]") for cues in _CUES.values()))
"""All of them and more: most numbers stand beside none, and that is known a hundred times as fast."""
_HARMLESS: Final = ("COMPANY", "OTHER", "AMOUNT")
_CLAUSE_ENDS: Final = re.compile(r"[?!;,\n。？！，；、]|(?<![0-9])(?<!no)(?<!nr)(?<!ref)\.(?=\s)")
_SPENT: Final = re.compile(r"[0-9](?:[ .\-]?[0-9]){5}")
_AFTER: Final = re.compile(
    r"[\s,\-\\(]{0,4}(?:(?P<ACCOUNT>(?:ngan hang )?(?:mb|mb ?bank|vietcombank|vcb|techcombank|tcb|acb|bidv|vpbank|sacombank|agribank|tpbank|vietinbank|vib|pko|mbank|ing|santander|pekao|millennium)(?![a-z])|中信|玉山|國泰|台新|富邦|郵局|工行|建行|招行|农行)|(?P<PHONE>office|fax|mobile|cell|home|work|desk|phone|tel|landline|komorka|sluzbowy|di dong)(?![a-z]))"
)


def before(view: View, start: int) -> str | None:
    """The kind announced by the nearest cue in front of this offset, or None."""
    if start not in view.announced:
        view.announced[start] = _nearest(view.lower, start)
    return view.announced[start]


def _nearest(lower: str, start: int) -> str | None:
    left = max(0, start - _WINDOW)
    if not _ANY(lower[left:start]):
        return None
    cues = [*_ALL.finditer(lower, left, start)]
    cue = next((one for one in reversed(cues) if _reaches(one, lower, start)), None)
    if cue is None:
        return None
    # A cue announces one number; only phone numbers come in lists (`call 123… or 456…`).
    spent = cue.lastgroup != "PHONE" and _SPENT.search(lower, cue.end(), start)
    return None if spent else cue.lastgroup


def _reaches(cue: re.Match[str], lower: str, start: int) -> bool:
    return cue.lastgroup not in _HARMLESS or _CLAUSE_ENDS.search(lower, cue.end(), start) is None


def after(view: View, end: int) -> str | None:
    """The kind named directly behind this offset (`416 60 039 office`), or None."""
    match = _AFTER.match(view.lower, end, end + 24)
    return match.lastgroup if match else None


def cue(kind: str) -> re.Pattern[str]:
    """The pattern of the words that announce this kind, for lower-case text."""
    return re.compile(f"{_START}(?:{_CUES[kind]}){_END}")
