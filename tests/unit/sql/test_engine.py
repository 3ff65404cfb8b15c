"""URLs become engines, or an error that names what is wrong and never a password."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from threadkeep.db.engine import behind_a_transaction_pooler, engine_for
from threadkeep.db.errors import server_address
from threadkeep.errors import InvalidSetting


def _arguments(url: str) -> dict[str, Any]:
    """What the driver would be called with."""
    engine = engine_for(url)
    _, arguments = engine.dialect.create_connect_args(engine.url)
    connect = engine.sync_engine.pool._creator.__closure__  # pyright: ignore
    for cell in connect or ():
        if isinstance(cell.cell_contents, dict):
            arguments |= cell.cell_contents
    return arguments


@pytest.mark.parametrize(
    ("url", "driver"),
    [
        ("postgresql://ann:pw@db/memory", "postgresql+asyncpg"),
        ("postgres://ann:pw@db/memory", "postgresql+asyncpg"),
        ("postgresql+asyncpg://ann:pw@db/memory", "postgresql+asyncpg"),
        ("mysql://ann:pw@db/memory", "mysql+asyncmy"),
        ("mariadb://ann:pw@db/memory", "mysql+asyncmy"),
        ("mysql+aiomysql://ann:pw@db/memory", "mysql+asyncmy"),
    ],
)
def test_a_scheme_names_its_driver(url: str, driver: str) -> None:
    assert engine_for(url).url.drivername == driver


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("oracle://ann:hunter2@db/memory", "postgresql://"),
        ("postgresql://ann:hunter2@db", "names no database"),
        ("mysql://ann:hunter2@db/", "names no database"),
        ("postgresql://ann:hunter2@db:port/memory", "is not a database URL"),
        ("postgresql://ann:hunter2@db/memory?channel_binding=require", "channel_binding"),
        ("postgresql://ann:hunter2@db/memory?sslmode=maybe", "sslmode"),
        ("postgresql://ann:hunter2@db/memory?sslrootcert=/no/such/file", "sslrootcert"),
        ("postgresql://ann:p@hunter2/is?it@db/memory", "percent-encode the password"),
        ("mysql://ann:hunter2@db/memory?local_infile=1", "local_infile"),
        ("mysql://ann:hunter2@db/memory?ssl=true", "for TLS use sslmode=require"),
        ("mysql://ann:hunter2@db/memory?sslmode=prefer", "sslmode=prefer"),
        ("mysql://ann:hunter2@db/memory?ssl_ca=/no/such/file", "ssl_ca"),
        ("mysql://ann:hunter2@db/memory?ssl_cert=/no/such/file", "ssl_cert"),
    ],
)
def test_a_url_that_cannot_work_is_told_plainly(url: str, told: str) -> None:
    with pytest.raises(InvalidSetting, match=told) as caught:
        engine_for(url)
    assert caught.value.field == "DATABASE_URL"
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "pooled"),
    [
        ("postgresql://ann:pw@db/memory", False),
        ("postgresql://ann:pw@db:5432/memory?pooler=session", False),
        ("postgresql://ann:pw@db/memory?pooler=transaction", True),
        ("postgresql://ann:pw@db/memory?pgbouncer=true", True),
        ("postgresql://postgres.ref:pw@aws-0-eu-central-1.pooler.supabase.com:6543/postgres", True),
        ("postgresql://postgres.ref:pw@aws-0-eu-central-1.pooler.supabase.com:5432/postgres", False),
    ],
)
def test_a_transaction_pooler_is_known_by_option_or_port(url: str, pooled: bool) -> None:
    assert behind_a_transaction_pooler(url) is pooled
    assert (_arguments(url).get("statement_cache_size") == 0) is pooled


def test_options_of_ours_do_not_reach_the_driver() -> None:
    url = engine_for("postgresql://ann:pw@db/memory?pooler=transaction&sslmode=require&application_name=shop").url
    assert dict(url.query) == {}


def test_tls_is_asked_for_as_libpq_writes_it() -> None:
    assert _arguments("postgresql://ann:pw@db/memory?sslmode=require")["ssl"] == "require"
    assert _arguments("mysql://ann:pw@db/memory?sslmode=require")["ssl"].verify_mode is ssl.CERT_NONE


@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
@pytest.mark.parametrize(("mode", "by_name"), [("verify-ca", False), ("verify-full", True)])
def test_a_server_is_held_against_the_machines_certificates_where_none_is_named(
    scheme: str, mode: str, by_name: bool
) -> None:
    context = _arguments(f"{scheme}://ann:pw@db/memory?sslmode={mode}")["ssl"]
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname is by_name


@pytest.mark.parametrize("places", [("PGSSLROOTCERT", "ca.pem"), ("HOME", ".postgresql/root.crt")])
def test_certificates_that_libpq_is_told_of_elsewhere_are_left_to_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, places: tuple[str, str]
) -> None:
    """It reads them, and those that show who we are, as libpq does."""
    variable, name = places
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.touch()
    monkeypatch.setenv(variable, str(tmp_path if variable == "HOME" else file))
    assert _arguments("postgresql://ann:pw@db/memory?sslmode=verify-full")["ssl"] == "verify-full"


@pytest.mark.parametrize("no", ["false", "False", "0", "no", "off"])
def test_a_certificate_of_any_name_does_where_names_are_not_to_be_checked(no: str) -> None:
    context = _arguments(f"mysql://ann:pw@db/memory?ssl_capath=/&ssl_check_hostname={no}")["ssl"]
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, False)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:p?w@db/memory",
        "postgresql://ann:p?w@db/memory?application_name=desk@corp",
        "postgresql://ann@corp:p?w@db/memory",
        "mysql://ann:p?w@db/memory?unix_socket=/run/ann@corp/mysql.sock",
    ],
)
def test_a_sign_that_need_not_be_escaped_where_it_stands_is_taken(url: str) -> None:
    assert engine_for(url).url.host == "db"


def test_mysql_is_always_strict_and_its_quoting_safe() -> None:
    command = _arguments("mysql://ann:pw@db/memory")["init_command"]
    assert "STRICT_TRANS_TABLES" in command
    assert "NO_BACKSLASH_ESCAPES" not in command


def test_statements_never_show_their_values_in_errors() -> None:
    assert engine_for("postgresql://ann:pw@db/memory").sync_engine.hide_parameters


def test_a_place_is_named_without_user_password_or_options() -> None:
    url = engine_for("postgresql://ann:hunter2@db:5433/memory?application_name=shop").url
    assert server_address(url) == "postgresql://db:5433/memory"
