"""The console as a browser without scripts would see it, and as another site would abuse it."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import jwt
import pytest

from tests.console.conftest import Page, served
from threadkeep.settings import Settings

SECRET = "a-secret-that-is-long-enough-for-any-signature"
BY_SCRIPT = {"HX-Request": "true"}


@pytest.fixture
async def browser(page: Page) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=page.address, follow_redirects=True, trust_env=False) as client:
        yield client


async def begun(browser: httpx.AsyncClient) -> str:
    """The path of a new conversation."""
    return (await browser.post("/console/conversations")).url.path


async def test_a_new_conversation_shows_its_greeting_and_stands_in_the_list(browser: httpx.AsyncClient) -> None:
    path = await begun(browser)

    talk = (await browser.get(path)).text
    everything = (await browser.get("/console/")).text

    assert "Dzień dobry! W czym mogę pomóc?" in talk
    assert path in everything


async def test_half_an_emoji_does_not_keep_a_conversation_from_being_shown(browser: httpx.AsyncClient) -> None:
    path = await begun(browser)
    scope = {"user": "default", "conversation": path.rpartition("/")[2]}
    event = {"kind": "UserMessage", "text": "My kayak is green \ud83d"}
    body = json.dumps({"scope": scope, "events": [event]})
    kept = await browser.post("/v1/memory/append", content=body, headers={"Content-Type": "application/json"})
    page = await browser.get(path)

    assert kept.is_success
    assert page.status_code == 200
    assert "My kayak is green ?" in page.text


async def test_the_address_that_the_readme_names_leads_there(browser: httpx.AsyncClient) -> None:
    answer = await browser.get("/console", follow_redirects=True)
    assert (answer.status_code, answer.url.path) == (200, "/console/")


async def test_what_was_masked_is_counted_and_nowhere_shown(browser: httpx.AsyncClient) -> None:
    path = await begun(browser)

    form = {"content": "write to ann@example.org, please"}
    receipt = (await browser.post(f"{path}/messages", data=form, headers=BY_SCRIPT)).text
    talk = (await browser.get(path)).text

    assert "redacted: EMAIL × 1" in receipt
    assert "<mark>[REDACTED:EMAIL]</mark>" in talk
    assert "EMAIL × 1" in talk
    assert "ann@example.org" not in receipt + talk


async def test_what_nobody_answered_is_marked_so(browser: httpx.AsyncClient) -> None:
    path = await begun(browser)
    api = path.removeprefix("/console")
    for content in ("be away now", "and come back"):
        await browser.post(f"{api}/messages", params={"wait": True}, json={"content": content})

    talk = (await browser.get(path)).text

    marked = [part.split("<article")[-1] for part in talk.split("not answered")[:-1]]
    assert len(marked) == 1
    assert "be away now" in marked[0]


async def test_markup_in_a_message_stays_text(browser: httpx.AsyncClient) -> None:
    path = await begun(browser)

    await browser.post(f"{path}/messages", data={"content": "<script>alert(1)</script>"})

    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in (await browser.get(path)).text


async def test_erasing_shows_the_receipt_and_leaves_nothing(browser: httpx.AsyncClient) -> None:
    path = await begun(browser)
    await browser.post(f"{path}/messages", data={"content": "forget the marmalade"})

    receipt = await browser.post(f"{path}/erase")

    assert receipt.status_code == 200
    assert "archive" in receipt.text
    assert "marmalade" not in (await browser.get(path)).text


async def test_what_the_service_refuses_is_told_on_the_page(browser: httpx.AsyncClient) -> None:
    path = await begun(browser)

    missing = await browser.get("/console/conversations/never-begun")
    blank = await browser.post(f"{path}/messages", data={"content": "  "}, headers=BY_SCRIPT)

    assert missing.status_code == 404
    assert "there is no such user or conversation" in missing.text
    assert 'class="problem"' in blank.text


async def test_a_form_beyond_every_measure_is_refused(browser: httpx.AsyncClient) -> None:
    path = await begun(browser)

    answer = await browser.post(f"{path}/messages", content=b"content=" + b"a" * 5_000_000)

    assert answer.status_code == 413


@pytest.mark.parametrize(
    "headers",
    [{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "https://elsewhere.example"}],
    ids=["cross-site", "same-site", "another origin"],
)
async def test_forms_of_other_sites_do_nothing(browser: httpx.AsyncClient, headers: dict[str, str]) -> None:
    path = await begun(browser)

    answer = await browser.post(f"{path}/erase", headers=headers)

    assert answer.status_code == 403
    assert "Dzień dobry" in (await browser.get(path)).text


@pytest.mark.parametrize("path", ["/console/", "/console/sign-in", "/console/static/console.css"])
async def test_every_answer_forbids_foreign_scripts_frames_and_caches(browser: httpx.AsyncClient, path: str) -> None:
    answer = await browser.get(path)

    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "<script>" not in answer.text  # nothing inline, so the policy can forbid it


async def test_where_callers_are_told_apart_one_signs_in(tmp_path: Path) -> None:
    settings = Settings(DATABASE_URL=f"sqlite:///{tmp_path}/memory.db", THREADKEEP_JWT_SECRET=SECRET, embedder="none")
    async with served(settings) as page, httpx.AsyncClient(base_url=page.address, trust_env=False) as browser:
        turned_away = await browser.get("/console/")
        wrong = await browser.post("/console/sign-in", data={"credential": "tk_not_a_key"})

        assert turned_away.headers["location"] == "/console/sign-in"
        assert wrong.status_code == 401
        assert "set-cookie" not in wrong.headers


async def test_who_is_signed_in_no_more_is_told_so_beside_what_was_typed(tmp_path: Path) -> None:
    """Led to another page, or shown it in place of a receipt, one would lose the message."""
    settings = Settings(DATABASE_URL=f"sqlite:///{tmp_path}/memory.db", THREADKEEP_JWT_SECRET=SECRET, embedder="none")
    async with served(settings) as page, httpx.AsyncClient(base_url=page.address, trust_env=False) as browser:
        answer = await browser.post("/console/conversations/c1/messages", data={"content": "hi"}, headers=BY_SCRIPT)

    assert answer.status_code == 200
    assert 'class="problem"' in answer.text
    assert 'href="/console/sign-in"' in answer.text


async def test_a_stream_that_the_api_refuses_is_refused_before_it_begins(
    browser: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    """Begun and cut off, it would have browsers come back every second, and the log fill with failures."""
    answer = await browser.get("/console/conversations/no-such-talk/events")

    assert answer.status_code == 404
    assert not [record for record in caplog.records if '"failure"' in record.getMessage()]


@pytest.mark.parametrize("credential", ["zażółć", "two\r\nlines", "x\0y"])
async def test_a_credential_that_no_header_can_carry_is_none(browser: httpx.AsyncClient, credential: str) -> None:
    answer = await browser.post("/console/sign-in", data={"credential": credential})

    assert answer.status_code == 401
    assert "Sign in" in answer.text


async def test_a_talk_whose_id_holds_a_slash_opens_from_the_list(browser: httpx.AsyncClient) -> None:
    await browser.post("/conversations", json={"conversation_id": "team/2026 & co"})
    everything = (await browser.get("/console/")).text
    link = "/console/conversations/team%2F2026%20%26%20co"

    assert link in everything
    assert "Dzień dobry" in (await browser.get(link)).text


def addresses_in(page: str) -> list[str]:
    return re.findall(r'(?:href|src|action|hx-post|sse-connect)="([^"]*)"', page)


async def test_in_an_application_that_mounts_the_service_every_address_stays_below_it(tmp_path: Path) -> None:
    settings = Settings(DATABASE_URL=f"sqlite:///{tmp_path}/memory.db", embedder="none")
    async with (
        served(settings, mounted_at="/memory") as page,
        httpx.AsyncClient(base_url=page.address, follow_redirects=True, trust_env=False) as browser,
    ):
        first = await browser.get("/memory/console")
        talk = await browser.post("/memory/console/conversations")
        form = {"content": "write to ann@example.org"}
        said = await browser.post(f"{talk.url.path}/messages", data=form, headers=BY_SCRIPT)
        listed = await browser.get("/memory/console/")
        erased = await browser.post(f"{talk.url.path}/erase")
        found = [address for one in (first, talk, listed, erased) for address in addresses_in(one.text)]
        statuses = {(await browser.get(address)).status_code for address in found if "/static/" in address}

    assert first.url.path == "/memory/console/"
    assert "Dzień dobry!" in talk.text
    assert "redacted: EMAIL × 1" in said.text
    assert talk.url.path in listed.text
    assert len(found) > 20
    assert all(address.startswith("/memory/console/") for address in found)
    assert statuses == {200}


async def test_in_a_mounted_service_one_signs_in_and_out_below_it(tmp_path: Path) -> None:
    token = jwt.encode({"sub": "ann", "exp": 9_999_999_999}, SECRET, "HS256")
    settings = Settings(DATABASE_URL=f"sqlite:///{tmp_path}/memory.db", embedder="none", jwt_secret=SECRET)
    async with (
        served(settings, mounted_at="/memory") as page,
        httpx.AsyncClient(base_url=page.address, follow_redirects=True, trust_env=False) as browser,
    ):
        sent_away = await browser.get("/memory/console/")
        inside = await browser.post("/memory/console/sign-in", data={"credential": token})
        (cookie,) = browser.cookies.jar
        await browser.post("/memory/console/sign-out")

        assert (sent_away.url.path, inside.url.path) == ("/memory/console/sign-in", "/memory/console/")
        assert cookie.path == "/memory/console"
        assert not [*browser.cookies.jar]


async def test_what_a_proxy_takes_off_stands_before_every_address_again(tmp_path: Path) -> None:
    settings = Settings(DATABASE_URL=f"sqlite:///{tmp_path}/memory.db", embedder="none")
    async with (
        served(settings, proxy_adds="/tk") as page,
        httpx.AsyncClient(base_url=page.address, trust_env=False) as browser,
    ):
        listed = await browser.get("/console/")
        begun = await browser.post("/console/conversations")

    assert listed.status_code == 200
    assert all(address.startswith("/tk/console/") for address in addresses_in(listed.text))
    assert begun.headers["location"].startswith("/tk/console/conversations/")
