# ruff: noqa: E501  (tables of words and forms)
"""Wallets: addresses of the common chains, and recovery phrases (BIP-39 and its kin).

A phrase has 12, 15, 18, 21 or 24 words of three to eight letters. Twelve such words without an article, a pronoun or a
preposition are rare in sentences, but lists of ingredients have them too: they must be the whole message, be numbered,
or stand in a message that counts its words or names a wallet. Behind a word that announces it, fewer words will do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Final

from threadkeep.policy.redact.gazetteer import words
from threadkeep.policy.redact.rule import CERTAIN, CHECKED, Family, Rule, View, every

_BASE58: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BITCOIN: Final = re.compile(rf"(?<![0-9A-Za-z])[13][{_BASE58}]{{25,34}}(?![0-9A-Za-z])")
_SEGWIT: Final = r"(?<![0-9A-Za-z])(?:bc1|tb1)[02-9ac-hj-np-z]{20,87}(?![0-9A-Za-z])"
_ETHEREUM: Final = r"(?<![0-9A-Za-z])0x[0-9a-fA-F]{40}(?![0-9A-Za-z])"


def _bitcoin(view: View) -> Iterator[tuple[int, int]]:
    return (match.span() for match in _BITCOIN.finditer(view.text) if _base58check(match[0]))


def _base58check(address: str) -> bool:
    number = 0
    for char in address:
        number = number * 58 + _BASE58.index(char)
    if number.bit_length() > 200:
        return False
    raw = number.to_bytes(25, "big")
    return sha256(sha256(raw[:21]).digest()).digest()[:4] == raw[21:]


_ADDRESS_FAMILIES: Final = (
    Family(
        (
            Rule("wallet.bitcoin", "CRYPTO", _bitcoin, CERTAIN),
            Rule("wallet.segwit", "CRYPTO", every(_SEGWIT), CERTAIN),
            Rule("wallet.ethereum", "CRYPTO", every(_ETHEREUM), CERTAIN),
        ),
        digits=1,
        narrow="[13][0-9A-Za-z]{25}|(?:bc|tb)1[0-9a-z]{20}|0x[0-9A-Fa-f]{40}",
    ),
)


_BETWEEN: Final = r"(?:[ ]{1,2}|,[ ]?|[ ]?\n[ ]?|[ ,;\n]{1,3}[0-9]{1,2}[.):]?[ ])"
_RUN: Final = re.compile(rf"(?<![a-z])[a-z]{{3,8}}(?:{_BETWEEN}[a-z]{{3,8}}){{11,47}}(?![a-z])")
_HAN_RUN: Final = re.compile(r"[\u3400-\u9fff](?:[ ][\u3400-\u9fff]){11,23}(?![\u3400-\u9fff])")
_NUMBERED: Final = re.compile(r"(?<![0-9])1[.):]?[ ]\Z")
_ITEM: Final = re.compile(r"[0-9]{1,2}[.):]?[ ]")
_LETTER: Final = re.compile(r"[A-Za-z\u3400-\u9fff]")
_SHORTEST: Final = 12
_GRAMMAR: Final = words(
    "the and for are but not her was our has his how its who did yes she him have from been them than some"
    " were would could should which these those into over very more just had get got let too any your their"
    " because though while does been being went said says don nie jest ale jak dla czy ich moj twoj cho cua"
    " khong nhung voi nay trong duoc"
)
_ANNOUNCED: Final = re.compile(
    r"(?:(?:pass|seed|recovery|backup|secret)[ ]?(?:phrase|words)|mnemonic|wallet phrase|cum tu (?:khoi phuc|bi mat)|(?:fraza|frazy|slowa)(?: (?:odzyskiwania|seed))?"
    r"|助記詞|助记词|恢復短語|恢复短语)[^\n:=]{0,24}?(?:[:=\n]|[ ](?:is|are|to|la)[ ]|是|為|为)\s{0,3}(?:1[.):] )?(?P<value>[a-z]{2,12}(?:"
    + _BETWEEN
    + r"[a-z]{2,12}){2,24}+)"
)


def _phrases(view: View) -> Iterator[tuple[int, int]]:
    for match in _RUN.finditer(view.text):
        yield from _without_grammar(view, match)
    yield from (match.span() for match in _HAN_RUN.finditer(view.text))


def _alone(view: View) -> Iterator[tuple[int, int]]:
    """Yield the phrase that is all of the message, but for quotes and numbers."""
    for start, end in _phrases(view):
        if not _LETTER.search(view.text, 0, start) and not _LETTER.search(view.text, end):
            yield start, end


def _numbered(view: View) -> Iterator[tuple[int, int]]:
    for start, end in _phrases(view):
        if len(_ITEM.findall(view.text, start, end)) >= _SHORTEST - 1:
            yield start, end


def _is_plain(view: View, start: int, end: int) -> bool:
    """The words of the list have no accents; a sentence of Vietnamese or Polish does."""
    start, end = view.original_span(start, end)
    return view.original[start:end].isascii()


def _without_grammar(view: View, run: re.Match[str]) -> Iterator[tuple[int, int]]:
    """The stretches of a run that no word of a sentence interrupts."""
    words = [*re.finditer(r"[a-z]+", run[0])]
    first = 0
    for place in range(len(words) + 1):
        if place < len(words) and words[place][0] not in _GRAMMAR:
            word = words[place]
            if _is_plain(view, run.start() + word.start(), run.start() + word.end()):
                continue
        stretch = words[first:place]
        if len(stretch) >= _SHORTEST and len({word[0] for word in stretch}) > len(stretch) // 2:
            start = run.start() + stretch[0].start()
            number = _NUMBERED.search(run.string, max(0, start - 4), start)
            yield (number.start() if number else start), run.start() + stretch[-1].end()
        first = place + 1


def _announced(view: View) -> Iterator[tuple[int, int]]:
    return (match.span("value") for match in _ANNOUNCED.finditer(view.lower) if _plain(match["value"]))


def _plain(value: str) -> bool:
    """Few words of a sentence may follow the announcement: `the seed phrase is the key to your wallet`."""
    return _GRAMMAR.isdisjoint(re.findall(r"[a-z]+", value)) and not re.search(
        r"(?:^| )(?:of|to|is|it|in|on|a|you|that|what)(?: |$)", value
    )


_WORD: Final = "[a-z]{3,8}"
_SPOKEN_OF: Final = "seed phrase passphrase seedphrase wallet ledger trezor metamask mnemonic recovery crypto portfel portfela krypto fraza frazy slowa"
"""A phrase stands alone, or in a message that has one of these: to look for one in every sentence would cost a fourth of
the whole redaction."""
_TWELVE: Final = rf"(?:{_WORD}[ ,;\n0-9.):]{{1,5}}){{11}}{_WORD}"
_NAMED_SIGN: Final = r"(?i-u:phrase|(?:pass|seed|recovery|backup|secret) ?words|mnemonic|khoi phuc|bi mat|fraza|frazy|slowa)[^\n:=]{0,40}(?:[:=\n]|[ ](?i-u:is|are|to|la)[ ]|[是為为])|助記詞|助记词|短語|短语"
_HAN_CUES: Final = ("詞", "词", "短語", "短语", "錢包", "钱包", "seed", "phrase", "ledger", "私鑰", "私钥")
_COUNTED: Final = (
    r"(?:12|15|18|21|24) ?(?i-u:words|slow|wyraz|tu |chu |chu cai|seed)|(?:12|15|18|21|24) ?[字詞词個个組组]"
)
_NUMBERED_WORDS: Final = rf"(?:{_WORD}[ ,;\n]{{1,3}}[0-9]{{1,2}}[.):]? ){{3}}{_WORD}"
_ALONE: Final = rf"^[ \n\"'0-9.):]{{0,6}}{_TWELVE}"

_PHRASE_FAMILIES: Final = (
    Family((Rule("secret.phrase.alone", "SECRET", _alone, CHECKED),), sign=_ALONE, narrow=_ALONE),
    Family((Rule("secret.phrase", "SECRET", _phrases, CHECKED),), words=_SPOKEN_OF, narrow=_TWELVE),
    Family((Rule("secret.phrase", "SECRET", _phrases, CHECKED),), digits=2, narrow=_COUNTED),
    Family((Rule("secret.phrase.numbered", "SECRET", _numbered, CHECKED),), digits=11, narrow=_NUMBERED_WORDS),
    Family((Rule("secret.phrase", "SECRET", _phrases, CHECKED),), han=True, strings=_HAN_CUES, narrow=_TWELVE),
    Family(
        (Rule("secret.phrase", "SECRET", _phrases, CHECKED),),
        han=True,
        strings=_HAN_CUES,
        narrow=r"(?:[\x{3400}-\x{9FFF}][ ]){11}[\x{3400}-\x{9FFF}]",
    ),
    Family(
        (Rule("secret.phrase.named", "SECRET", _announced, CHECKED),),
        words="phrase passphrase seedphrase words mnemonic tu fraza frazy slowa",
        sign=_NAMED_SIGN,
    ),
    Family(
        (Rule("secret.phrase.named", "SECRET", _announced, CHECKED),),
        han=True,
        strings=("助記詞", "助记词", "短語", "短语"),
    ),
)

FAMILIES: Final = (*_ADDRESS_FAMILIES, *_PHRASE_FAMILIES)
