# ruff: noqa: E501  (tables of words and forms)
"""Polish addresses: `ul. Długa 5/7 m. 3, 00-238 Warszawa`, in any case and without diacritics too.

Everyday ones have no street word (`Marszałkowska 104/122, Warszawa`): a name before a house number, and one thing more. The
name is a street's, it has a street's ending and a flat or a verb of living beside it, or a town or postcode follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from threadkeep.policy.redact.gazetteer import any_of, names, words
from threadkeep.policy.redact.rule import CONTEXT, Family, Rule
from threadkeep.policy.redact.view import View

_STREET: Final = (
    r"(?:ul\.|ul(?= )|ulic[aeyi]|al\.|alej[aei]|alejach|pl\.|plac|placu|os\.|osiedl[eu]|rond[oaui]{1,2}"
    r"|skwer\w{0,2}|bulwar\w{0,2}|bulwarze|skwerze|rondzie|rynku|rynek|trakt\w{0,3}|szos[aey])"
)
_NUMBER: Final = (
    r"[0-9]{1,4}(?:[a-z]|[ ][a-d](?![a-z.]))?(?:[ ]?/[ ]?[0-9]{1,4}[a-z]?)?(?:,?[ ](?:m\.?|lok\.?|lokal|mieszkania"
    r"|mieszkanie|klatka|kl\.?|blok|bl\.|pietro|p\.|pok\.?|pokoj)[ ]?(?:[0-9]{1,4}[a-z]?|[a-z](?![a-z])|[ivx]{1,4}(?![a-z]))|,?[ ](?:pierwsze|drugie|trzecie|czwarte|piate|szoste|siodme|ostatnie|[0-9]{1,2}\.?|[ivx]{1,4}) pietro|,?[ ]parter){0,3}(?![0-9a-z])"
)
_TOWN: Final = r"[A-Z][A-Za-z]{1,20}(?:[ \-][A-Z][A-Za-z]{1,20}){0,2}"
_STREET_ADDRESS: Final = re.compile(rf"(?<![a-z]){_STREET}[ ]?(?:[a-z0-9][a-z0-9.'\-]{{0,25}}[ ]){{1,4}}?{_NUMBER}")
_POSTCODE: Final = re.compile(rf"(?<![0-9A-Za-z\-])[0-9]{{2}}-[0-9]{{3}}[ ](?![A-Z]{{2,3}}(?![A-Za-z])){_TOWN}")
"""`90-100 PSI` is a range with its unit."""
_TAIL: Final = re.compile(
    rf"(?:,?[ ](?:w[ ])?[0-9]{{2}}-[0-9]{{3}}(?:[ ][A-Za-z]{{2,20}}"
    rf"(?:[ \-][A-Z][A-Za-z]{{1,20}}){{0,2}})?|(?:,|[ ]w)[ ]{_TOWN})"
)


def _addresses(view: View) -> Iterator[tuple[int, int]]:
    for match in _STREET_ADDRESS.finditer(view.lower):
        tail = _TOWN_NEXT.match(view.lower, match.end()) or _TAIL.match(view.text, match.end())
        yield match.start(), tail.end() if tail else match.end()


def _postcodes(view: View) -> Iterator[tuple[int, int]]:
    return (match.span() for match in view.from_digits(_POSTCODE))


_KNOWN_STREET: Final = any_of("streets_pl")
_KNOWN_TOWN: Final = any_of("towns_pl")
_ENDING: Final = r"(?:sk|ck|dzk|zk|n|w|j)(?:a|iej|ej)|(?:sk|ck|dzk)iego|(?:icz|owicz|ewicz)a|(?:czna|czej|cza|sta|stej|ta|tej|cha|chej|la|lej|ra|rej|ka|kiej|ga|giej)"
"""Of adjectives that agree with *ulica*, and of surnames that a street is of."""
_NAMED: Final = re.compile(
    rf"(?<![a-z0-9])(?:(?P<known>{_KNOWN_STREET})|(?P<name>(?:[a-z]{{2,20}}[ \-]){{0,2}}?[a-z]{{1,20}}(?:{_ENDING})))"
    rf"[ ](?:nr[ ])?(?P<number>{_NUMBER})"
)
_TOWN_NEXT: Final = re.compile(
    rf"(?:,?[ ](?:w[ ]|we[ ]|k\.?[ ])?[0-9]{{2}}-[0-9]{{3}}(?:[ ](?:{_KNOWN_TOWN}(?![a-z])|[a-z]{{2,20}}))?"
    rf"|(?:,[ ]?|[ ](?:w|we)[ ]|[ ]){_KNOWN_TOWN}(?![a-z]))"
)
_LIVING: Final = re.compile(
    r"(?:(?<![a-z])(?:mieszka\w{0,5}|zamieszka\w{0,5}|zameldowan\w{0,3}|adres\w{0,5}|wysl\w{1,6}|wyslij\w{0,3}|dostaw\w{1,5}|dostarcz\w{0,4}"
    r"|przesylk\w{1,2}|paczk\w{1,2}|kurier\w{0,4}|dowie\w{1,4}|odbior\w{0,2}|odbierz\w{0,2}|przyjed\w{1,4}|podjed\w{1,4}|przyjd\w{1,4}|biuro"
    r"|dom|wynajm\w{1,6}|kupil\w{0,3}|taksowk\w{1,2}|taxi|spotka\w{0,5}|zawiez\w{0,3}|korespondencj\w{1,2}|ul|ulic\w)"
    r"[^0-9\n.;!?]{0,40})\Z"
)
_PLACED: Final = re.compile(r"(?<![a-z])(?:na|przy|pod|z|od|spod|do|kolo|obok)[ ](?:ulic[yae][ ])?\Z")
_NO_STREET: Final = words(
    "ustawa ustawy uchwala strona strony tabela wersja wersji liga ligi polska polskiej pozycja grupa klasa"
    " klasy sprawa sprawy sygnatura faktura umowa umowy norma lista nowa stara edycja seria czesc kolejka"
    " runda dyrektywa rezerwacja oferta zmiana zmiany wygrana maja marca lipca czerwca roku"
)


_LAST_WORDS: Final = frozenset(re.split(r"[ \-]", name)[-1] for name in names("streets_pl"))
_LIKE_A_STREET: Final = re.compile(rf"[a-z]{{1,20}}(?:{_ENDING})")


def _street_before(view: View) -> bool:
    """Whether a word that a street may end with stands in front of some number."""
    return any(_ends_like_a_street(view.lower, start) for start in view.runs)


def _ends_like_a_street(lower: str, number: int) -> bool:
    end = number - 4 if lower[number - 4 : number] == " nr " else number - 1
    if end < 3 or lower[end] != " ":
        return False
    word = lower[max(lower.rfind(" ", max(0, end - 24), end), lower.rfind("-", max(0, end - 24), end)) + 1 : end]
    return word in _LAST_WORDS or _LIKE_A_STREET.fullmatch(word) is not None


def _everyday(view: View) -> Iterator[tuple[int, int]]:
    for left, right in view.around_digits(before=64, after=48):
        yield from _named(view, left, right)


def _named(view: View, left: int, right: int) -> Iterator[tuple[int, int]]:
    for match in _NAMED.finditer(view.lower, left, right):
        town = _TOWN_NEXT.match(view.lower, match.end())
        end = town.end() if town else match.end()
        start = match.start()
        if match["name"] is not None:
            start = _first_capital(view.text, match)
        if _believed(view, match, start, town is not None):
            yield start, end


_CAPITALISED: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:Sw|sw|Gen|gen|Ks|ks|Plk|plk|Dr|dr|Abp|Bp|Marsz|Prof)\.[ ])?[A-Z][a-z]{2,20}(?:[ \-](?:[A-Z][a-z]{2,20}|[IVX]{1,4})){0,2}[ ](?=[0-9])"
)
_NUMBERED: Final = re.compile(_NUMBER)
_AT_HOME: Final = re.compile(
    r"(?<![a-z])(?:mieszka\w{0,5}|blok\w{0,3}|akademik\w{0,2}|kamienic\w{1,2}|klatk\w{1,2}|adres\w{0,3}|u (?:mnie|nas)|dom(?:u|em)?)[ :,]{1,2}(?:to |jest |na |przy |pod )?\Z"
)


def _any_name(view: View) -> Iterator[tuple[int, int]]:
    """A name outside the lists and without a typical ending, if a postcode follows it, or a flat and a preposition."""
    for match in _CAPITALISED.finditer(view.text):
        word = match[0].split(" ")[0].lower()
        number = _NUMBERED.match(view.lower, match.end())
        if (
            number is None
            or (match[0].count(" ") == 1 and word in _NO_STREET)
            or word in _TOWNS
            or re.search(r"/(?:19|20)[0-9]{2}", number[0])
        ):
            continue
        town = _TOWN_NEXT.match(view.lower, number.end())
        postcode = town is not None and re.search(r"[0-9]{2}-[0-9]{3}", town[0])
        flat = re.search(r"/|[ ](?:m|lok|kl|pok|piet)", number[0]) is not None
        placed = _PLACED.search(view.lower, max(0, match.start() - 16), match.start()) is not None
        home = _AT_HOME.search(view.lower, max(0, match.start() - 24), match.start()) is not None
        if postcode or (flat and (placed or home)) or (home and len(number[0]) <= 3):
            yield match.start(), town.end() if town else number.end()


_TOWNS: Final = names("towns_pl")
_STREETS: Final = names("streets_pl")


def _first_capital(text: str, match: re.Match[str]) -> int:
    """Of the words in front only those with a capital belong to the name."""
    start = match.start("number") - 1
    while start > match.start("name"):
        before = max(text.rfind(" ", match.start("name"), start), match.start("name") - 1) + 1
        if start < match.start("number") - 1 and not text[before].isupper():
            return start + 1
        start = before - 1
    return match.start("name")


def _believed(view: View, match: re.Match[str], start: int, town: bool) -> bool:
    word = view.lower[start : match.start("number")].split(" ")[0]
    number = match["number"]
    capital = view.text[view.text.rfind(" ", 0, match.start("number") - 1) + 1].isupper()
    flat = re.search(r"/|[ ](?:m|lok|kl|pok|piet|parter|trzecie|drugie|pierwsze)", number) is not None
    known = match["known"] is not None or view.lower[start : match.start("number") - 1] in _STREETS
    if word in _NO_STREET and not known:
        return False
    if re.search(r"/(?:19|20)[0-9]{2}(?![0-9])", number):
        return False
    if town and re.fullmatch(r"(?:1[5-9]|20)[0-9]{2}", number) is None:
        return capital or flat or known
    year = re.fullmatch(r"(?:1[5-9]|20)[0-9]{2}", number) is not None
    if year:
        return False
    living = _LIVING.search(view.lower, max(0, start - 60), start) is not None
    placed = _PLACED.search(view.lower, max(0, start - 16), start) is not None
    if capital:
        # `Polna 5` may be a heading; a preposition in front, or the verb, makes it an address.
        return flat or living or (placed and word.endswith(("ej", "iego", "icza", "skie"))) or (placed and known)
    return living and (flat or placed or known)


_WORDS: Final = "ul ulica ulicy ulice al aleja alei aleje alejach pl plac placu os osiedle osiedlu rondo ronda rondzie skwer skwerze bulwar bulwarze rynek rynku trakt trakcie szosa szosie szosy"


FAMILIES: Final = (
    Family((Rule("address.pl", "ADDRESS", _addresses, CONTEXT - 3),), words=_WORDS, digits=1),
    Family(
        (Rule("address.pl.postcode", "ADDRESS", _postcodes, CONTEXT - 6),),
        digits=5,
        signs="00-000",
        narrow="[0-9]{2}-[0-9]{3}",
    ),
    Family(
        (Rule("address.pl.everyday", "ADDRESS", _everyday, CONTEXT - 6),),
        digits=1,
        gate=_street_before,
        narrow=r"[A-Za-z] (?i-u:nr )?[0-9]",
    ),
    Family(
        (Rule("address.pl.name", "ADDRESS", _any_name, CONTEXT - 7),),
        digits=1,
        narrow=r"[A-Z][A-Za-z]{1,20} [0-9]{1,4}[a-z]?(?:/[0-9]|,? [0-9]{2}-[0-9]{3}|,? (?i-u:m|lok|kl|pok|klatka|parter|pietro)[. ])|(?i-u:mieszka|blok|akademik|kamienic|klatk|adres|u mnie|u nas|dom)[a-z]{0,5}[ :,]{1,2}(?:to |jest |na |przy |pod )?[A-Z][A-Za-z. ]{2,60} [0-9]",
        apart=True,
    ),
)
