"""E-mail, phone, card, network address, URL and secret rules, by example."""

import pytest

from threadkeep.policy.redact import redact


def masked(text, language=None):
    return [(text[start:end], kind) for start, end, kind in redact(text, language).spans]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("write to ann.lee+x@mail.example.co.uk.", "ann.lee+x@mail.example.co.uk"),
        ("信箱abc@mail.tw或電話", "abc@mail.tw"),
        ("<ann@example.org>", "ann@example.org"),
        ("a@xn--d1acufc.xn--p1ai ok", "a@xn--d1acufc.xn--p1ai"),
        ("jürgen@exämple.de", "jürgen@exämple.de"),
        ("ann@example.com-Office", "ann@example.com"),
        ("ｊｏｈｎ＠ｅｘａｍｐｌｅ．ｃｏｍ here", "ｊｏｈｎ＠ｅｘａｍｐｌｅ．ｃｏｍ"),
        ("a\u200bnn@exam\u200bple.org", "a\u200bnn@exam\u200bple.org"),
        ("аnn@example.org", "аnn@example.org"),  # the first letter is Cyrillic
        ("ann [at] example [dot] org", "ann [at] example [dot] org"),
        ("ann (at) example.org", "ann (at) example.org"),
        ("ann at example dot org", "ann at example dot org"),
        ("ann małpa example kropka pl", "ann małpa example kropka pl"),
        ("ann @ example . com", "ann @ example . com"),
        ("me: a n n @ e x a m p l e . o r g", "a n n @ e x a m p l e . o r g"),
    ],
)
def test_an_address_is_masked_whole_and_nothing_beside_it(text, address):
    assert masked(text) == [(address, "EMAIL")]


@pytest.mark.parametrize("text", ["meet me at noon", "@ann and @bob", "look at example.org", "3 @ 5", "x@y"])
def test_an_at_sign_alone_is_no_address(text):
    assert masked(text) == []


@pytest.mark.parametrize(
    ("text", "language", "number"),
    [
        ("ring +1 (415) 555-0132 x12", "en", "+1 (415) 555-0132 x12"),
        ("SĐT của tôi 0912 345 678 nhé", "vi", "0912 345 678"),
        ("0987654321", "vi", "0987654321"),
        ("zadzwoń 601 234 567 po 17", "pl", "601 234 567"),
        ("手機0912-345-678", "zh-Hant", "0912-345-678"),
        ("手机13945671234联系", "zh", "13945671234"),
        ("(95) 94215-7906", None, "(95) 94215-7906"),
        ("0 9 1 2 3 4 5 6 7 8 là số của em", "vi", "0 9 1 2 3 4 5 6 7 8"),
        ("my phone: ０９１２３４５６７８", None, "０９１２３４５６７８"),
        ("416 60 039 office", "en", "416 60 039"),
        (
            "my number: four one five five five five zero one three two",
            "en",
            "four one five five five five zero one three two",
        ),
        ("số mình không chín một hai ba bốn năm sáu bảy tám nhé", "vi", "không chín một hai ba bốn năm sáu bảy tám"),
        ("我的手機是零九一二三四五六七八", "zh-Hant", "零九一二三四五六七八"),
    ],
)
def test_a_phone_number_is_masked_with_its_extension(text, language, number):
    assert masked(text, language) == [(number, "PHONE")]


@pytest.mark.parametrize(
    "text",
    [
        "between 2016-2021",
        "it costs 200-300 dollars",
        "0.16777216",
        "on 2021-05-03 12:30:00",
        "ISBN 978-0-306-40615-7",
        "order 4471 2290 118",
        "version 10.15.7",
        "1 000 000 people",
        "pi is 3.14159265358979",
        "call me in 2025",
    ],
)
def test_innocent_numbers_are_left_alone(text):
    assert masked(text) == []


@pytest.mark.parametrize(
    "number",
    [
        "4111111111111111",
        "4111-1111-1111-1111",
        "378282246310005",
        "30569309025904",
        "3530111333300000",
        "675984103431",
    ],
)
def test_a_card_of_any_issuer_is_masked_where_the_text_calls_it_a_card(number):
    assert masked(f"my card {number}") == [(number, "CREDIT_CARD")]


@pytest.mark.parametrize("before", ["Contact please use", "call", "phone:", "gọi", "tel."])
def test_a_number_too_long_to_be_called_is_a_card_whoever_is_to_be_called(before):
    assert masked(f"{before} 4111 1111 1111 1111 now") == [("4111 1111 1111 1111", "CREDIT_CARD")]


def test_a_number_that_fails_luhn_and_is_not_called_a_card_is_no_card():
    assert ("4111111111111112", "CREDIT_CARD") not in masked("total 4111111111111112")


