"""Tokens: what holds, and everything that must not."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from threadkeep.errors import InvalidSetting, Unauthenticated
from threadkeep.identity.principal import ALL_PERMISSIONS, OF_A_USER
from threadkeep.identity.tokens import TokenRules, TokenVerifier

SECRET = "a shared secret of enough characters"


def token(
    secret: Any = SECRET, algorithm: str = "HS256", headers: Any = None, seconds: float = 600, **claims: Any
) -> str:
    ends = datetime.now(UTC) + timedelta(seconds=seconds)
    body = {"sub": "ann", "tenant": "shop", "exp": ends} | claims
    return jwt.encode({name: value for name, value in body.items() if value is not None}, secret, algorithm, headers)


def verifier(**rules: Any) -> TokenVerifier:
    return TokenVerifier(TokenRules(**({"secret": SECRET} | rules)))


async def test_a_token_names_tenant_user_and_role_and_goes_on_to_the_tools() -> None:
    given = token(role="ADMIN")

    who = await verifier().principal(given)

    assert (who.tenant, who.user, who.role, who.permissions) == ("shop", "ann", "ADMIN", ALL_PERMISSIONS)
    assert who.token == given


async def test_without_tenant_and_role_it_is_a_user_of_the_default_tenant() -> None:
    who = await verifier().principal(token(tenant=None))

    assert (who.tenant, who.role, who.permissions) == ("default", "USER", OF_A_USER)


async def test_the_scope_claim_narrows_and_words_of_others_are_passed_over() -> None:
    assert (await verifier().principal(token(scope="read openid"))).permissions == {"read"}
    assert (await verifier().principal(token(roles=["USER", "SUPER_ADMIN"]))).role == "SUPER_ADMIN"


@pytest.mark.parametrize(
    "given",
    [
        "not a token",
        "a.b.c",
        token("another secret of enough characters"),
        token(seconds=-61),
        token(exp=None),
        token(sub=None),
        token(sub=""),
        token(sub="x\n"),
        token(tenant=7),
        token(role="KING"),
        token(role=7),
        token(scope=["read"]),
        token(aud="others"),
        token(nbf=datetime.now(UTC) + timedelta(days=1)),
        jwt.encode({"sub": "ann", "exp": 9_999_999_999}, None, "none"),
    ],
)
async def test_a_token_that_does_not_hold_is_refused_without_a_word_of_what_it_says(given: str) -> None:
    with pytest.raises(Unauthenticated) as refused:
        await verifier().principal(given)
    assert "KING" not in str(refused.value)


async def test_a_little_skew_between_clocks_is_forgiven() -> None:
    assert (await verifier().principal(token(seconds=-50))).user == "ann"
    with pytest.raises(Unauthenticated):
        await verifier(skew_seconds=0).principal(token(seconds=-50))


async def test_audience_and_issuer_must_be_the_ones_that_are_set() -> None:
    strict = verifier(audience="threadkeep", issuer="https://id.example")

    assert (await strict.principal(token(aud="threadkeep", iss="https://id.example"))).user == "ann"
    for claims in ({"aud": "threadkeep"}, {"iss": "https://id.example"}, {"aud": "x", "iss": "https://id.example"}):
        with pytest.raises(Unauthenticated):
            await strict.principal(token(**claims))


def published(path: Path, **keys: ec.EllipticCurvePrivateKey) -> None:
    listed = [
        json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key.public_key())) | {"kid": name, "alg": "ES256", "use": "sig"}
        for name, key in keys.items()
    ]
    path.write_text(json.dumps({"keys": listed}))


async def test_a_published_key_set_is_read_from_its_file_and_again_when_keys_rotate(tmp_path: Path) -> None:
    first, second = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    path = tmp_path / "jwks.json"
    published(path, one=first)
    checking = verifier(secret=None, key_set=str(path))

    assert (await checking.principal(token(first, "ES256", {"kid": "one"}))).user == "ann"
    with pytest.raises(Unauthenticated):
        await checking.principal(token(second, "ES256", {"kid": "two"}))

    published(path, two=second)
    os.utime(path, (1, 1))
    assert (await checking.principal(token(second, "ES256", {"kid": "two"}))).user == "ann"
    with pytest.raises(Unauthenticated):
        await checking.principal(token(first, "ES256", {"kid": "one"}))


async def test_a_public_key_does_not_pass_as_a_shared_secret(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    path = tmp_path / "jwks.json"
    published(path, one=key)

    public: str = json.loads(path.read_text())["keys"][0]["x"]

    with pytest.raises(Unauthenticated):
        await verifier(secret=None, key_set=str(path)).principal(token(public, "HS256", {"kid": "one"}))


@pytest.mark.parametrize("content", [None, "", "{}", "[]", '{"keys": []}'])
def test_a_key_set_that_cannot_be_read_is_told_at_the_start(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "jwks.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InvalidSetting):
        verifier(key_set=str(path))
