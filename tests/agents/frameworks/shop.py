"""What the programs of all frameworks share: tools that write down that they ran, and the workflow's end."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import weft

FOLDER = Path(os.environ.get("SHOP_FOLDER", "."))
MODEL_URL = os.environ.get("SHOP_MODEL_URL", "http://127.0.0.1:9/v1")


def note(line: str) -> None:
    """Write down that something happened outside."""
    with (FOLDER / "calls").open("a") as calls:
        calls.write(line + "\n")
        calls.flush()


def noted(folder: Path) -> list[str]:
    path = folder / "calls"
    return path.read_text().splitlines() if path.exists() else []


async def find(order_id: str) -> dict[str, str]:
    note(f"find {order_id}")
    return {"order_id": order_id, "state": "delivered"}


async def pack(order_id: str) -> str:
    """Hang until the process is killed, and work in the next one."""
    note(f"pack {order_id}")
    if not (FOLDER / "killed").exists():
        await asyncio.Event().wait()
    return "packed"


def pay(order_id: str, cents: int) -> str:
    note(f"pay {order_id} {cents}")
    return f"paid {cents}"


def main(app: weft.App, workflow: Any) -> None:
    """Run the workflow, or go on with it."""
    print(app.run(workflow("Send o-1 again."), id="ticket-1"))
