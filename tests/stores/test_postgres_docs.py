"""What the page about Postgres says of the database is so."""

import asyncio
import re
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from tests import servers
from weft.stores.postgres import PostgresStore

PAGE = (Path(__file__).parents[2] / "docs" / "postgres.md").read_text("utf-8")
BLOCKS = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
STATEMENTS = [text.strip() for block in BLOCKS for text in block.split(";") if text.strip()]
VIEWS = dict(re.findall(r"^\| `(weft_\w+)` \| [^|]+ \| `([^`]+)` \|$", PAGE, re.MULTILINE))


@pytest.fixture
def url() -> str:
    found = servers.database("docs")

    async def make() -> None:
        store = PostgresStore(found)
        await store.open()
        await store.close()

    asyncio.run(make())
    return found


def ask(url: str, text: str) -> list[Any]:
    async def once() -> list[Any]:
        connection = await asyncpg.connect(url)
        try:
            return list(await connection.fetch(text))
        finally:
            await connection.close()

    return asyncio.run(once())


@pytest.mark.parametrize("text", STATEMENTS, ids=range(1, len(STATEMENTS) + 1))
def test_a_statement_of_the_page_runs(url: str, text: str) -> None:
    assert ask(url, text) == []


INNER = ("weft_endings", "weft_handouts")
"""Views that other views read."""


def test_the_views_have_the_columns_that_the_page_names(url: str) -> None:
    rows = ask(
        url,
        "SELECT table_name, string_agg(column_name, ' ' ORDER BY ordinal_position) AS columns "
        "FROM information_schema.columns WHERE table_schema = 'weft' AND table_name LIKE 'weft\\_%' GROUP BY 1",
    )

    found = {row["table_name"]: row["columns"] for row in rows if row["table_name"] not in INNER}
    assert len(VIEWS) == 4
    assert found == VIEWS
