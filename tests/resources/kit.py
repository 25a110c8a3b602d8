"""Resources to test with: something that cannot be stored, and a record of when it was open."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

import weft


class Pool:
    """Something that cannot be stored."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.used = 0


class BigPool(Pool): ...


class Named(Protocol):
    name: str


@dataclass
class Settings:
    shop: str


class Shop:
    def __init__(self, pool: Pool) -> None:
        self.pool = pool


def add_database(app: weft.App, said: list[str]) -> weft.Resource[Pool]:
    @app.resource
    async def database() -> AsyncIterator[Pool]:
        said.append("open database")
        yield Pool("real")
        said.append("close database")

    return database
