"""The system's Chromium, driven by Playwright."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from playwright.async_api import Browser, async_playwright

# Without these it looks up its maker's hosts at every start.
QUIET_ARGUMENTS = (
    "--no-sandbox",  # it refuses to run as root with one; every page here is our own
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-domain-reliability",
    "--disable-dev-shm-usage",
)


@dataclass(frozen=True, slots=True)
class Chromium:
    executable: str

    @asynccontextmanager
    async def browser(self) -> AsyncIterator[Browser]:
        """A headless browser with an empty profile; closed, with its driver, at the end of the block."""
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=self.executable, args=list(QUIET_ARGUMENTS))
            try:
                yield browser
            finally:
                await browser.close()
