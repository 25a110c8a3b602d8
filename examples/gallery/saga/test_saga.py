import asyncio
from collections import Counter

import pytest
import saga
from aiohttp import web
from saga import app, trip

import weft


class Services:
    """Three services in one real server. Each may refuse, or be away a few times."""

    def __init__(self) -> None:
        self.booked: list[str] = []
        self.cancelled: list[str] = []
        self.refuses = ""
        self.away: Counter[str] = Counter()

    async def book(self, request: web.Request) -> web.Response:
        service = request.match_info["service"]
        if self.away[service]:
            self.away[service] -= 1
            return web.Response(status=503)
        if service == self.refuses:
            return web.Response(status=409, text="sold out")
        if request.headers["Idempotency-Key"]:
            self.booked.append(service)
        return web.Response(text=f"{service}-1")

    async def cancel(self, request: web.Request) -> web.Response:
        self.cancelled.append(request.match_info["service"])
        return web.Response()

    async def play(self, store: str) -> list[str]:
        server = web.Application()
        server.add_routes([web.post("/{service}/{trip}", self.book), web.delete("/{service}/{trip}", self.cancel)])
        runner = web.AppRunner(server)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        saga.SERVICES = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            app.url = store
            async with app:
                return await (await app.start(trip("kiel"))).result()
        finally:
            await runner.cleanup()


def test_all_three_are_booked() -> None:
    assert asyncio.run(Services().play("memory://")) == ["flight-1", "hotel-1", "car-1"]


def test_a_service_that_refuses_takes_back_the_others_newest_first() -> None:
    services = Services()
    services.refuses = "car"
    with pytest.raises(weft.RunFailed, match="no car: sold out"):
        asyncio.run(services.play("memory://"))
    assert services.cancelled == ["hotel", "flight"]


def test_a_service_that_is_away_for_a_moment_is_asked_again() -> None:
    services = Services()
    services.away["hotel"] = 1
    assert len(asyncio.run(services.play("memory://"))) == 3
    assert services.booked == ["flight", "hotel", "car"]
