"""Addresses and names, by example, in the four languages."""

import pytest

from tests.unit.redact.test_first_families import masked
from threadkeep.policy.redact import RedactionRules, Redactor, redact

names_too = Redactor(RedactionRules(names="rules"))


def masked_with_names(text, language=None):
    return [(text[start:end], kind) for start, end, kind in names_too(text, language).spans]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("She resides at 97 Lincoln Street. Then", "97 Lincoln Street."),
        (
            "ship to 1405 East 55th Street Apt. 4, Chicago, IL 60615 today",
            "1405 East 55th Street Apt. 4, Chicago, IL 60615",
        ),
        ("send it to P.O. Box 149", "P.O. Box 149"),
        ("PSC 3294, Box 9168\nAPO AA 61487", "PSC 3294, Box 9168\nAPO AA 61487"),
        ("I live at Hauptstrasse 12", "Hauptstrasse 12"),
        ("the office, jl.Sudirman 45", "jl.Sudirman 45"),
        ("Mieszkam przy ul. Długiej 5/7 m. 3, 00-238 Warszawa.", "ul. Długiej 5/7 m. 3, 00-238 Warszawa"),
        ("adres: ul. dluga 5, 00-238 Warszawa", "ul. dluga 5, 00-238 Warszawa"),
        (
            "Giao đến số 12/3 đường Lê Lợi, phường Bến Nghé, quận 1, TP.HCM nhé",
            "số 12/3 đường Lê Lợi, phường Bến Nghé, quận 1, TP.HCM",
        ),
        ("giao toi 12/3 Nguyen Trai, P.5, Q.1", "12/3 Nguyen Trai, P.5, Q.1"),
        ("我住在臺北市大安區和平東路二段106巷3弄5號4樓之1，謝謝", "臺北市大安區和平東路二段106巷3弄5號4樓之1"),
        ("现居住于黑龙江省哈尔滨市南岗区中山路123号，可", "黑龙江省哈尔滨市南岗区中山路123号"),
    ],
)
def test_an_address_is_masked_down_to_its_last_part(text, address):
    assert masked(text) == [(address, "ADDRESS")]


@pytest.mark.parametrize(
    "text",
    [
        "During 1984 we moved",
        "there are 3 ways to do it",
        "第3號作品",
        "nay là Eutelsat 33C",
        "5 Great Lakes",
        "see page 12 Street art",
    ],
)
def test_numbers_beside_words_are_no_address(text):
    assert [kind for _, kind in masked(text)] == []


def test_a_signature_under_an_address_is_not_taken_for_a_town():
    text = "Send it to 97 Lincoln Street\nThanks\nBob"
    assert masked(text) == [("97 Lincoln Street", "ADDRESS")]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Hi, my name is John Smith and I need help", "John Smith"),
        ("this is Maria Garcia speaking", "Maria Garcia"),
        ("ask Mr. Robert Brown", "Robert Brown"),
        ("tôi tên là Nguyễn Văn An ạ", "Nguyễn Văn An"),
        ("toi ten la Nguyen Van An", "Nguyen Van An"),
        ("gặp anh Trần Minh Tuấn nhé", "Trần Minh Tuấn"),
        ("nazywam się Łukasz Żak", "Łukasz Żak"),
        ("rozmawiałem z panią Anną Nowak wczoraj", "Anną Nowak"),
        ("我叫王小明，你好", "王小明"),
        ("陳美玲小姐", "陳美玲"),
    ],
)
def test_a_name_that_is_introduced_or_titled_is_masked(text, name):
    assert masked_with_names(text) == [(name, "NAME")]
    assert redact(text).text == text, "names are kept unless they are asked for"


@pytest.mark.parametrize(
    "text",
    ["my name is not important", "I'm Happy to help", "động cơ Diesel chạy tốt", "主任醫師很忙", "call me later"],
)
def test_other_words_in_a_names_place_stay(text):
    assert masked_with_names(text) == []
