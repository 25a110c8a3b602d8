import asyncio

from aiohttp import web
from crawler import app, crawl


class Site:
    """A real site of 31 pages: each links to two more. It notes how many requests it had at once."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.asked: list[str] = []

    async def page(self, request: web.Request) -> web.Response:
        number = int(request.match_info["number"])
        self.asked.append(str(number))
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.01)
        self.now -= 1
        links = [2 * number + 1, 2 * number + 2] if number < 15 else []
        text = "".join(f'<a href="/{link}">more</a>' for link in [*links, 0])
        return web.Response(text=f'{text}<a href="https://elsewhere.example/">x</a>', content_type="text/html")


async def play(site: Site) -> list[str]:
    server = web.Application()
    server.add_routes([web.get("/{number}", site.page)])
    runner = web.AppRunner(server)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    app.url = "memory://"
    try:
        async with app:
            return await (await app.start(crawl(f"http://127.0.0.1:{runner.addresses[0][1]}/0"))).result()
    finally:
        await runner.cleanup()


def test_every_page_is_fetched_once_and_never_more_than_two_at_a_time() -> None:
    site = Site()
    found = asyncio.run(play(site))
    assert len(found) == 31
    assert sorted(site.asked) == sorted(map(str, range(31)))
    assert site.most <= 2
