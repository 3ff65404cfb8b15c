"""The browser of the harness."""

import asyncio


async def answer_with_a_page(reader, writer):
    await reader.readuntil(b"\r\n\r\n")
    body = b"<title>Threadkeep</title><p id=said>a</p><script>said.textContent += ' b'</script>"
    writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    await writer.drain()
    writer.close()


async def test_chromium_renders_a_local_page_and_runs_its_script(chromium):
    async with await asyncio.start_server(answer_with_a_page, "127.0.0.1", 0) as web, chromium.browser() as browser:
        page = await browser.new_page()
        await page.goto(f"http://127.0.0.1:{web.sockets[0].getsockname()[1]}/")
        assert await page.title() == "Threadkeep"
        assert await page.inner_text("#said") == "a b"