@pytest.mark.parametrize(
    "address", ["81.2.69.142", "172.64.0.0/13", "2001:db8::8a2e:370:7334", "2a00:1450:4013:c06::8b%eth0"]
)
def test_an_ip_address_is_masked(address):
    assert masked(f"ping {address} please") == [(address, "IP")]


@pytest.mark.parametrize(
    "address",
    ["192.168.0.1", "10.0.0.0/8", "172.31.255.1", "169.254.1.1", "fe80::1ff:fe23:4567:890a%eth0", "fd12:3456:789a::1"],
)
def test_an_address_of_a_private_network_stays(address):
    assert masked(f"ping {address} please") == []


@pytest.mark.parametrize("text", ["version 1.2.3.4", "at 12:30:45", "std::vector", "300.1.2.3", "1.2.3.4.5"])
def test_a_version_or_a_time_is_no_ip_address(text):
    assert masked(text) == []


def test_a_hardware_address_is_masked():
    assert masked("mac 00:1A:2B:3C:4D:5E") == [("00:1A:2B:3C:4D:5E", "MAC")]


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("x eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"),
        ("AKIAIOSFODNN7EXAMPLE!", "AKIAIOSFODNN7EXAMPLE"),
        ("key sk-ant-api03-abcdef_ghij-123", "sk-ant-api03-abcdef_ghij-123"),
        ("Authorization: Bearer abc.def-123456", "abc.def-123456"),
        ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("postgres://bob:s3cr3t@db.internal/x", "s3cr3t"),
        ('{"password": "correct horse"}', "correct horse"),
        ("DB_PASSWORD=hunter2", "hunter2"),
        ("mật khẩu: MeoMun99", "MeoMun99"),
        ("hasło to Kotek7!x", "Kotek7!x"),
        ("密碼是 abc12345", "abc12345"),
        ("my password is hunter2", "hunter2"),
        ("mã OTP của bạn là 482913", "482913"),
        ("cvv 123", "123"),
        ("recovery phrase: apple brick cloud dance eagle", "apple brick cloud dance eagle"),
    ],
)
def test_a_secret_is_masked_and_its_label_stays(text, secret):
    assert (secret, "SECRET") in masked(text)


def test_a_private_key_is_masked_from_its_first_line_to_its_last():
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\nabc=\n-----END RSA PRIVATE KEY-----"
    assert redact(f"here: {key} ok").text == "here: [REDACTED:SECRET] ok"


def test_a_private_key_cut_short_is_masked_as_far_as_it_goes():
    assert redact("-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7").text == "[REDACTED:SECRET]"


@pytest.mark.parametrize(
    "text", ["my password is required", "the key point is trust", "token: optional", "I passed the test"]
)
def test_talk_about_secrets_is_no_secret(text):
    assert masked(text) == []


def test_only_the_sensitive_part_of_a_url_is_masked():
    text = "see https://shop.example/cart?item=5&access_token=abc123&page=2#top"
    assert redact(text).text == "see https://shop.example/cart?item=5&access_token=[REDACTED:URL]&page=2#top"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("https://u:pw@host.io/x", "https://[REDACTED:URL]:[REDACTED:SECRET]@host.io/x"),
        ("https://x.io/#access_token=abc&state=1", "https://x.io/#access_token=[REDACTED:URL]&state=[REDACTED:URL]"),
        ("https://x.io/k?X-Amz-Signature=abc&v=1", "https://x.io/k?X-Amz-Signature=[REDACTED:URL]&v=1"),
        ("https://x.io/reset/abcdefghij0123456789", "https://x.io/reset/[REDACTED:URL]"),
    ],
)
def test_credentials_fragments_signatures_and_one_time_links_are_sensitive(text, kept):
    assert redact(text).text == kept


def test_a_url_without_secrets_is_left_alone():
    assert masked("https://en.wikipedia.org/wiki/Key_(cryptography)?oldid=123") == []


def test_an_address_whose_domain_has_an_underscore_is_masked():
    assert redact("write to a_b@x_y.com today").text == "write to [REDACTED:EMAIL] today"


@pytest.mark.parametrize(
    "number", ["9704365122334458", "9704 3651 2233 4458", "9704-3651-2233-4458", "9704150000111222333"]
)
@pytest.mark.parametrize("text", ["{}", "thẻ {} nhé", "Thẻ ATM của tôi là {}", "my card {}"])
def test_a_domestic_card_of_vietnam_is_masked(text: str, number: str) -> None:
    found = redact(text.format(number), "vi")
    assert [kind for _, _, kind in found.spans] == ["CREDIT_CARD"]
    assert number not in found.text
