"""State numbers, accounts, documents, birthdays and coordinates, by example."""

import pytest

from tests.unit.redact.test_first_families import masked


@pytest.mark.parametrize(
    ("text", "language", "number"),
    [
        ("44051401458", "pl", "44051401458"),
        ("PESEL 44051401459 chyba z błędem", "pl", "44051401459"),  # a wrong check digit, but it is called one
        ("NIP: 526-104-08-28", "pl", "526-104-08-28"),
        ("NIP 5261040828", "pl", "5261040828"),
        ("REGON 123456785", "pl", "123456785"),
        ("dowód osobisty ABS123456", "pl", "ABS123456"),
        ("CCCD 079203012345", "vi", "079203012345"),
        ("so can cuoc cong dan 001 203 012 345", "vi", "001 203 012 345"),
        ("CMND 023456789", "vi", "023456789"),
        ("MST 0100233488", "vi", "0100233488"),
        ("身分證字號A123456789", "zh-Hant", "A123456789"),
        ("居留證 A800000014", "zh-Hant", "A800000014"),
        ("她的身份证号码为230103198008273629。", "zh", "230103198008273629"),
        ("ID card number 116726199508279319", "en", "116726199508279319"),
        ("AB 12 34 56 C", "en", "AB 12 34 56 C"),
        ("aadhaar 2341 2341 2346", "en", "2341 2341 2346"),
        ("S1234567D", "en", "S1234567D"),
    ],
)
def test_a_state_number_is_masked(text, language, number):
    assert masked(text, language) == [(number, "NATIONAL_ID")]


@pytest.mark.parametrize("text", ["SSN: 536-90-4399", "my social security number is 536 90 4399", "536-90-4399"])
def test_a_social_security_number_is_masked(text):
    assert [kind for _, kind in masked(text)] == ["SSN"]


@pytest.mark.parametrize(
    "text",
    ["44051401459", "order 44051401458", "A123456788", "ISBN 9780306406157", "1679941234567", "build 20240115103000"],
)
def test_a_number_that_only_looks_like_one_stays(text):
    assert masked(text, "pl") == []


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("IBAN GB82 WEST 1234 5698 7654 32 ok", "IBAN", "GB82 WEST 1234 5698 7654 32"),
        ("pay DE89370400440532013000 please", "IBAN", "DE89370400440532013000"),
        ("gb82west12345698765432", "IBAN", "gb82west12345698765432"),
        ("konto 61 1090 1014 0000 0712 1981 2874", "BANK_ACCOUNT", "61 1090 1014 0000 0712 1981 2874"),
        ("STK 0071001234567 Vietcombank", "BANK_ACCOUNT", "0071001234567"),
        ("帳號：012345678901", "BANK_ACCOUNT", "012345678901"),
        ("routing number 021000021", "BANK_ACCOUNT", "021000021"),
        ("passport no. N1234567", "PASSPORT", "N1234567"),
        ("hộ chiếu C1234567", "PASSPORT", "C1234567"),
        ("護照號碼 300123456", "PASSPORT", "300123456"),
        ("driver's license D1234567", "DRIVER_LICENSE", "D1234567"),
        ("biển số 51F-123.45", "PLATE", "51F-123.45"),
        ("numer rejestracyjny WA 12345", "PLATE", "WA 12345"),
        ("車牌 ABC-1234", "PLATE", "ABC-1234"),
        ("京A12345停在门口", "PLATE", "京A12345"),
        ("date of birth: 3 May 1990", "DATE_OF_BIRTH", "3 May 1990"),
        ("tôi sinh ngày 03/05/1990", "DATE_OF_BIRTH", "03/05/1990"),
        ("urodziłem się 3 maja 1990", "DATE_OF_BIRTH", "3 maja 1990"),
        ("我的生日是1990年5月3日", "DATE_OF_BIRTH", "1990年5月3日"),
        ("meet me here 10.776889, 106.700806", "COORDINATES", "10.776889, 106.700806"),
        ("GPS 10.7768, 106.7008", "COORDINATES", "10.7768, 106.7008"),
        ("wallet 16Yeky6GMjeNkAiNcBY7ZhrLoMSgg1BoyZ", "CRYPTO", "16Yeky6GMjeNkAiNcBY7ZhrLoMSgg1BoyZ"),
    ],
)
def test_a_number_with_a_word_or_a_form_of_its_own_is_masked(text, kind, value):
    assert masked(text) == [(value, kind)]


@pytest.mark.parametrize(
    "text",
    [
        "He was born on 14 March 1879 in Ulm",
        "the sinking at 51°55′45″N 1°40′30″E",
        "the plate from 1962",
        "pi 3.1415, e 2.7182",
        "we have an account of 3 visits",
        "GB82 is a road",
    ],
)
def test_prose_with_numbers_stays(text):
    assert masked(text) == []


def test_the_nearest_word_decides_what_a_number_is():
    text = "ID card number 116726199508279319 or by phone at 0412 1245924, order 44712290118"
    assert [kind for _, kind in masked(text, "en")] == ["NATIONAL_ID", "PHONE"]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("RTX 5060 giá bao nhiêu? số em 0912345678", "0912345678"),
        ("đơn hàng của em bị lỗi, số em 0912345678", "0912345678"),
        ("giá RTX 5060? 0912345678", "0912345678"),
        ("giá sỉ em 0912345678", "0912345678"),  # no price begins with a nought
        ("價格多少？0912345678", "0912345678"),
        ("Cena pokoju? 512 345 678", "512 345 678"),
        ("order 1234, 0912345678", "0912345678"),
        ("I ordered it. My order is late\n0912345678", "0912345678"),
        ("My number is 512345678", "512345678"),
        ("我的號碼 0912345678", "0912345678"),
    ],
)
def test_a_price_or_an_order_spoken_of_before_does_not_hide_a_phone_number(text, number):
    assert masked(text) == [(number, "PHONE")]


@pytest.mark.parametrize(
    "text", ["Mój numer to 512345678", "proszę oddzwonić: 512345678", "512345678", "Jan Kowalski 512345678"]
)
def test_a_polish_mobile_is_masked_though_written_in_one(text):
    assert masked(text, "pl") == [("512345678", "PHONE")]


@pytest.mark.parametrize(
    "text",
    [
        "order 0912345678",
        "mã đơn 0912345678",
        "số đơn hàng: 0912345678",
        "訂單編號：0912345678",
        "invoice no. 0912345678",
        "Zamówienie numer 512345678",
        "Faktura 512345678",
        "cena 512 345 678",
        "population 1 234 567 890",
    ],
)
def test_a_number_that_is_announced_as_something_else_stays(text):
    assert masked(text, "pl") == []


def test_a_card_in_another_clause_than_an_order_is_masked():
    assert masked("order 1234, 4111 1111 1111 1111") == [("4111 1111 1111 1111", "CREDIT_CARD")]
