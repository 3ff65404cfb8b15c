"""What an operator can set about redaction, seen through an open memory."""

import re

import pytest

from threadkeep import ModelResponse, Scope, Settings, UserMessage, open_memory
from threadkeep.errors import InvalidEvent, InvalidSetting
from threadkeep.settings import load_settings

ME = Scope(tenant="shop", user="u1", conversation="c1")
KEY = "a key of sixteen characters"
PERSONAL = {
    "address": "ann@example.org",
    "phone": "+48 601 234 567",
    "token": "ghp_" + "x1" * 18,
    "password": "root:secret@localhost",
    "card": "card 4111-1111-1111-1111",
}
NUMBERED = re.compile(r"\[REDACTED:EMAIL#([0-9]{6})\]")


async def kept(url, settings, scope, *texts):
    async with open_memory(url, settings=settings) as memory:
        for text in texts:
            await memory.append(scope, [UserMessage(text)])
        history = await memory.history(scope, limit=100)
        return [message.content for message in history.messages]


def number(text):
    found = NUMBERED.fullmatch(text)
    assert found, text
    return found[1]


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/m.db"


async def test_with_a_key_a_value_has_one_number_in_every_append_and_process(url):
    numbering = Settings(redaction_key=KEY)
    await kept(url, numbering, ME, "ann@example.org", "bob@example.org")
    first, second, again = map(number, await kept(url, numbering, ME, "Ann@Example.org"))
    assert first == again != second


async def test_another_conversation_or_key_numbers_the_same_value_otherwise(url):
    other = Scope(tenant="shop", user="u1", conversation="c2")
    numbers = {
        number((await kept(url, Settings(redaction_key=KEY), ME, "ann@example.org"))[-1]),
        number((await kept(url, Settings(redaction_key=KEY), other, "ann@example.org"))[-1]),
        number((await kept(url, Settings(redaction_key=KEY[::-1]), ME, "ann@example.org"))[-1]),
    }
    assert len(numbers) == 3


async def test_a_retry_under_a_key_is_the_same_payload_though_it_is_numbered(url):
    async with open_memory(url, settings=Settings(redaction_key=KEY)) as memory:
        events = [UserMessage("ann@example.org"), ModelResponse("noted")]
        await memory.append(ME, events, key="k1")
        assert (await memory.append(ME, events, key="k1")).replayed


def test_a_key_too_short_to_resist_guessing_is_refused(monkeypatch):
    monkeypatch.setenv("THREADKEEP_REDACTION_KEY", "short")
    with pytest.raises(InvalidSetting, match="REDACTION_KEY"):
        load_settings()


async def test_a_tenant_knows_the_phone_numbers_of_its_own_countries(url):
    irish = "020 913 1234"
    settings = Settings(tenant_regions={"pub": ("IE",)}, redaction_regions=("VN",))
    pub = Scope(tenant="pub", user="u1", conversation="c1")
    assert await kept(url, settings, ME, "see 415 555 2671") == ["see 415 555 2671"]
    masked = await kept(url, settings, pub, f"it is {irish} ok")
    assert masked == ["it is [REDACTED:PHONE] ok"]


async def test_regions_are_read_from_the_environment(monkeypatch):
    monkeypatch.setenv("THREADKEEP_REDACTION_REGIONS", "VN,US")
    monkeypatch.setenv("THREADKEEP_TENANT_REGIONS", '{"pub": ["IE"]}')
    assert load_settings().redaction_regions == ("VN", "US")
    assert load_settings().tenant_regions == {"pub": ("IE",)}


async def test_the_language_of_the_talk_tells_whose_numbers_are_believed(url):
    """A bare citizen id is one only in a Vietnamese talk, in this process and in the next."""
    vietnamese = "Chào bạn, tôi muốn đặt một phòng cho hai người vào cuối tuần này"
    citizen = "079 203 001 234"
    assert (await kept(url, Settings(), ME, vietnamese, citizen))[-1] == "[REDACTED:NATIONAL_ID]"
    assert (await kept(url, Settings(), ME, citizen))[-1] == "[REDACTED:NATIONAL_ID]"


INTRODUCED = "My name is Ann Lee. Yesterday Barack Obama flew to Berlin."


async def test_names_are_kept_by_default(url):
    assert await kept(url, Settings(), ME, INTRODUCED) == [INTRODUCED]


async def test_introduced_names_are_masked_where_the_setting_asks_for_the_rules(url):
    masked = await kept(url, Settings(redaction_names="rules"), ME, INTRODUCED)
    assert masked == ["My name is [REDACTED:NAME]. Yesterday Barack Obama flew to Berlin."]


async def test_other_names_are_masked_where_the_setting_asks_for_the_model(url):
    pytest.importorskip("presidio_analyzer")
    masked = await kept(url, Settings(redaction_names="model"), ME, INTRODUCED)
    assert masked == ["My name is [REDACTED:NAME]. Yesterday [REDACTED:NAME] flew to [REDACTED:LOCATION]."]


@pytest.mark.parametrize("file", ['names = "rules"', 'types = ["EMAIL", "NAME"]'])
async def test_the_rules_file_can_ask_for_names_too(url, tmp_path, file):
    path = tmp_path / "rules.toml"
    path.write_text(file)
    masked = await kept(url, Settings(redaction_rules=str(path)), ME, INTRODUCED)
    assert masked == ["My name is [REDACTED:NAME]. Yesterday Barack Obama flew to Berlin."]


@pytest.mark.parametrize("value", ["true", "false", "1", "yes"])
def test_the_switch_of_earlier_versions_is_refused_with_the_values_to_choose_from(monkeypatch, value):
    monkeypatch.setenv("THREADKEEP_REDACTION_NAMES", value)
    with pytest.raises(InvalidSetting, match=r"THREADKEEP_REDACTION_NAMES.*'off', 'rules' or 'model'"):
        load_settings()


@pytest.mark.parametrize("id_", PERSONAL.values(), ids=PERSONAL.keys())
async def test_a_message_id_that_would_be_masked_is_refused(url, id_):
    async with open_memory(url) as memory:
        with pytest.raises(InvalidEvent, match=r"events\[1\]\.id: holds personal data"):
            await memory.append(ME, [UserMessage("hi"), UserMessage("you", id=id_)])
        assert not (await memory.history(ME)).messages


@pytest.mark.parametrize(
    "id_",
    [
        "4111111111111111",
        "de3a5db5-154e-4512-9209-3d26ac512b01",
        "run-387fc94e-8110-4178-8efe-1a1cfa138e6f-0",
        "user:0:0948296974d74986a4c8336802283ca7",
        "image-0-84632917",
        "m1",
    ],
)
async def test_ids_that_only_look_like_something_are_taken(url, id_):
    async with open_memory(url) as memory:
        assert (await memory.append(ME, [UserMessage("hi", id=id_)])).kept == (id_,)
