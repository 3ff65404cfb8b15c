"""The held-back redaction sets keep their form: size, marked values, check digits, no template used twice."""

import json
import re
from difflib import SequenceMatcher
from pathlib import Path

import pytest
from stdnum import iban, isbn, luhn
from stdnum.pl import nip, pesel
from stdnum.tw import ubn
from stdnum.vn import mst

from bench import redaction_held_back
from threadkeep.policy.redact import KINDS

FOLDER = Path(__file__).parents[2] / "data" / "redaction" / "held_back"
LANGUAGES = ["en", "vi", "pl", "zh"]
LATIN_WORD = re.compile(r"[^\W\d_\u3400-\u9fff]+")
TAIWAN_LETTERS = "ABCDEFGHJKLMNPQRSTUVXYWZIO"  # in the order of their numbers, from 10


def rows(language):
    return [json.loads(row) for row in (FOLDER / f"{language}.jsonl").read_text(encoding="utf-8").splitlines()]


def shape(text):
    """The text without digits and capitalised words: what two fillings of one template share."""
    bare = re.sub(r"\d", "", text)
    return " ".join(LATIN_WORD.sub(lambda word: "" if word[0][0].isupper() else word[0], bare).split())


def alike(one, other):
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return one == other or (matcher.real_quick_ratio() > 0.8 and matcher.quick_ratio() > 0.8 and matcher.ratio() > 0.8)


def taiwan_id(value):
    letter = TAIWAN_LETTERS.index(value[0]) + 10
    digits = [letter // 10, letter % 10, *map(int, value[1:])]
    return (
        sum(digit * weight for digit, weight in zip(digits, (1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1), strict=True)) % 10 == 0
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_set_has_200_messages_with_private_data_and_200_without(language):
    marked = [bool(row["private"]) for row in rows(language)]
    assert (marked.count(True), marked.count(False)) == (200, 200)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_private_value_is_in_its_message_under_a_known_type(language):
    for row in rows(language):
        assert row.keys() == {"text", "private", "class"}
        for private in row["private"]:
            assert private["value"] in row["text"]
            assert private["value"].strip() == private["value"] != ""
            assert private["type"] in KINDS


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_two_messages_come_from_one_template(language):
    texts = [row["text"] for row in rows(language)]
    shapes = [shape(text) for text in texts]
    pairs = [
        (texts[before], texts[index])
        for index in range(len(texts))
        for before in range(index)
        if alike(shapes[before], shapes[index])
    ]
    assert pairs == []


def test_fillings_of_one_template_are_alike():
    one, other = "ship it to 12 Oak Road before noon", "ship it to 9 Elm Street before noon"
    assert alike(shape(one), shape(other))


@pytest.mark.parametrize("language", LANGUAGES)
def test_check_digits_are_right(language):
    checked = set()
    for private in (private for row in rows(language) for private in row["private"]):
        value, kind = re.sub(r"[\s-]", "", private["value"]), private["type"]
        if kind == "CREDIT_CARD":
            assert luhn.is_valid(value), value
        elif kind == "IBAN":
            assert iban.is_valid(value), value
        elif kind == "BANK_ACCOUNT" and len(value) == 26:
            assert iban.is_valid("PL" + value), value
        elif kind == "NATIONAL_ID" and language == "pl" and value.isdigit():
            assert pesel.is_valid(value), value
        elif kind == "NATIONAL_ID" and re.fullmatch("[A-Z][1289][0-9]{8}", value):
            assert taiwan_id(value), value
        else:
            continue
        checked.add(kind)
    assert {"CREDIT_CARD", "IBAN"} <= checked


NUMBERS_OF_FIRMS_AND_BOOKS = [
    ("vi", r"(?i:mst|mã số thuế)\D*(\d{10}(?:-\d{3})?)", mst, 3),
    ("pl", r"NIP\D*(\d{10})", nip, 1),
    ("zh", r"(?:統編|統一編號)\D*(\d{8})", ubn, 3),
    *((language, r"ISBN (978[-\d]+)", isbn, 1) for language in LANGUAGES),
]


@pytest.mark.parametrize(("language", "pattern", "number", "count"), NUMBERS_OF_FIRMS_AND_BOOKS)
def test_numbers_of_firms_and_books_have_right_check_digits(language, pattern, number, count):
    values = [value for row in rows(language) for value in re.findall(pattern, row["text"])]
    assert len(values) == count
    assert [value for value in values if not number.is_valid(value)] == []


def test_the_benchmark_counts_leaks_per_value_and_per_message_and_alarms_per_message(tmp_path, monkeypatch):
    email, word = {"value": "ann@example.org", "type": "EMAIL"}, {"value": "zebra", "type": "SECRET"}
    messages = [
        {"text": "write to ann@example.org, she likes the zebra and me", "private": [email, word], "class": "several"},
        {"text": "ann@example.org", "private": [email], "class": "email"},
        {"text": "ask bob@example.org or +48 601 234 567", "private": [], "class": "chat"},
        {"text": "good morning", "private": [], "class": "chat"},
    ]
    (tmp_path / "xx.jsonl").write_text("\n".join(map(json.dumps, messages)), encoding="utf-8")
    monkeypatch.setattr(redaction_held_back, "FOLDER", tmp_path)
    figures = redaction_held_back.measure("xx", None)
    rates = figures.rates()
    assert (rates["values"], rates["leak_percent"]) == (3, 33.3)
    assert (rates["messages"], rates["leaking_messages_percent"]) == (2, 50.0)
    assert (rates["innocents"], rates["false_alarms_percent"]) == (2, 50.0)
    assert figures.leaks == [("several", "SECRET", "write to ann@example.org, she likes the ⟦zebra⟧ and me")]
    assert figures.alarms == [("chat", "EMAIL, PHONE", "ask ⟦bob@example.org⟧ or ⟦+48 601 234 567⟧")]
