"""What people type in a hurry: addresses in any script, slips of the keys, codes in groups, dates in words."""

import pytest

from threadkeep.policy.redact import redact

ADDRESSES = {
    "an@例子.tw": "",
    "an@例子.com": "",
    "用户@例子.中国": "",
    "王@example.com": "",
    "王小明@例子.台灣": "",
    "홍길동@예시.한국": "",
    "山田@例え.jp": "",
    "my email is 用户@例子.中国": "my email is ",
    "我的信箱是用户@例子.中国": "我的信箱是",
    "请寄到王小明@example.com": "请寄到",
    "邮箱：王小明@example.com": "邮箱：",
    "请联系王小明@例子.中国": "请联系",
    "我的信箱是an@example.com": "我的信箱是",
    "我的信箱是an@例子.tw": "我的信箱是",
    "annsmith77@gmail,com": "",
    "my mail: ann@firma,pl": "my mail: ",
    "nguyenan88 @ gmail chấm com": "",
    "ann@gmail dot com": "",
    "anna.k @ wp kropka pl": "",
}


@pytest.mark.parametrize(("text", "kept"), ADDRESSES.items())
def test_an_address_is_masked_in_any_script_and_with_a_slip(text: str, kept: str) -> None:
    assert redact(text).text == f"{kept}[REDACTED:EMAIL]"


@pytest.mark.parametrize(
    "text",
    [
        "我們公司的信箱都是@example.com",
        "谢谢@小明，周末见",
        "meet @ 5, then home",
        "see you @ noon. dot your i",
        "ping @anna,please",
        "the dot of git_a@gitlab: clone it",
    ],
)
def test_an_at_sign_alone_is_no_address(text: str) -> None:
    assert redact(text).text == text


SECRETS = {
    "pass: letmein": "letmein",
    "wifi pass: letmein": "letmein",
    "my passwrod is hunter2": "hunter2",
    "pasword: hunter2": "hunter2",
    "password\nhunter2": "hunter2",
    "the wifi password\n  hunter2\nthanks": "hunter2",
    "recovery code ABCD-EFGH-1234": "ABCD-EFGH-1234",
    "my bank card pin: 4 8 2 1": "4 8 2 1",
    "my pin is 4 8 2 1": "4 8 2 1",
    "one time code is 48-29-13": "48-29-13",
    "mật khẩu wifi: cafesang": "cafesang",
    "hasło do wifi: kotek": "kotek",
    "kod do domofonu 12#34": "12#34",
    "dostałem kod 482913": "482913",
    "I just got a code 482913": "482913",
    "mình vừa nhận được mã 482913": "482913",
}


@pytest.mark.parametrize(("text", "value"), SECRETS.items())
def test_a_secret_with_its_word_beside_it_is_masked(text: str, value: str) -> None:
    assert redact(text).text == text.replace(value, "[REDACTED:SECRET]")


@pytest.mark.parametrize(
    "text",
    [
        "second pass: cleanup",
        "the pass: absolutely worth it",
        "pass: required",
        "PASS: login",
        "pass: fail",
        "pass: tests",
        "Forgot password\nStep2: open the mail",
        "reset the password\nthen call me",
        "recovery code of conduct",
        "mật khẩu wifi: không có",
        "wifi password for guests: none",
        "dostałem kod 404",
        "I got the code 404 from the server",
        "I got a code review",
        "pin 4 and 5 are free",
    ],
)
def test_the_word_alone_is_no_secret(text: str) -> None:
    assert redact(text).text == text


def test_a_phone_number_with_dots_in_the_middle_is_masked() -> None:
    assert redact("phone: 212·555·0123").text == "phone: [REDACTED:PHONE]"


BIRTHS = {
    "I was born on the twelfth of April 1988": "I was born on ",
    "I was born on the twenty-first of September, 1988": "I was born on ",
    "I was born on April twelfth, 1988": "I was born on ",
    "urodziłem się dwunastego kwietnia 1988": "urodziłem się ",
    "urodziłam się dnia dwudziestego pierwszego października 1988": "urodziłam się dnia ",
    "tôi sinh ngày mười hai tháng tư năm 1988": "tôi sinh ",
    "em sinh ngày hai mươi mốt tháng mười một năm 1990": "em sinh ",
}


@pytest.mark.parametrize(("text", "kept"), BIRTHS.items())
def test_a_day_of_birth_in_words_is_masked(text: str, kept: str) -> None:
    assert redact(text).text == f"{kept}[REDACTED:DATE_OF_BIRTH]"


@pytest.mark.parametrize(
    "text", ["He was born on the twelfth of April 1888", "The twelfth of April 1988 was a Tuesday"]
)
def test_a_day_in_words_alone_is_nobodys(text: str) -> None:
    assert redact(text).text == text


@pytest.mark.parametrize("text", ["room 1204, floor 12", "Room 5, level 2 please", "3rd floor, room 12"])
def test_a_room_and_its_floor_are_no_address(text: str) -> None:
    assert redact(text).text == text


@pytest.mark.parametrize("text", ["tower 2, flat 12a", "block 3, floor 12"])
def test_two_parts_of_a_building_are_an_address(text: str) -> None:
    assert redact(text).text == "[REDACTED:ADDRESS]"
