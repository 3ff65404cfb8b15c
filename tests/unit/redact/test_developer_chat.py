"""What developers write all day and nobody need hide."""

import pytest

from tests.unit.redact.test_first_families import masked
from threadkeep.policy.redact import redact
from threadkeep.policy.redact.custom import why_slow


@pytest.mark.parametrize(
    "text",
    [
        "The token limit is 128000",
        "password = getpass.getpass()",
        'password = input("Password: ")',
        'api_key=os.environ["X"]',
        "api_key: Optional[str] = None",
        "password=settings.db_password,",
        "token = request.headers.get('X')",
        '"session_id": "string"',
        "see line 12345678 of the log",
        "git clone git@github.com:org/repo",
        "ssh://git@github.com/org/repo",
        "listen on 127.0.0.1 and 0.0.0.0",
        "allow 0.0.0.0/0 and ::1 and 0:0:0:0:0:0:0:1",
        "https://github.com/o/r/issues?state=open",
        "https://x.io/s?code=python&user=me",
        "API_KEY = settings.API_KEY",
        "docker run -u 1000:1000 x",
        "psql -p5432 shop",
        "mkdir -pv a/b",
        "use --password to log in, the --password option is old",
        "mysql asks when -p stands alone",
    ],
)
def test_talk_among_developers_stays(text):
    assert masked(text) == []


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("password=hunter.2", "hunter.2"),
        ('password = "getpass.getpass()1"', "getpass.getpass()1"),
        ("my token is 128000ab", "128000ab"),
        ("https://x.io/cb?code=4f9aQ2z&user=bob", "4f9aQ2z"),
        ("https://x.io/cb?state=abcdefghijklmnopqrst", "abcdefghijklmnopqrst"),
        ("https://bob@github.com/org/repo", "bob"),
        ("git@mail.example.com", "git@mail.example.com"),
        ("LINE 12345678", "12345678"),
        ("hotline 12345678", "12345678"),
        ("from 127.1.2.3.example 128.0.0.1", "128.0.0.1"),
    ],
)
def test_what_only_resembles_it_is_still_masked(text, secret):
    assert secret in [value for value, _ in masked(text)]


@pytest.mark.parametrize(
    "pattern",
    [
        "(a|a){1,60}b",
        "(?:a|aa|aaa)" * 12 + "b",
        "(a{0,9}){30}b",
        "((a|a)(a|a)){8}b",
        "(?:[ab]|a){20}c",
        "(?:a?b|b){20}c",
    ],
)
def test_branches_that_match_the_same_text_are_counted(pattern):
    assert why_slow(pattern)


@pytest.mark.parametrize("pattern", ["(?:ab|cd){1,60}", "(?:TCK|INC|REQ)-[0-9]{6}", r"(?:\+|-){1,3}[0-9]{4}", "a|b|ab"])
def test_branches_that_cannot_or_hardly_matter_are_allowed(pattern):
    assert why_slow(pattern) is None


def test_a_port_before_a_query_is_no_password():
    assert redact("https://h.io:80?to=a@b.com,c@d.com").text == ("https://h.io:80?to=[REDACTED:EMAIL],[REDACTED:EMAIL]")


def test_masking_twice_changes_nothing():
    for text in ("order_4111111111111111", "postgres://me:p@ss@host/db", "curl -u a:b x", "an%40example.com"):
        once = redact(text).text
        assert redact(once).text == once
