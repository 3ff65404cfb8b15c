"""The look that spares most texts the rules is silent only where no rule would have found anything."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.redaction_hostile import UNITS, hostile
from bench.redaction_secrets import secrets
from bench.redaction_sets import templates
from threadkeep.policy.redact import (
    RedactionRules,
    Redactor,
    addresses_western,
    banking,
    context,
    disguises,
    emails,
    ids,
    load_rules,
    names,
    network,
    passwords,
    tokens,
    wallets,
)
from threadkeep.policy.redact.engine import BUILT_IN, Selection
from threadkeep.policy.redact.rule import _CLUSTER, CLUSTER, SPACE, Family, Prescan, Rule, every, shadow

DATA = Path(__file__).parents[2] / "data"
LINES = [case.text for case in (*templates(DATA, "vi"), *templates(DATA, "pl"), *secrets(per_line=2))]
PIECES = [piece for line in LINES for piece in line.split()]
GLUE = ["", " ", "\n", "\t", "\x1c", ": ", "=", ".", "-", "'", "\u200b", "\u3000", "é", "是", "\ud800"]

EVERYTHING = RedactionRules(names="rules")
with_prescan = Redactor(EVERYTHING)
without = Redactor(EVERYTHING, recogniser=lambda text, language: ())  # a recogniser must see every text
without._families = Selection(replace(family, narrow="") for family in BUILT_IN)


@pytest.mark.parametrize("change", [str, str.upper, str.lower, str.title], ids=["as is", "upper", "lower", "title"])
def test_no_line_of_the_sets_is_passed_over(change):
    for line in LINES:
        assert with_prescan(change(line), "vi") == without(change(line), "vi")


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS.keys())
def test_no_hostile_text_is_passed_over(unit):
    text = hostile(unit, 240)
    assert with_prescan(text, "en") == without(text, "en")


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.sampled_from(GLUE) | st.text(max_size=3), max_size=14))
def test_no_mixture_of_their_pieces_is_passed_over(pieces):
    text = "".join(pieces)
    assert with_prescan(text, "pl") == without(text, "pl")


def _narrow(rule: str) -> Prescan:
    (pattern,) = {family.narrow for family in BUILT_IN if family.narrow and rule in {one.name for one in family.rules}}
    return Prescan(pattern)


FORMS = {
    "cue": (context._ALL, context._ANY),
    "pair": (passwords._PAIR, Prescan(passwords._SIGN)),
    "said": (passwords._SAID, Prescan(passwords._SIGN)),
    "said of": (passwords._SAID_OF, Prescan(passwords._SIGN)),
    "bare": (passwords._BARE, Prescan(passwords._SIGN)),
    "below": (passwords._BELOW, Prescan(passwords._NARROW)),
    "quoted": (passwords._QUOTED, Prescan(passwords._SIGN)),
    "one-time code nearby": (passwords._ONCE, Prescan(passwords._ONCE_SIGN)),
    "code of its own form": (passwords._GOOGLE, _narrow("secret.once.form")),
    "code of a keypad": (passwords._KEYPAD, _narrow("secret.once.form")),
    "seed phrase": (wallets._ANNOUNCED, Prescan(wallets._NAMED_SIGN)),
    "spelled address": (emails._SPELLED, Prescan(emails._SPELLED_AT)),
    "spoken digits": (disguises._SPOKEN, Prescan(disguises._THREE_WORDS)),
    "English name": (names._ENGLISH, Prescan(names._ENGLISH_SIGN)),
    "Vietnamese name": (re.compile(names._VIETNAMESE), Prescan(names._VIETNAMESE_SIGN)),
    "Vietnamese title": (names._VIETNAMESE_TITLED, Prescan(names._VIETNAMESE_TITLE_SIGN)),
    "English title": (re.compile(names._TITLED), Prescan.of(BUILT_IN)),
    "IPv6 address": (network._V6, Prescan.of(BUILT_IN)),
    "part of a hardware address": (network._MAC, Prescan(network._MAC_PART)),
    "hardware address": (network._MAC, _narrow("mac")),
    "cluster": (_CLUSTER, Prescan(CLUSTER)),
    "card": (re.compile(f"{banking._GROUPED.pattern}|{banking._GLUED.pattern}"), _narrow("card.disguised")),
    "IBAN": (banking._IBAN, _narrow("iban")),
    "scattered id": (re.compile("|".join(form.pattern for form in ids.SCATTERED)), _narrow("id.us.mbi")),
    "coordinates": (network._DECIMAL, _narrow("coordinates.decimal")),
    "minutes": (network._MINUTES, _narrow("coordinates.minutes")),
    "document": (ids._CODE, _narrow("passport")),
    "Vietnamese plate": (ids._VIETNAMESE, _narrow("plate.vn")),
    "wallet": (
        re.compile(f"{wallets._BITCOIN.pattern}|{wallets._SEGWIT}|{wallets._ETHEREUM}"),
        _narrow("wallet.bitcoin"),
    ),
    "IPv4 address": (network._V4, _narrow("ip.v4")),
    "Polish postcode": (addresses_western._PL_POSTCODE, _narrow("address.pl.postcode")),
    "British postcode": (re.compile(addresses_western._UK_POSTCODE), _narrow("address.postcode.gb")),
    "English street": (addresses_western._ENGLISH, _narrow("address.english")),
    "told address": (addresses_western._CUED, _narrow("address.told")),
    "unit": (addresses_western._WITH_UNIT, _narrow("address.unit")),
    "wrapped phone": (disguises._PHONE, _narrow("phone.wrapped")),
    "wrapped e-mail": (re.compile(disguises._EMAIL), Prescan.of(BUILT_IN)),
    "vendor": (re.compile("|".join(form for _, _, form in tokens._VENDORS)), Prescan(tokens._ANY_VENDOR)),
}


@pytest.mark.parametrize(("rule", "sign"), FORMS.values(), ids=FORMS.keys())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the making of it is
@given(st.data())
def test_whatever_a_rule_matches_its_sign_is_seen_in(rule, sign, data):
    # Rules and signs read the folded text, where a dotless i is an i: only one of the two engines takes it for one.
    text, _ = shadow(data.draw(st.from_regex(rule)))
    found = rule.search(text)
    assert found is None or sign(text)


def test_every_built_in_family_says_what_it_cannot_do_without():
    assert Prescan.of(BUILT_IN) is not None


def test_plain_talk_is_passed_over():
    looks_closer = Prescan.of(BUILT_IN)
    assert looks_closer is not None
    assert not looks_closer("That is the key to a good call: we miss one another, oh well.")


def test_a_text_that_is_not_unicode_is_looked_at():
    assert with_prescan("\ud800 ann@example.org").text == "\ud800 [REDACTED:EMAIL]"


def test_a_family_that_says_nothing_sees_every_text():
    assert Prescan.of([Family((Rule("any", "NAME", every("x")),))]) is None
    rules = '[[rule]]\nname = "word"\npattern = "xyzzy"\nfinds = ["xyzzy"]\n'
    assert Redactor(load_rules(rules))("say xyzzy").text == "say [REDACTED:INTERNAL_ID]"


def test_a_string_of_another_class_is_read_like_any():
    class Name(str):
        __slots__ = ()

    assert with_prescan(Name("ann@example.org")).text == "[REDACTED:EMAIL]"


def test_white_space_means_the_same_to_both_engines():
    space, ours = re.compile(r"\s"), Prescan(SPACE)
    assert all(ours(chr(code)) for code in range(0x3100) if space.match(chr(code)))
