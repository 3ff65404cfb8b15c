"""The console in a real browser."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Page as Tab
from playwright.async_api import Route, expect

from tests.console.conftest import Page
from tests.servers.chromium import Chromium


@pytest.fixture
def complaints() -> list[str]:
    """Of the browser. A test that brings them about says so, and takes them away."""
    return []


@pytest.fixture
async def tab(chromium: Chromium, page: Page, complaints: list[str]) -> AsyncIterator[Tab]:
    """At the list of conversations. Whatever the browser complains of, a forbidden script say, fails the test."""
    async with chromium.browser() as browser:
        context = await browser.new_context(viewport={"width": 900, "height": 700})
        tab = await context.new_page()
        tab.on("console", lambda told: complaints.append(told.text) if told.type == "error" else None)
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        await tab.goto(f"{page.address}/console/")
        yield tab
        assert complaints == []


async def say(tab: Tab, text: str) -> None:
    await tab.get_by_label("Your message").fill(text)
    await tab.keyboard.press("Enter")


async def test_a_talk_goes_back_and_forth_without_loading_the_page_again(tab: Tab, tmp_path: Path) -> None:
    await tab.get_by_role("button", name="New conversation").click()
    await expect(tab.locator("article.assistant")).to_contain_text("Dzień dobry! W czym mogę pomóc?")

    await say(tab, "My mail is ann@example.org")

    await expect(tab.locator("article")).to_have_count(3)
    await expect(tab.locator("article.user mark")).to_have_text("[REDACTED:EMAIL]")
    await expect(tab.locator("article.user .redacted")).to_have_text("EMAIL × 1")
    await expect(tab.locator("article.assistant").last).to_contain_text("You said: My mail is [REDACTED:EMAIL]")
    await expect(tab.locator("#writing")).to_be_empty()  # what was streamed gives way to the message itself
    await expect(tab.locator("#note")).to_contain_text("redacted: EMAIL × 1")
    await expect(tab.get_by_label("Your message")).to_be_empty()
    assert "ann@example.org" not in await tab.content()
    await tab.screenshot(path=tmp_path / "talk.png")


async def test_a_message_may_be_said_as_soon_as_the_page_shows(tab: Tab) -> None:
    """Scripts that come late must not turn Enter into a new line that nobody sends."""

    async def late(route: Route) -> None:
        await asyncio.sleep(0.5)
        await route.continue_()

    await tab.route("**/*.js", late)
    await tab.get_by_role("button", name="New conversation").click(no_wait_after=True)

    await say(tab, "Anybody there?")

    await expect(tab.locator("article")).to_have_count(3)


async def test_a_message_reaches_the_talk_without_scripts_and_never_stands_in_an_address(tab: Tab) -> None:
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    await tab.route("**/*.js", lambda route: route.fulfill(body="", content_type="text/javascript"))
    await tab.get_by_role("button", name="New conversation").click()
    await tab.get_by_label("Your message").fill("marmalade")

    await tab.get_by_role("button", name="Send").click()

    await expect(tab.locator("article.user")).to_contain_text("marmalade")
    assert not [address for address in asked if "marmalade" in address]


async def test_a_second_window_sees_the_talk_as_it_happens(tab: Tab) -> None:
    await tab.get_by_role("button", name="New conversation").click()
    other = await tab.context.new_page()
    await other.goto(tab.url)

    await say(tab, "Có ai ở đó không?")

    await expect(other.locator("article.user")).to_contain_text("Có ai ở đó không?")
    await expect(other.locator("article")).to_have_count(3)


async def test_erasing_in_one_window_tells_the_other(tab: Tab) -> None:
    await tab.get_by_role("button", name="New conversation").click()
    other = await tab.context.new_page()
    await other.goto(tab.url)
    await expect(other.locator("article")).to_have_count(1)

    await tab.get_by_role("button", name="Erase this conversation").click()

    await expect(tab.get_by_role("heading", name="Erased")).to_be_visible()
    await expect(other.locator("#note")).to_contain_text("This conversation was erased.")


async def test_a_listener_that_was_turned_away_comes_back_to_where_it_was(tab: Tab, complaints: list[str]) -> None:
    """A proxy answers 502 while the service starts anew: browsers give up then, and the page begins another stream."""
    answers: list[int] = []

    async def proxy(route: Route) -> None:
        answers.append(502 if len(answers) == 1 else 200)
        if len(answers) == 1:
            said = await heard(route.request.url)
            await route.fulfill(body=said, content_type="text/event-stream")
        elif len(answers) == 2:
            await route.fulfill(status=502)
        else:
            await route.continue_()

    await tab.route("**/events?*", proxy)
    await tab.get_by_role("button", name="New conversation").click()
    await expect(tab.locator("article")).to_have_count(3)

    await say(tab, "Still there?")

    await expect(tab.locator("article.user").last).to_contain_text("Still there?")
    await expect(tab.locator("article")).to_have_count(5)
    assert answers[:3] == [200, 502, 200]
    assert [told for told in complaints if "502" in told]
    complaints.clear()


async def heard(stream: str) -> bytes:
    """What a stream tells of one turn, cut off behind it."""
    talk = stream.split("/events")[0]
    async with httpx.AsyncClient(trust_env=False, timeout=20) as client:
        await client.post(talk.replace("/console", "") + "/messages?wait=true", json={"content": "Hello"})
        told = b"retry: 10\n"
        async with client.stream("GET", stream) as answer:
            async for piece in answer.aiter_bytes():
                told += piece
                if told.count(b"</article>") == 2:
                    break
    return told


async def test_half_an_answer_that_failed_gives_way_to_the_next(tab: Tab) -> None:
    await tab.get_by_role("button", name="New conversation").click()

    await say(tab, "be away now")

    await expect(tab.locator("#note")).to_contain_text("No answer came")
    await expect(tab.locator("#writing")).to_be_empty()


async def test_a_receipt_that_comes_late_does_not_hide_that_no_answer_came(tab: Tab) -> None:
    async def late(route: Route) -> None:
        receipt = await route.fetch()
        await expect(tab.locator("#note")).to_contain_text("No answer came")
        await route.fulfill(response=receipt)

    await tab.get_by_role("button", name="New conversation").click()
    await tab.route("**/messages", late)

    await say(tab, "be away now")

    await expect(tab.locator("#note .receipt")).to_contain_text("stored")
    await expect(tab.locator("#note")).to_contain_text("No answer came")

    await tab.unroute("**/messages")
    await say(tab, "marmalade")
    await expect(tab.locator("#note .receipt")).to_have_count(1)
    await expect(tab.locator("#note")).not_to_contain_text("No answer came")


async def test_an_erased_talk_is_gone_from_other_windows_which_ask_for_it_no_more(tab: Tab) -> None:
    await tab.get_by_role("button", name="New conversation").click()
    other = await tab.context.new_page()
    await other.goto(tab.url)
    await expect(other.locator("article")).to_have_count(1)
    await other.evaluate("() => document.addEventListener('htmx:sseClose', () => { document.title = 'no longer' })")

    await tab.get_by_role("button", name="Erase this conversation").click()

    await expect(other.locator("#note")).to_contain_text("This conversation was erased.")
    await expect(other.locator("article")).to_have_count(0)
    await expect(other).to_have_title("no longer")


async def test_what_could_not_be_sent_is_told_and_stays_in_the_field(tab: Tab, complaints: list[str]) -> None:
    await tab.route("**/messages", lambda route: route.abort("connectionrefused"))
    await tab.get_by_role("button", name="New conversation").click()
    await say(tab, "marmalade")
    await expect(tab.locator("#note .problem")).to_contain_text("was not sent")

    await tab.unroute("**/messages")
    await tab.route("**/messages", lambda route: route.fulfill(status=502))
    await tab.get_by_label("Your message").fill("marmalade, please")
    await tab.keyboard.press("Enter")

    await expect(tab.locator("#note .problem")).to_contain_text("502")
    await expect(tab.get_by_label("Your message")).to_have_value("marmalade, please")
    assert [told for told in complaints if "502" in told]
    complaints.clear()


async def test_what_was_refused_is_told_above_the_field_and_not_behind_it(tab: Tab) -> None:
    await tab.set_viewport_size({"width": 400, "height": 300})
    await tab.get_by_role("button", name="New conversation").click()

    await say(tab, "a" * 70_000)

    await expect(tab.locator("#note .problem")).to_contain_text("65,536")
    note, field = await tab.locator("#note").bounding_box(), await tab.locator("#say").bounding_box()
    assert note is not None
    assert field is not None
    assert note["y"] + note["height"] <= field["y"]
