"""Ordinals, custom rules in TOML, allow-lists and the recogniser port."""

import logging

import pytest

from threadkeep.errors import InvalidSetting
from threadkeep.policy.redact import Ordinals, PresidioRecogniser, RedactionRules, Redactor, load_rules, redact
from threadkeep.policy.redact.custom import why_slow

KEY = b"0123456789abcdef"
TICKETS = """
allow = ["help@shop.example"]

[[rule]]
name = "ticket"
pattern = "TCK-[0-9]{6}"
finds = ["see TCK-123456 please"]
spares = ["TCK-12", "tck-123456"]
"""


def test_the_same_value_gets_the_same_ordinal_however_it_is_written():
    ordinals = Ordinals(KEY, "c1")
    text = "a@b.org, c@d.org, A@B.org; +48 601 234 567 or +48601234567"
    assert Redactor()(text, ordinals=ordinals).text == (
        "[REDACTED:EMAIL#1], [REDACTED:EMAIL#2], [REDACTED:EMAIL#1]; [REDACTED:PHONE#1] or [REDACTED:PHONE#1]"
    )


def test_ordinals_go_on_where_the_last_message_left_off():
    first = Ordinals(KEY, "c1")
    Redactor()("a@b.org", ordinals=first)
    later = Ordinals(KEY, "c1", first.known)
    assert Redactor()("x@y.org and a@b.org", ordinals=later).text == "[REDACTED:EMAIL#2] and [REDACTED:EMAIL#1]"


def test_what_ordinals_remember_is_neither_the_value_nor_comparable_across_conversations():
    memories = [Ordinals(key, talk) for key, talk in ((KEY, "c1"), (KEY, "c2"), (b"f" * 16, "c1"))]
    for ordinals in memories:
        Redactor()("ann@b.org", ordinals=ordinals)
    digests = {digest for ordinals in memories for digest in ordinals.known}
    assert len(digests) == 3
    assert not any("ann" in digest for digest in digests)


def test_a_key_too_short_to_resist_guessing_is_refused():
    with pytest.raises(InvalidSetting, match="16 bytes"):
        Ordinals(b"short", "c1")


def test_a_text_with_ordinals_is_clean():
    once = Redactor()("mail a@b.org, tel 601 234 567", ordinals=Ordinals(KEY, "c")).text
    assert redact(once).text == once


def test_custom_rules_and_the_allow_list_come_from_toml():
    redactor = Redactor(load_rules(TICKETS))
    assert redactor("TCK-123456 from help@shop.example").text == "[REDACTED:INTERNAL_ID] from help@shop.example"


@pytest.mark.parametrize(
    ("toml", "complaint"),
    [
        (TICKETS.replace("see TCK-123456 please", "see TCK-1"), "does not find its example"),
        (TICKETS.replace('"TCK-12"', '"TCK-654321"'), "finds its example"),
        (TICKETS.replace("[0-9]{6}", "[0-9]+"), "without an upper bound"),
        (TICKETS.replace("[0-9]{6}", "([0-9]{1,3}){1,3}"), "repeats a group that itself repeats"),
        (TICKETS.replace("[0-9]{6}", "[0-9"), "not a regular expression"),
        (TICKETS + "\nsurprise = 1", "rule.0.surprise"),
        ("types = ['EMAIL', 'SHOE_SIZE']", "no type SHOE_SIZE"),
        ("names = true", "redaction.names"),
        ("allow = [", "is not TOML"),
    ],
)
def test_a_rule_file_that_does_not_hold_what_it_says_is_refused(toml, complaint):
    with pytest.raises(InvalidSetting, match=complaint):
        load_rules(toml)


@pytest.mark.parametrize("pattern", ["a*", "a+?", "(?:a|b)+", "a{2,}", "(a{1,9}b{0,9}){2,5}", "a{1,200}b{1,200}"])
def test_a_pattern_that_could_be_slow_is_known(pattern):
    assert why_slow(pattern)


@pytest.mark.parametrize("pattern", [r"a\+", "[*+]{3}", "a{4}(b|c)?", r"(?<![0-9])[A-Z]{1,8}-[0-9]{1,64}", "(ab){3}"])
def test_a_pattern_that_is_bounded_is_allowed(pattern):
    assert why_slow(pattern) is None


def test_an_allowed_number_stays_however_it_is_grouped():
    redactor = Redactor(RedactionRules(allow=frozenset({"+48601234567"})))
    assert redactor("call +48 601-234-567").spans == ()


def test_phone_regions_can_be_set():
    spanish = Redactor(RedactionRules(regions=("ES",)))
    assert spanish("612 34 56 78").counts == {"PHONE": 1}
    assert redact("612 34 56 78", "vi").counts == {}


def test_a_recogniser_adds_names_and_rules_still_win_their_own():
    def recogniser(text, language):
        return [(0, 3, "NAME"), (4, 15, "NAME")]

    assert Redactor(recogniser=recogniser)("Ann ann@b.orgs").text == "[REDACTED:NAME] [REDACTED:EMAIL]"


def test_a_recogniser_that_fails_costs_only_its_own_findings(caplog):
    def broken(text, language):
        raise RuntimeError("out of memory while reading ann@b.org")

    with caplog.at_level(logging.WARNING):
        assert Redactor(recogniser=broken)("ann@b.org").text == "[REDACTED:EMAIL]"
    assert "ann@b.org" not in caplog.text
    assert "RuntimeError" in caplog.text


def test_presidio_finds_names_that_no_rule_can():
    pytest.importorskip("presidio_analyzer")
    redactor = Redactor(recogniser=PresidioRecogniser())
    assert redactor("Yesterday Barbara Johnson flew home.", "en").counts == {"NAME": 1}
    assert redactor("Wczoraj Barbara Nowak wróciła.", "pl").counts == {}
