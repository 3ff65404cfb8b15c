"""Key sets at an address: fetched seldom, forgotten when they are withdrawn, borne with while nobody answers."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tests.identity.test_tokens import token, verifier
from threadkeep.errors import InvalidSetting, KeySetUnavailable, Unauthenticated
from threadkeep.http.responses import problem_of
from threadkeep.identity.tokens import KeySetAddress, key_set_at

CURVE, RSA = ec.generate_private_key(ec.SECP256R1()), rsa.generate_private_key(65_537, 2_048)
CURVES_OWN: dict[str, Any] = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(CURVE.public_key())) | {"kid": "curve"}
RSAS_OWN: dict[str, Any] = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(RSA.public_key())) | {"kid": "rsa"}


class Publisher:
    """A real server that says what it is told to, and counts how often it was asked."""

    def __init__(self) -> None:
        self.says = b""
        self.status = 200
        self.elsewhere = ""
        self.asked = 0
        publisher = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                publisher.asked += 1
                self.send_response(publisher.status)
                if publisher.elsewhere:
                    self.send_header("Location", publisher.elsewhere)
                self.end_headers()
                self.wfile.write(publisher.says)

            def log_message(self, format: str, *args: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/jwks.json"

    def publish(self, *keys: dict[str, Any]) -> None:
        self.says = json.dumps({"keys": keys}).encode()


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    made = Publisher()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


class Time:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


async def test_a_key_that_is_withdrawn_stops_counting_also_for_whoever_used_it_before(publisher: Publisher) -> None:
    time = Time()
    keys = KeySetAddress(publisher.address, time)
    publisher.publish(CURVES_OWN, RSAS_OWN)
    assert (await keys.key("rsa")).key_id == "rsa"

    publisher.publish(CURVES_OWN)
    time.now += 301

    with pytest.raises(jwt.PyJWKClientError):
        await keys.key("rsa")
    assert (await keys.key("curve")).key_id == "curve"


async def test_a_new_key_is_found_but_ids_that_strangers_make_up_do_not_make_us_ask_each_time(
    publisher: Publisher,
) -> None:
    time = Time()
    keys = KeySetAddress(publisher.address, time)
    publisher.publish(CURVES_OWN)
    for number in range(20):
        with pytest.raises(jwt.PyJWKClientError):
            await keys.key(f"made up {number}")
    assert publisher.asked == 1

    publisher.publish(CURVES_OWN, RSAS_OWN)
    time.now += 31
    assert (await keys.key("rsa")).key_id == "rsa"
    assert publisher.asked == 2


@pytest.mark.parametrize(("status", "says"), [(500, b""), (200, b"<html>"), (200, b"[]"), (200, b'{"keys": []}')])
async def test_while_nothing_of_use_is_answered_the_keys_known_last_stand_for_a_while(
    publisher: Publisher, status: int, says: bytes
) -> None:
    time = Time()
    keys = KeySetAddress(publisher.address, time)
    publisher.publish(CURVES_OWN)
    await keys.key("curve")

    publisher.status, publisher.says = status, says
    time.now += 400
    for _ in range(5):
        assert (await keys.key("curve")).key_id == "curve"
    assert publisher.asked == 2  # not for each of them

    time.now += 600
    with pytest.raises(jwt.PyJWKClientConnectionError):
        await keys.key("curve")


async def test_an_address_that_sends_us_elsewhere_is_not_followed(publisher: Publisher) -> None:
    """It may send us where anybody can stand between."""
    keys = KeySetAddress(publisher.address, Time())
    publisher.publish(CURVES_OWN)
    publisher.status, publisher.elsewhere = 302, publisher.address + "?elsewhere"
    with pytest.raises(jwt.PyJWKClientConnectionError):
        await keys.key("curve")
    assert publisher.asked == 1


async def test_while_an_address_answers_with_a_page_nobody_can_tell_whether_a_token_holds(publisher: Publisher) -> None:
    publisher.says = b"<html>"
    with pytest.raises(KeySetUnavailable, match="could not be fetched"):
        await verifier(secret=None, key_set=publisher.address).principal(token(CURVE, "ES256", {"kid": "curve"}))


def test_a_token_that_nobody_can_check_now_is_answered_503_to_try_again_and_not_401() -> None:
    problem = problem_of(KeySetUnavailable("the key set could not be fetched"))

    assert (problem.status, problem.code, problem.retryable) == (503, "key_set_unavailable", True)
    assert "Retry-After" in problem.headers
    assert "WWW-Authenticate" not in problem.headers


@pytest.mark.parametrize("host", ["keys.example", "10.0.0.7", "localhost.example", "127.0.0.1@keys.example", "[::2]"])
def test_an_address_without_tls_is_refused_unless_it_is_this_machines_own(host: str) -> None:
    for scheme in ("http", "HTTP"):
        with pytest.raises(InvalidSetting, match="without TLS"):
            key_set_at(f"{scheme}://{host}/jwks.json")
    assert isinstance(key_set_at(f"http://{host}/jwks.json", over_http=True), KeySetAddress)


@pytest.mark.parametrize("place", ["https://keys.example", "http://127.0.0.1:9", "http://localhost", "http://[::1]:9"])
def test_addresses_with_tls_and_this_machines_own_are_taken(place: str) -> None:
    assert isinstance(key_set_at(f"{place}/jwks.json"), KeySetAddress)


async def test_a_key_serves_signatures_of_its_own_kind_alone(publisher: Publisher) -> None:
    publisher.publish(CURVES_OWN, RSAS_OWN | {"use": "sig"}, RSAS_OWN | {"kid": "secrets", "use": "enc"})
    checking = verifier(secret=None, key_set=publisher.address)

    assert (await checking.principal(token(RSA, "RS256", {"kid": "rsa"}))).user == "ann"
    for key, algorithm, kid in ((CURVE, "ES256", "rsa"), (RSA, "RS256", "curve"), (RSA, "RS256", "secrets")):
        with pytest.raises(Unauthenticated):
            await checking.principal(token(key, algorithm, {"kid": kid}))
