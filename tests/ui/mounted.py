"""The shop inside another application, below a prefix: ``python -m tests.ui.mounted PORT``."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI

from tests.ui.shop import app


@asynccontextmanager
async def hosting(_: FastAPI) -> AsyncIterator[None]:
    async with app:
        yield


outer = FastAPI(lifespan=hosting)
outer.mount("/weft", app.router)


@outer.get("/healthz")
def is_well() -> str:
    return "well"


if __name__ == "__main__":
    uvicorn.run(outer, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
