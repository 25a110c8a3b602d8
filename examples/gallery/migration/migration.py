"""Migrate 10,000 records in batches of 500: resume after a crash, skip what is done, count what does not fit."""
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import weft

app = weft.App()
BATCH = 500


@dataclass
class Report:
    moved: int
    refused: list[int]


@dataclass
class Batch:
    last: int
    moved: int
    refused: list[int]


@app.resource
async def databases() -> AsyncIterator[sqlite3.Connection]:
    """The new database, with the old one attached. Both are files beside this program."""
    connection = sqlite3.connect(Path("new.db"), check_same_thread=False)
    connection.execute("CREATE TABLE IF NOT EXISTS customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, cents INTEGER NOT NULL)")
    connection.execute("ATTACH 'old.db' AS old")
    yield connection
    connection.close()


@app.step
async def move(after: int, *, databases: sqlite3.Connection = weft.injected) -> Batch:
    """Move the next batch in one transaction. Doing it again changes nothing, so a crash in the middle is harmless."""
    rows = databases.execute("SELECT id, name, euros FROM old.client WHERE id > ? ORDER BY id LIMIT ?", (after, BATCH)).fetchall()
    good = [(number, name, round(float(euros) * 100)) for number, name, euros in rows if euros is not None]
    refused = [number for number, _, euros in rows if euros is None]
    with databases:
        databases.executemany("INSERT INTO customer VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING", good)
    return Batch(rows[-1][0] if rows else after, len(good), refused)


@app.workflow
async def migrate(ctx: weft.Context) -> Report:
    report, last = Report(0, []), 0
    while True:
        batch = await move(last)
        if batch.last == last:
            return report
        report.moved += batch.moved
        report.refused += batch.refused
        last = batch.last


def fill_old(count: int = 10_000) -> None:
    """Make an old database to play with. Every thousandth record has no amount."""
    with sqlite3.connect("old.db") as old:
        old.execute("CREATE TABLE IF NOT EXISTS client (id INTEGER PRIMARY KEY, name TEXT, euros TEXT)")
        rows = ((n, f"client {n}", None if n % 1_000 == 0 else f"{n / 100:.2f}") for n in range(1, count + 1))
        old.executemany("INSERT OR IGNORE INTO client VALUES (?, ?, ?)", rows)


if __name__ == "__main__":
    fill_old()
    print(app.run(migrate(), id="migration-2026"))
