"""Personal data and secrets that are written so that a plain pattern would miss them."""

import pytest

from tests.unit.redact.test_first_families import masked
from threadkeep.policy.redact import redact


@pytest.mark.parametrize("language", [None, "en", "vi", "pl", "zh-Hant", "de"])
@pytest.mark.parametrize("number", ["22 123 45 67", "601 234 567", "0912345678"])
def test_a_language_never_takes_a_phone_region_away(number, language):
    assert masked(number, language) == [(number, "PHONE")]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("postgres://me:p@ss@host/db", "postgres://[REDACTED:URL]:[REDACTED:SECRET]@host/db"),
        ("postgres://me:p@ss@host.com/db", "postgres://[REDACTED:URL]:[REDACTED:SECRET]@host.com/db"),
        ("https://me@corp.com:pw@host.com/", "https://[REDACTED:URL]@host.com/"),
    ],
)
def test_user_information_ends_at_the_last_at_sign(text, kept):
    assert redact(text).text == kept


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("see https://x.io/u/an%40example.com/y", "an%40example.com"),
        ("an%40example.com", "an%40example.com"),
        ("write an&#64;example.com.", "an&#64;example.com"),
        ("write an&#x40;example.com.", "an&#x40;example.com"),
        ("write an&commat;example.com.", "an&commat;example.com"),
        (r'{"to":"an\u0040example.com"}', r"an\u0040example.com"),
    ],
)
def test_an_address_with_an_encoded_at_sign_is_masked(text, address):
    assert masked(text) == [(address, "EMAIL")]


@pytest.mark.parametrize("text", ["npm/%40babel%2Fcore", "react%4018.2.0", "100%40"])
def test_an_encoded_at_sign_alone_is_no_address(text):
    assert masked(text) == []


@pytest.mark.parametrize(
    "number",
    [
        "4111_1111_1111_1111",
        "4111/1111/1111/1111",
        "4111\n1111\n1111\n1111",
        "4111, 1111, 1111, 1111",
    ],
)
def test_a_card_in_groups_of_four_is_masked_whatever_stands_between(number):
    assert masked(f"it is {number} ok") == [(number, "CREDIT_CARD")]


@pytest.mark.parametrize("text", ["order_4111111111111111", "x4111111111111111.png", "amex378282246310005"])
def test_a_card_glued_to_a_word_is_masked(text):
    assert [kind for _, kind in masked(text)] == ["CREDIT_CARD"]


@pytest.mark.parametrize(
    "text",
    [
        "order_4111111111111112",
        "4111, 1111, 1111, 1112",
        "1000, 4111, 1111, 1111, 1111",
        "sha 9f4111111111111111ab",
        "id_41111111111111111",
    ],
)
def test_digits_that_only_resemble_a_card_stay(text):
    assert masked(text) == []


def test_an_iban_in_lower_case_is_masked():
    number = "pl61 1090 1014 0000 0712 1981 2874"
    assert masked(f"no10 send it to {number} today") == [(number, "IBAN")]
    assert ("IBAN") not in redact("pl62 1090 1014 0000 0712 1981 2874").counts


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("curl -u bob:tiger https://x.io", "tiger"),
        ("curl -sS --user 'bob:tiger' https://x.io", "tiger"),
        ("mysqldump --password tiger7 db", "tiger7"),
        ("run --password=tiger", "tiger"),
        ("login --password tiger -v", "tiger"),
        ("mysql -u root -ptiger shop", "tiger"),
        ("psql -h x -ptiger", "tiger"),
        ('{"pw":"tiger"}', "tiger"),
        ("mysql -uroot -p'ti ger' shop", "ti ger"),
        ('curl -u "bob:ti ger" x', "ti ger"),
        ('login --password "my tame tiger" now', "my tame tiger"),
        ("DB_PASSWORD=tame.tiger", "tame.tiger"),
        ("password: tame.tiger\n", "tame.tiger"),
        ("x eyJhbGciOiJub.eyJzdWIiOiJhbm.abcDEFghiJKL", "eyJhbGciOiJub.eyJzdWIiOiJhbm.abcDEFghiJKL"),
        ("ésk-ant-api03-abcdef_ghij-123", "sk-ant-api03-abcdef_ghij-123"),
        ("kluczęghp_abcdefghijklmnopqrst0123", "ghp_abcdefghijklmnopqrst0123"),
        ("a\u0301\u200bé\u200bsk-ant-api03-abcdef_ghij-123", "sk-ant-api03-abcdef_ghij-123"),
    ],
)
def test_a_secret_on_a_command_line_or_beside_a_letter_is_masked(text, secret):
    assert masked(text) == [(secret, "SECRET")]
