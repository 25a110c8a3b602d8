"""Rules about starts that processes without the code read from the store."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import weft


def shop(url: str) -> weft.App:
    """An app whose workflows have a rule each, and no parameter with a default."""
    app = weft.App(url, durability="fast")

    @app.workflow(singleton=weft.Singleton("customer"))
    async def sync(ctx: weft.Context, customer: str) -> None:
        await ctx.receive("go")

    @app.workflow(debounce=weft.Debounce("1h", "customer"))
    async def publish(customer: str) -> str:
        return customer

    @app.workflow(batch=weft.Batch(size=100, wait="1h", key="customer"))
    async def index(documents: list[dict[str, str]]) -> int:
        return len(documents)

    return app


@pytest.mark.parametrize(
    ("workflow", "given"),
    [
        ("sync", {"customer": "ann"}),
        ("publish", {"customer": "ann"}),
        ("index", {"documents": [{"customer": "ann"}]}),
    ],
)
def test_a_client_without_the_code_obeys_the_rule(tmp_path: Path, workflow: str, given: dict[str, Any]) -> None:
    url = f"sqlite:///{tmp_path / 'weft.db'}"

    async def play() -> list[str]:
        async with shop(url), weft.Client(url) as client:
            handles = [await client.start(workflow, given) for _ in range(2)]
            assert (await handles[0].explain()).status in ("pending", "running")
            return [handle.id for handle in handles]

    first, second = asyncio.run(play())

    assert second == first
