"""Whoever starts an agent says what it is asked, and not what it may do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import weft

SPEC = {"agent": "support", "models": ["fast"], "approve": "never", "tools": []}


@pytest.mark.parametrize("more", [{"spec": SPEC}, {"allowed_tools": ["*"]}], ids=str)
def test_a_client_gives_an_agent_no_rights(more: dict[str, Any], tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/weft.db"
    app = weft.App(url)
    app.model("fast", url="http://127.0.0.1:9/v1", retries=weft.Retry(1))
    app.agent("support", model="fast")

    async def go() -> None:
        async with app, weft.Client(url) as client:
            handle = await client.start("support", {"agent": "support", "prompt": "Hi", **more})
            await handle.result()

    with pytest.raises(weft.RunFailed, match=r"has a spec or allowed_tools\."):
        asyncio.run(go())
