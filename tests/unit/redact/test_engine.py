"""What every redaction promises, whatever the rules."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadkeep.policy.redact import Redaction, RedactionRules, Redactor, Span, explain, redact
from threadkeep.policy.redact.engine import resolve
from threadkeep.policy.redact.rule import Hit

MIXED = "Mail ann@example.org or call +48 601 234 567; card 4111 1111 1111 1111, token ghp_abcdefghijklmnopqrst0123."


def test_spans_are_offsets_of_the_original_text():
    result = redact(MIXED)
    assert [MIXED[start:end] for start, end, _ in result.spans] == [
        "ann@example.org",
        "+48 601 234 567",
        "4111 1111 1111 1111",
        "ghp_abcdefghijklmnopqrst0123",
    ]


def test_a_typed_placeholder_names_the_type():
    assert redact("mail ann@example.org!").text == "mail [REDACTED:EMAIL]!"


def test_a_plain_placeholder_names_nothing():
    redactor = Redactor(RedactionRules(placeholder="plain"))
    assert redactor("mail ann@example.org!").text == "mail [REDACTED]!"


def test_counts_say_how_many_of_each_type_were_masked():
    assert redact("a@b.org, c@d.org, 81.2.69.142").counts == {"EMAIL": 2, "IP": 1}


def test_a_type_that_is_switched_off_is_left_alone():
    redactor = Redactor(RedactionRules(types=frozenset({"PHONE"})))
    assert redactor("a@b.org or +48 601 234 567").text == "a@b.org or [REDACTED:PHONE]"


def test_an_allowed_value_stays_whatever_its_case():
    redactor = Redactor(RedactionRules(allow=frozenset({"Help@Shop.example"})))
    assert redactor("help@shop.example, me@shop.example").text == "help@shop.example, [REDACTED:EMAIL]"


def test_explain_names_the_rule_and_never_the_value():
    (finding,) = explain("mail ann@example.org")
    assert (finding.span, finding.type, finding.rule) == (Span(5, 20, "EMAIL"), "EMAIL", "email.plain")
    assert "ann" not in repr(finding)


@pytest.mark.parametrize(
    "text", ["", " ", "\0", "\ud800", "😀" * 3, "\u200b\u200b", "[REDACTED]", "[REDACTED:EMAIL#2]"]
)
def test_nothing_to_mask_comes_back_as_it_was(text):
    assert redact(text) == Redaction(text)


def test_text_around_a_lone_surrogate_is_masked_all_the_same():
    assert redact("\ud83d ann@example.org \0").text == "\ud83d [REDACTED:EMAIL] \0"


@given(st.text())
def test_any_text_gives_sorted_disjoint_spans_and_the_same_twice(text):
    result = redact(text)
    borders = [border for start, end, _ in result.spans for border in (start, end)]
    assert borders == sorted(borders)
    assert all(0 <= start < end <= len(text) for start, end, _ in result.spans)
    assert redact(text) == result


PIECES = [
    "ann@example.org",
    "+48 601 234 567",
    "4111111111111111",
    "81.2.69.142",
    "password=hunter2",
    "Phone:",
    "my",
    " ",
    "12",
]


@given(st.lists(st.sampled_from([*PIECES, ", ", "\n", "密碼：", "https://x.io/?token=abc"]), max_size=12).map("".join))
def test_redacting_a_redacted_text_changes_nothing(text):
    once = redact(text).text
    assert redact(once).text == once


def test_letters_in_two_parts_are_masked_with_their_accents():
    text = unicodedata.normalize("NFD", "tôi tên là Nguyễn Thị Hạ, chào")
    redactor = Redactor(RedactionRules(names="rules"))
    assert redactor(text, "vi").text == unicodedata.normalize("NFD", "tôi tên là ") + "[REDACTED:NAME], chào".replace(
        "chào", unicodedata.normalize("NFD", "chào")
    )


def test_a_placeholder_is_not_read_as_a_cue():
    assert redact("[REDACTED:PHONE] 2345678").spans == ()


def claim(start, end, sure, rule="r"):
    return Hit(start, end, rule.upper(), rule, sure)


def test_the_surer_claim_wins_and_the_loser_keeps_what_sticks_out():
    text = "abcdefghij"
    won = resolve([claim(0, 6, 10, "weak"), claim(4, 8, 30, "strong")], text)
    assert [(hit.start, hit.end, hit.rule) for hit in won] == [(0, 4, "weak"), (4, 8, "strong")]


def test_of_two_equally_sure_claims_the_longer_wins():
    won = resolve([claim(2, 5, 10, "short"), claim(0, 6, 10, "long")], "abcdef")
    assert [(hit.start, hit.end, hit.rule) for hit in won] == [(0, 6, "long")]


def test_a_claim_around_a_surer_one_is_split_in_two():
    won = resolve([claim(0, 9, 10, "wide"), claim(3, 6, 30, "core")], "abc123def")
    assert [(hit.start, hit.end, hit.rule) for hit in won] == [(0, 3, "wide"), (3, 6, "core"), (6, 9, "wide")]


def test_what_sticks_out_and_holds_only_punctuation_is_dropped():
    won = resolve([claim(0, 6, 10, "wide"), claim(2, 6, 30, "core")], ", 1234")
    assert [hit.rule for hit in won] == ["core"]
