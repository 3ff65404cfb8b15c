"""What a server answers is read the same, however the network cuts it."""

from __future__ import annotations

from typing import Any

import pytest
from redis.exceptions import NoScriptError, ResponseError

from threadkeep.sessions.redis.resp import Answers, NoAnswer
from threadkeep.sessions.redis.wire import packed

SAID = b"*3\r\n$4\r\na\r\nb\r\n*2\r\n:-5\r\n$-1\r\n*0\r\n+OK\r\n$0\r\n\r\n*-1\r\n:7\r\n"
MEANT = [[b"a\r\nb", [-5, None], []], b"OK", b"", None, 7]


@pytest.mark.parametrize("size", [1, 2, 3, 7, len(SAID)])
def test_an_answer_is_the_same_in_pieces_of_any_size(size: int) -> None:
    answers, found = Answers(), list[Any]()
    for start in range(0, len(SAID), size):
        found += answers.feed(SAID[start : start + size])
    assert found == MEANT


def test_a_long_text_in_many_pieces_is_put_together_once() -> None:
    answers, text = Answers(), bytes(range(256)) * 4_096
    data = b"*2\r\n$%d\r\n%b\r\n:1\r\n" % (len(text), text)
    pieces = [data[start : start + 1_000] for start in range(0, len(data), 1_000)]
    assert [answer for piece in pieces for answer in answers.feed(piece)] == [[text, 1]]


def test_an_error_is_an_answer_of_its_kind() -> None:
    unknown, other = Answers().feed(b"-NOSCRIPT No matching script\r\n-OOM command not allowed\r\n")
    assert isinstance(unknown, NoScriptError)
    assert type(other) is ResponseError
    assert str(other).startswith("OOM")


def test_what_is_no_answer_of_a_redis_is_told() -> None:
    with pytest.raises(NoAnswer):
        Answers().feed(b"HTTP/1.1 400 Bad Request\r\n")


def test_a_command_is_written_with_the_length_of_its_bytes() -> None:
    assert packed(("SET", "ł", b"\r\n", 5)) == b"*4\r\n$3\r\nSET\r\n$2\r\n\xc5\x82\r\n$2\r\n\r\n\r\n$1\r\n5\r\n"
