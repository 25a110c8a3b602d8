"""Play many worlds on all cores: ``python -m tests.sim.soak 100000 [--seed FIRST] [--only code|graphs]``.

Seeds that fail are kept for ever.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time

from tests.sim.judge import CASTS, REGRESSIONS, Verdict, failures, regressions

PER_CHUNK = 50
Part = tuple[str, range]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.soak", description=__doc__)
    parser.add_argument("seeds", nargs="?", type=int, default=100_000, help="how many worlds of each kind")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--only", choices=sorted(CASTS), help="worlds of this kind only")
    options = parser.parse_args()
    casts = [options.only] if options.only else sorted(CASTS)
    last = options.seed + options.seeds
    failed = play([
        (cast, range(first, min(first + PER_CHUNK, last)))
        for first in range(options.seed, last, PER_CHUNK)
        for cast in casts
    ])  # fmt: skip
    keep({(verdict.cast, verdict.seed) for verdict in failed})
    print(f"{options.seeds} worlds of {' and '.join(casts)}, {len(failed)} failed{': ' if failed else ''}", end="")
    print(", ".join(f"{verdict.cast} {verdict.seed}" for verdict in failed))
    return 1 if failed else 0


def failures_of(part: Part) -> list[Verdict]:
    cast, seeds = part
    return failures(seeds, CASTS[cast])


def play(parts: list[Part]) -> list[Verdict]:
    """The verdicts of all that failed, with a line of progress now and then."""
    failed: list[Verdict] = []
    begun = said = time.monotonic()
    done = 0
    with multiprocessing.Pool(min(os.cpu_count() or 1, len(parts))) as pool:
        for found in pool.imap_unordered(failures_of, parts):
            done += 1
            for verdict in found:
                failed.append(verdict)
                print(verdict, flush=True)
            if time.monotonic() - said > 10:
                said = time.monotonic()
                share = done / len(parts)
                left = (said - begun) * (1 - share) / share
                print(f"{share:6.1%}  {len(failed)} failed  about {left / 60:.0f} min left", flush=True)
    return failed


def keep(seeds: set[tuple[str, int]]) -> None:
    """Seeds that failed are played on every change from now on."""
    new = sorted(seeds - set(regressions()))
    if new:
        with REGRESSIONS.open("a", encoding="utf-8") as file:
            file.writelines(f"{cast} {seed}\n" for cast, seed in new)


if __name__ == "__main__":
    sys.exit(main())
