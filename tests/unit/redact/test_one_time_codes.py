"""Codes that let somebody in for a minute: named as such they are secrets, whatever stands between name and code."""

import pytest

from tests.unit.redact.test_first_families import masked
from threadkeep.policy.redact import redact


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Your verification code is 482910", "482910"),
        ("verification code: 482 910", "482 910"),
        ("482910 is your Google verification code", "482910"),
        ("my one-time code 4829", "4829"),
        ("login code G-482910", "G-482910"),
        ("mã xác nhận của tôi: 482910", "482910"),
        ("ma xac thuc 482910", "482910"),
        ("kod SMS 482910", "482910"),
        ("kod weryfikacyjny to 482910", "482910"),
        ("przyszedł kod jednorazowy 482-910", "482-910"),
        ("驗證碼 482910", "482910"),
        ("驗證碼482910", "482910"),
        ("您的驗證碼：482910", "482910"),
    ],
)
def test_a_one_time_code_is_masked(text, code):
    assert masked(text) == [(code, "SECRET")]


@pytest.mark.parametrize(
    "text",
    [
        "The booking's confirmation number is 8829103456",
        "discount code 482910",
        "kod rabatowy 482910",
        "kod produktu 482910",
        "mã giảm giá 482910",
        "mã đơn hàng 482910",
        "優惠碼 482910",
        "The verification code has 6 digits",
        "verification code expires in 2026",
        "a verification code is sent within 1500 ms",
        "error code is 482910",
        "security code review of 2024",
        "mã xác nhận đặt phòng 482910",
    ],
)
def test_other_codes_stay(text):
    assert masked(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Samsung T7 1TB and Crucial P3 2TB",
        "ổ cứng Kingston NV2 1TB",
        "MacBook M2 8GB",
        "pip install foo==1.2.3.4 bar>=10.0.0.1",
        "一二三四五六七八九十",
    ],
)
def test_parts_versions_and_counting_stay(text):
    assert redact(text).text == text


def test_a_british_postcode_is_masked_all_the_same():
    assert masked("I am in NW1 6XE") == [("NW1 6XE", "ADDRESS")]
    assert redact("221B Baker Street, London NW1 6TB").text == "[REDACTED:ADDRESS]"
