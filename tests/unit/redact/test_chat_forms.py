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
