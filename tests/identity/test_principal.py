"""Whose memory a credential reaches."""

import pytest

from threadkeep import Scope
from threadkeep.errors import Forbidden, InvalidScope, NotFound
from threadkeep.identity.principal import ALL_PERMISSIONS, LOCAL, OF_A_USER, Principal, allowed_to

ANN = Principal("shop", "ann")
SERVICE = Principal("shop", None)
ADMIN = Principal("shop", "boss", "ADMIN", ALL_PERMISSIONS)
ROOT = Principal("shop", "root", "SUPER_ADMIN", ALL_PERMISSIONS)

OWN, NEIGHBOUR, ELSEWHERE = ("shop", "ann"), ("shop", "bob"), ("hotel", "ann")


@pytest.mark.parametrize(
    ("who", "reached"),
    [
        (ANN, {OWN}),
        (SERVICE, {OWN, NEIGHBOUR}),
        (ADMIN, {OWN, NEIGHBOUR}),
        (ROOT, {OWN, NEIGHBOUR, ELSEWHERE}),
        (LOCAL, {OWN, NEIGHBOUR, ELSEWHERE}),
    ],
    ids=["user", "service", "admin", "super admin", "local"],
)
def test_each_role_reaches_its_own_part_and_no_more(who: Principal, reached: set[tuple[str, str]]) -> None:
    assert {place for place in (OWN, NEIGHBOUR, ELSEWHERE) if who.may_reach(*place)} == reached


@pytest.mark.parametrize("place", [NEIGHBOUR, ELSEWHERE, ("shop", "Ann"), ("Shop", "ann")])
def test_what_is_not_ones_own_is_not_found_rather_than_forbidden(place: tuple[str, str]) -> None:
    with pytest.raises(NotFound):
        ANN.reach(Scope(*place, "c1"))


def test_a_request_that_names_no_place_belongs_to_the_caller() -> None:
    assert ANN.acting(None, None, "c1") == Scope("shop", "ann", "c1")
    assert SERVICE.acting(None, "bob", "c1") == Scope("shop", "bob", "c1")
    assert SERVICE.acting(None, None) == Scope("shop", "default")
    with pytest.raises(NotFound):
        SERVICE.acting("hotel", "bob")


def test_a_place_that_cannot_be_one_is_refused_as_such() -> None:
    with pytest.raises(InvalidScope):
        ANN.acting(None, "")


def test_a_credential_allows_what_was_asked_for_and_never_more_than_its_role() -> None:
    assert allowed_to("USER", "ann", None) == OF_A_USER
    assert allowed_to("USER", "ann", frozenset({"read", "admin"})) == {"read"}
    assert allowed_to("ADMIN", "boss", None) == ALL_PERMISSIONS


def test_a_users_own_key_writes_as_the_assistant_only_if_it_was_made_for_that() -> None:
    assert "write_as" not in allowed_to("USER", "ann", None)
    assert "write_as" in allowed_to("USER", "ann", frozenset({"write", "write_as"}))
    assert "write_as" in allowed_to("USER", None, None)


def test_a_credential_without_a_permission_is_refused() -> None:
    with pytest.raises(Forbidden):
        Principal("shop", "ann", permissions=frozenset({"read"})).need("write")


def test_only_a_super_admin_may_ask_for_the_whole_store() -> None:
    ROOT.need_whole_store()
    with pytest.raises(Forbidden):
        ADMIN.need_whole_store()


def test_a_token_is_not_shown_when_a_principal_is_printed() -> None:
    assert "secret-token" not in repr(ANN.with_token("secret-token"))
