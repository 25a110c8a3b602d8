"""The raw limit: single-row commits per second of SQLite in WAL mode with ``synchronous=FULL``, nothing else."""

from collections.abc import Iterable
from pathlib import Path

import apsw

from bench.measure import Meter, Sample, main, steps_of

ROW_BYTES = 300


def w1(n: int, directory: Path) -> Iterable[Sample]:
    connection = apsw.Connection(str(directory / "raw.db"))
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    connection.execute("create table log (seq integer primary key, body blob)")
    body = b"x" * ROW_BYTES
    insert = "insert into log (body) values (?)"
    for _ in range(50):
        connection.execute(insert, (body,))
    meter = Meter()
    for _ in range(n):
        connection.execute(insert, (body,))
    return steps_of("W1", n, meter)


if __name__ == "__main__":
    main({"W1": w1})
