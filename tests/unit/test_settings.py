"""Settings: every default, the environment over TOML over defaults, and errors that never repeat a value."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from threadkeep.errors import InvalidSetting
from threadkeep.settings import Settings, load_settings, unknown_variables

DEFAULTS = {
    "DATABASE_URL": "sqlite:///./database/sqlite.db",
    "REDIS_URL": None,
    "SESSION_MAX_MESSAGES": 20,
    "SESSION_MAX_CHARS": None,
    "SESSION_TTL_MIN": 60,
    "MEMORY_REDIS_TTL_SECONDS": 172_800,
    "MEMORY_FLUSH_BATCH_SIZE": 100,
    "MEMORY_TABLE_MAP": {"conversations": "conversations", "memories": "memories"},
    "TOKENIZER_NAME": "cl100k_base",
    "CHROMA_PATH": "./database/chroma_db",
    "OLLAMA_HOST": "localhost",
    "OLLAMA_PORT": 11_434,
    "PERSONA_PATH": "./prompts/system_persona_vi.md",
    "PERSONA_MAX_CHARS": 4_000,
    "INTENT_CONFIDENCE_THRESHOLD": 0.5,
    "GEMINI_MODEL": "gemini-flash-latest",
    "GEMINI_MODEL_LANG": "gemini-flash-lite-latest",
}


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name in DEFAULTS or name.startswith("THREADKEEP_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def test_every_default_that_applications_rely_on() -> None:
    settings = load_settings()
    assert {name: getattr(settings, name.lower()) for name in DEFAULTS} == DEFAULTS


GIVEN = {
    "DATABASE_URL": ("sqlite:///./elsewhere.db", "sqlite:///./elsewhere.db"),
    "REDIS_URL": ("redis://:password@host:6379/0", "redis://:password@host:6379/0"),
    "SESSION_MAX_MESSAGES": ("40", 40),
    "SESSION_MAX_CHARS": ("9000", 9_000),
    "SESSION_TTL_MIN": ("15", 15),
    "MEMORY_REDIS_TTL_SECONDS": ("60", 60),
    "MEMORY_FLUSH_BATCH_SIZE": ("7", 7),
    "MEMORY_TABLE_MAP": (
        '{"conversations":"chats","memories":"notes"}',
        {"conversations": "chats", "memories": "notes"},
    ),
    "TOKENIZER_NAME": ("o200k_base", "o200k_base"),
    "CHROMA_PATH": ("/data/chroma", "/data/chroma"),
    "OLLAMA_HOST": ("gpu.internal", "gpu.internal"),
    "OLLAMA_PORT": ("8080", 8_080),
    "PERSONA_PATH": ("persona.md", "persona.md"),
    "PERSONA_MAX_CHARS": ("500", 500),
    "INTENT_CONFIDENCE_THRESHOLD": ("0.75", 0.75),
    "GEMINI_MODEL": ("gemini-2.5-pro", "gemini-2.5-pro"),
    "GEMINI_MODEL_LANG": ("gemini-2.5-flash-lite", "gemini-2.5-flash-lite"),
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_every_variable_that_applications_set_is_read_under_its_own_name(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    value, expected = GIVEN[name]
    monkeypatch.setenv(name, value)
    settings = load_settings()
    assert {other: getattr(settings, other.lower()) for other in DEFAULTS} == DEFAULTS | {name: expected}


def test_the_environment_wins_over_toml_which_wins_over_the_defaults(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "threadkeep.toml").write_text(
        'SESSION_MAX_MESSAGES = 7\nsession_max_chars = 900\ntokenizer_name = "gpt2"\nmax_message_bytes = 5_000\n'
        '[memory_table_map]\nmemories = "notes"\n'
    )
    monkeypatch.setenv("SESSION_MAX_MESSAGES", "9")
    monkeypatch.setenv("THREADKEEP_MAX_MESSAGE_BYTES", "6000")
    settings = load_settings()
    assert (settings.session_max_messages, settings.max_message_bytes) == (9, 6_000)
    assert (settings.session_max_chars, settings.tokenizer_name) == (900, "gpt2")
    assert settings.memory_table_map == {"memories": "notes"}
    assert settings.memory_flush_batch_size == 100


def test_a_config_file_elsewhere_is_named_by_a_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text("session_max_messages = 3\n")
    monkeypatch.setenv("THREADKEEP_CONFIG", str(tmp_path / "other.toml"))
    assert load_settings().session_max_messages == 3


@pytest.mark.parametrize("named", ["elsewhere.toml", ".", "~nobody-of-that-name/threadkeep.toml"])
def test_a_config_file_that_was_named_must_be_there(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setenv("THREADKEEP_CONFIG", named)
    with pytest.raises(InvalidSetting, match="cannot be read") as caught:
        load_settings()
    assert caught.value.field == "THREADKEEP_CONFIG"
    assert named in str(caught.value)


def test_a_config_file_that_is_there_and_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "threadkeep.toml").mkdir()  # as Docker makes it of a file that it was to mount and did not find
    with pytest.raises(InvalidSetting, match="cannot be read") as caught:
        load_settings()
    assert caught.value.field == "threadkeep.toml"


def test_a_config_file_that_an_editor_has_marked_as_utf_8_is_read(tmp_path: Path) -> None:
    (tmp_path / "threadkeep.toml").write_bytes(b"\xef\xbb\xbfsession_max_messages = 3\r\n")
    assert load_settings().session_max_messages == 3


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSION_MAX_MESSAGES", "")
    monkeypatch.setenv("THREADKEEP_CONFIG", "")
    assert load_settings().session_max_messages == 20


BAD_VALUES = [
    ("SESSION_MAX_MESSAGES", "hunter2"),
    ("SESSION_MAX_MESSAGES", "0"),
    ("SESSION_MAX_MESSAGES", "2.5"),
    ("SESSION_MAX_CHARS", "-4321"),
    ("SESSION_TTL_MIN", "0"),
    ("SESSION_TTL_MIN", "nan"),
    ("SESSION_TTL_MIN", "inf"),
    ("SESSION_TTL_MIN", "1e300"),
    ("MEMORY_FLUSH_BATCH_SIZE", "hunter2"),
    ("MEMORY_TABLE_MAP", "{hunter2"),
    ("MEMORY_TABLE_MAP", '["hunter2"]'),
    ("MEMORY_TABLE_MAP", '{"memories": ["hunter2"]}'),
    ("OLLAMA_PORT", "70000"),
    ("INTENT_CONFIDENCE_THRESHOLD", "1.5"),
    ("THREADKEEP_MAX_MESSAGE_BYTES", "hunter2"),
    ("THREADKEEP_REDACTION_STYLE", "hunter2"),
]


@pytest.mark.parametrize(("name", "value"), BAD_VALUES)
def test_a_bad_value_names_the_variable_and_not_the_value(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidSetting) as caught:
        load_settings()
    assert caught.value.field == name
    assert len(value) < 4 or value not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("text", ["hunter2", "a = hunter2", "a = 1\na = 2", "\x00"])
def test_a_file_that_is_no_toml_is_named_without_its_text(tmp_path: Path, text: str) -> None:
    (tmp_path / "threadkeep.toml").write_text(text)
    with pytest.raises(InvalidSetting) as caught:
        load_settings()
    assert caught.value.field == "threadkeep.toml"
    assert "hunter2" not in str(caught.value)


def test_a_bad_value_in_the_file_is_named_too(tmp_path: Path) -> None:
    (tmp_path / "threadkeep.toml").write_text('session_max_messages = "hunter2"\n')
    with pytest.raises(InvalidSetting, match="SESSION_MAX_MESSAGES") as caught:
        load_settings()
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("THREADKEEP_JWT_SECERT", "THREADKEEP_JWT_SECRET"),
        ("THREADKEEP_API_KEY", "THREADKEEP_API_KEY_SECRET"),
        ("THREADKEEP_APIKEY_SECRET", "THREADKEEP_API_KEY_SECRET"),
        ("THREADKEEP_REDACTION_RULE", "THREADKEEP_REDACTION_RULES"),
        ("THREADKEEP_RATELIMIT", "THREADKEEP_RATE_LIMIT"),
        ("THREADKEEP_TURN_RETENTION_DAY", "THREADKEEP_TURN_RETENTION_DAYS"),
        ("THREADKEEP_DATABASE_URL", "DATABASE_URL"),
        ("THREADKEEP_CONFIG_FILE", "THREADKEEP_CONFIG"),
        ("threadkeep_jwt_secret", "THREADKEEP_JWT_SECRET"),
        ("THREADKEP_JWT_SECRET", "THREADKEEP_JWT_SECRET"),
        ("THREAD_KEEP_JWT_SECRET", "THREADKEEP_JWT_SECRET"),
        ("THREADKEEPER_JWT_SECRET", "THREADKEEP_JWT_SECRET"),
    ],
)
def test_a_variable_that_is_nearly_a_setting_names_the_setting(
    monkeypatch: pytest.MonkeyPatch, name: str, known: str
) -> None:
    monkeypatch.setenv(name, "hunter2")
    with pytest.raises(InvalidSetting) as caught:
        load_settings()
    assert caught.value.field == name
    assert caught.value.fix == f"did you mean {known}?"
    assert "hunter2" not in str(caught.value)


OF_KUBERNETES = {
    "THREADKEEP_SERVICE_HOST": "10.96.0.7",
    "THREADKEEP_SERVICE_PORT": "8000",
    "THREADKEEP_SERVICE_PORT_HTTP": "8000",
    "THREADKEEP_PORT": "tcp://10.96.0.7:8000",
    "THREADKEEP_PORT_8000_TCP": "tcp://10.96.0.7:8000",
    "THREADKEEP_PORT_8000_TCP_PROTO": "tcp",
    "THREADKEEP_PORT_8000_TCP_PORT": "8000",
    "THREADKEEP_PORT_8000_TCP_ADDR": "10.96.0.7",
    "THREADKEEP_REDIS_SERVICE_HOST": "10.96.0.8",
    "THREADKEEP_REDIS_PORT": "tcp://10.96.0.8:6379",
    "THREADKEEP_REDIS_PORT_6379_TCP_ADDR": "10.96.0.8",
}


def test_what_kubernetes_sets_for_a_service_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name, value in OF_KUBERNETES.items():
        monkeypatch.setenv(name, value)
    assert load_settings().redis_url is None
    assert unknown_variables() == []
    assert caplog.records == []


def test_a_variable_like_no_setting_is_warned_of_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("THREADKEEP_XYZZY", "hunter2")
    monkeypatch.setenv("THREADKEEP_PORT", "8000")
    monkeypatch.setenv("THREADKEEP_TOKEN", "hunter2")
    monkeypatch.setenv("THREADKEEP_EMPTY_SLOT", "")
    load_settings()
    load_settings()
    told = [record.getMessage() for record in caplog.records]
    assert [line.split()[0] for line in told] == ["THREADKEEP_PORT", "THREADKEEP_XYZZY"]
    assert "hunter2" not in "".join(told)


@pytest.mark.parametrize(
    ("text", "field", "known"),
    [
        ('jwt_secert = "hunter2"', "jwt_secert", "jwt_secret"),
        ('jwt-secret = "hunter2"', "jwt-secret", "jwt_secret"),
        ('THREADKEEP_JWT_SECERT = "hunter2"', "THREADKEEP_JWT_SECERT", "THREADKEEP_JWT_SECRET"),
        ('[tenant_language]\nshop = "hunter2"', "tenant_language", "tenant_languages"),
        (
            '[tenant_languages.shop]\nlanguages = ["pl"]\ndefualt = "hunter2"',
            "THREADKEEP_TENANT_LANGUAGES.shop.defualt",
            "default",
        ),
        ('[wholly_unlike]\nx = "hunter2"', "wholly_unlike", None),
    ],
)
def test_an_unknown_key_or_section_of_the_file_is_an_error(
    tmp_path: Path, text: str, field: str, known: str | None
) -> None:
    (tmp_path / "threadkeep.toml").write_text(text)
    for read in (load_settings, Settings):
        with pytest.raises(InvalidSetting) as caught:
            read()
        assert caught.value.field == field
        assert known is None or caught.value.fix == f"did you mean {known}?"
        assert "hunter2" not in str(caught.value)
        if "." in field:
            break  # values are checked by the model, whose own error `load_settings` translates
