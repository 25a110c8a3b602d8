"""Play many worlds on all cores: ``python -m tests.sim.soak 100000 [--seed FIRST]``.

Seeds that fail are kept for ever.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time

from tests.sim.judge import REGRESSIONS, Verdict, failures, regressions

PER_CHUNK = 50


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.soak", description=__doc__)
    parser.add_argument("seeds", nargs="?", type=int, default=100_000, help="how many worlds")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    last = options.seed + options.seeds
    chunks = [range(first, min(first + PER_CHUNK, last)) for first in range(options.seed, last, PER_CHUNK)]
    failed = play(chunks)
    keep([verdict.seed for verdict in failed])
    print(f"{options.seeds} worlds, {len(failed)} failed{': ' if failed else ''}", end="")
    print(", ".join(str(verdict.seed) for verdict in failed))
    return 1 if failed else 0


def play(chunks: list[range]) -> list[Verdict]:
    """The verdicts of all that failed, with a line of progress now and then."""
    failed: list[Verdict] = []
    begun = said = time.monotonic()
    done = 0
    with multiprocessing.Pool(min(os.cpu_count() or 1, len(chunks))) as pool:
        for found in pool.imap_unordered(failures, chunks):
            done += 1
            for verdict in found:
                failed.append(verdict)
                print(verdict, flush=True)
            if time.monotonic() - said > 10:
                said = time.monotonic()
                share = done / len(chunks)
                left = (said - begun) * (1 - share) / share
                print(f"{share:6.1%}  {len(failed)} failed  about {left / 60:.0f} min left", flush=True)
    return failed


def keep(seeds: list[int]) -> None:
    """Seeds that failed are played on every change from now on."""
    new = sorted(set(seeds) - set(regressions()))
    if new:
        with REGRESSIONS.open("a", encoding="utf-8") as file:
            file.writelines(f"{seed}\n" for seed in new)


if __name__ == "__main__":
    sys.exit(main())
