"""Play many worlds of schedules on all cores: ``python -m tests.schedule.soak [WORLDS] [--seed FIRST]``."""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import sys

from tests.schedule.worlds import failures

PER_CHUNK = 50


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.schedule.soak", description=__doc__)
    parser.add_argument("worlds", nargs="?", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    last = options.seed + options.worlds
    parts = [range(one, min(one + PER_CHUNK, last)) for one in range(options.seed, last, PER_CHUNK)]
    failed: dict[int, list[str]] = {}
    with multiprocessing.Pool(initializer=logging.disable, initargs=(logging.CRITICAL,)) as pool:
        for found in pool.imap_unordered(failures, parts):
            failed |= found
            for seed, wrong in found.items():
                print(f"seed {seed}: {'; '.join(wrong[:5])}", flush=True)
    print(f"{options.worlds} worlds of schedules, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
