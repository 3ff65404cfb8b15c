"""What the end of a line cuts in two: a mail program, a terminal and a narrow table all do that."""

import pytest

from tests.unit.redact.test_first_families import masked
from threadkeep.policy.redact import redact


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("my number: +1 415\n555 2671, thanks", "+1 415\n555 2671"),
        ("My phone is 415-555-\n2671.", "415-555-\n2671"),
        ("call me on 415 555\r\n2671", "415 555\r\n2671"),
        ("tel. 601 234\n567", "601 234\n567"),
        ("zadzwoń: 22 123\n  45 67", "22 123\n  45 67"),
        ("số điện thoại 0912\n345 678", "0912\n345 678"),
        ("我的電話是 0912-345\n678", "0912-345\n678"),
    ],
)
def test_a_phone_number_is_masked_across_a_line_end(text, number):
    assert masked(text) == [(number, "PHONE")]


@pytest.mark.parametrize("number", ["4111 1111\n1111 1111", "4111-1111-1111-\n1111", "4111\t1111\t1111\t1111"])
def test_a_card_is_masked_across_a_line_end_and_in_a_row_of_a_table(number):
    assert masked(f"it is {number} ok") == [(number, "CREDIT_CARD")]


@pytest.mark.parametrize("number", ["GB82 WEST 1234\n5698 7654 32", "PL61 1090 1014 0000\n0712 1981 2874"])
def test_an_iban_is_masked_across_a_line_end(number):
    assert masked(f"pay to {number} today") == [(number, "IBAN")]


@pytest.mark.parametrize("address", ["john.doe@\ngmail.com", "john.doe\n@gmail.com"])
def test_an_address_is_masked_across_a_line_end(address):
    assert masked(f"write to {address} soon") == [(address, "EMAIL")]


@pytest.mark.parametrize(
    "text",
    [
        "call room 1204\n15 990 000 VND",
        "Tel: see page 12\n2026-11-16 14:30",
        "phone: RTX 4090 24\n16384 cores",
        "call 1\n2\n3\n4\n5\n6\n7",
        "Order 601 234\n567",
        "Total 1 234 567\n8 901 234",
        "2019 2020\n2021 2022",
        "4012 1990\n2024 2025",
        "thanks\n@app.route('/x')\ndef f(): ...",
        "hello\n@ann.example said so",
        "GB82 parts\n1234 5678",
        "i9-14900K 24\n32 GB DDR5",
    ],
)
def test_lines_that_only_follow_each_other_stay(text):
    assert masked(text) == []


def test_a_number_that_is_whole_takes_nothing_from_the_next_line():
    assert redact("tel. 601 234 567\n12 osób").text == "tel. [REDACTED:PHONE]\n12 osób"
    assert redact("call 415 555 2671\n22 guests").text == "call [REDACTED:PHONE]\n22 guests"


@pytest.mark.parametrize(
    "address", ["jane@corp\n.com", "jane@corp.\ncom", "jane@corp-mail.\r\n  com", "jane@gmail.\r\ncom"]
)
def test_an_address_whose_domain_a_line_end_cuts_in_two_is_masked(address: str) -> None:
    assert redact(f"Write to {address} today").text == "Write to [REDACTED:EMAIL] today"


@pytest.mark.parametrize("text", ["meet me @home\n.net rocks", "see a@b\nand c", "Ask jane@corp.\nCompany matters"])
def test_what_only_looks_like_the_end_of_an_address_stays(text: str) -> None:
    assert redact(text).text == text


def test_the_secret_behind_an_access_key_is_masked_with_it() -> None:
    pair = "AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY12"
    assert "wJalr" not in redact(f"use {pair} for the bucket").text


def test_a_chinese_date_of_birth_in_years_of_the_republic_is_masked_behind_each_label() -> None:
    for label in ("生日", "出生日期", "出生年月日："):
        assert redact(f"{label} 79/05/12").text == f"{label} [REDACTED:DATE_OF_BIRTH]"
