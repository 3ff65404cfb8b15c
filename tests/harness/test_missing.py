"""What a test run does about a server it cannot have."""

import pytest

from tests.servers import install as installing
from tests.servers.locate import KINDS, Found, Kind, Missing, locate
from tests.servers.missing import verdict_on_missing
from tests.servers.provide import end_for_missing, need, need_program

GHOST = Kind("ghost", "TEST_GHOST_URL", programs=("no-such-program",), wheel=("no_such_wheel", "bin/ghost"))


@pytest.fixture
def only_a_ghost(monkeypatch):
    monkeypatch.setattr(installing, "KINDS", {"ghost": GHOST})


@pytest.mark.parametrize("environment", [{}, {"CI": ""}, {"CI": "false"}])
def test_a_missing_server_skips_on_a_laptop(environment):
    assert verdict_on_missing(environment) == "skip"
    with pytest.raises(pytest.skip.Exception, match="ghost: missing, not here"):
        end_for_missing(Missing(GHOST, "not here"), environment)


def test_a_missing_server_fails_in_ci():
    assert verdict_on_missing({"CI": "true"}) == "fail"
    with pytest.raises(pytest.fail.Exception, match="ghost: missing, not here"):
        end_for_missing(Missing(GHOST, "not here"), {"CI": "true"})


@pytest.mark.parametrize("wanted", [need, need_program])
def test_a_run_without_servers_skips_what_needs_one_even_in_ci(wanted, monkeypatch):
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("TEST_SERVERS", "none")
    with pytest.raises(pytest.skip.Exception, match="TEST_SERVERS=none"):
        wanted(GHOST)


def test_a_missing_server_says_how_to_get_it():
    line = str(locate(GHOST, {}))
    assert line.startswith("ghost: missing, set TEST_GHOST_URL, or put no-such-program on the PATH")


@pytest.mark.usefixtures("only_a_ghost")
def test_install_goes_on_without_a_server_on_a_laptop(capsys):
    assert installing.install({}) == 0
    assert capsys.readouterr().out.startswith("ghost: missing")


@pytest.mark.usefixtures("only_a_ghost")
def test_install_ends_with_an_error_in_ci():
    assert installing.install({"CI": "true"}) == 1


@pytest.mark.usefixtures("only_a_ghost")
def test_install_takes_the_server_a_variable_names_and_does_not_print_its_password(capsys):
    assert installing.install({"CI": "true", "TEST_GHOST_URL": "ghost://me:secret@127.0.0.1/"}) == 0
    assert capsys.readouterr().out == "ghost: given by TEST_GHOST_URL\n"


def test_install_prints_one_line_per_server(capsys, monkeypatch):
    monkeypatch.setattr(installing, "_wanted_from_apt", lambda _: [])
    installing.install({})
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == list(KINDS)


def test_apt_is_asked_only_for_what_is_missing(monkeypatch):
    asked = Kind("asked", "TEST_ASKED", programs=("no-such-program",), apt_packages=("asked",))
    there = Kind("there", "TEST_THERE", programs=("sh",), apt_packages=("there",))
    monkeypatch.setattr(installing, "KINDS", {"asked": asked, "there": there, "ghost": GHOST})
    monkeypatch.setattr(installing, "_apt_may_be_used", lambda: True)
    assert installing._wanted_from_apt({}) == [asked]
    assert installing._wanted_from_apt({"TEST_ASKED": "given"}) == []
    monkeypatch.setattr(installing, "_apt_may_be_used", lambda: False)
    assert installing._wanted_from_apt({}) == []


def test_services_are_kept_from_starting_only_while_apt_works(tmp_path, monkeypatch):
    policy = tmp_path / "policy-rc.d"
    monkeypatch.setattr(installing, "POLICY", policy)
    with installing._services_do_not_start():
        assert policy.read_text() == "#!/bin/sh\nexit 101\n"
    assert not policy.exists()


def test_a_policy_the_machine_already_has_stays(tmp_path, monkeypatch):
    policy = tmp_path / "policy-rc.d"
    policy.write_text("theirs")
    monkeypatch.setattr(installing, "POLICY", policy)
    with installing._services_do_not_start():
        assert policy.read_text() == "theirs"
    assert policy.read_text() == "theirs"


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_variable_overrides_every_kind_of_server(kind):
    assert locate(kind, {kind.variable: "given"}) == Found(kind, "given", by_variable=True)
