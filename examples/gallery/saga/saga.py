"""A trip over three services. If one refuses, the others are taken back, newest first; if a service is away, it waits."""
from collections.abc import AsyncIterator

import aiohttp

import weft

app = weft.App()
SERVICES = "http://127.0.0.1:9000"


@app.resource
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as session:
        yield session


async def book(http: aiohttp.ClientSession, service: str, trip: str) -> str:
    key = {"Idempotency-Key": weft.task().key}
    async with http.post(f"{SERVICES}/{service}/{trip}", headers=key) as answer:
        if answer.status == 409:
            raise weft.Critical(f"no {service}: {await answer.text()}")
        answer.raise_for_status()
        return await answer.text()


async def cancel(http: aiohttp.ClientSession, service: str, trip: str) -> None:
    async with http.delete(f"{SERVICES}/{service}/{trip}") as answer:
        answer.raise_for_status()


@app.step
async def flight(trip: str, *, http: aiohttp.ClientSession = weft.injected) -> str:
    return await book(http, "flight", trip)


@flight.undo
async def cancel_flight(trip: str, *, http: aiohttp.ClientSession = weft.injected) -> None:
    await cancel(http, "flight", trip)


@app.step
async def hotel(trip: str, *, http: aiohttp.ClientSession = weft.injected) -> str:
    return await book(http, "hotel", trip)


@hotel.undo
async def cancel_hotel(trip: str, *, http: aiohttp.ClientSession = weft.injected) -> None:
    await cancel(http, "hotel", trip)


@app.step
async def car(trip: str, *, http: aiohttp.ClientSession = weft.injected) -> str:
    return await book(http, "car", trip)


@app.workflow
async def trip(name: str) -> list[str]:
    return [await flight(name), await hotel(name), await car(name)]


if __name__ == "__main__":
    print(app.run(trip("kiel-2026"), id="trip-kiel"))
