"""A crawler: follow links of a site, at most two requests at once and ten in a second for each host."""
import re
from collections.abc import AsyncIterator
from urllib.parse import urljoin, urlsplit

import aiohttp

import weft

app = weft.App()
LINK = re.compile(r'href="([^"#]+)"')


@app.resource
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as session:
        yield session


@app.step(limit=weft.Limit(concurrency=2, rate="10/s", key="host"), retries=2)
async def fetch(url: str, host: str, *, http: aiohttp.ClientSession = weft.injected) -> list[str]:
    """Return the links of a page. The limit holds over all hosts of Weft and all runs."""
    async with http.get(url) as answer:
        if answer.status == 404:
            return []
        answer.raise_for_status()
        return sorted({urljoin(url, link) for link in LINK.findall(await answer.text())})


@app.workflow
async def crawl(ctx: weft.Context, start: str, pages_max: int = 200) -> list[str]:
    site = urlsplit(start).netloc
    seen, wave, depth = {start}, [start], 0
    while wave:
        outcomes = await ctx.map_outcomes(f"depth-{depth}", lambda url: fetch(url, site), wave, width=20)
        links = {link for outcome in outcomes if isinstance(outcome, weft.Ok) for link in outcome.value}
        wave = sorted(link for link in links - seen if urlsplit(link).netloc == site)[: pages_max - len(seen)]
        seen.update(wave)
        depth += 1
    return sorted(seen)


if __name__ == "__main__":
    import sys

    print(*app.run(crawl(sys.argv[1]), id=f"crawl-{urlsplit(sys.argv[1]).netloc}"), sep="\n")
