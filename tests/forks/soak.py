"""Fork many runs at every event, on all cores: ``python -m tests.forks.soak [FORKS] [--seed FIRST]``.

Each seed plays every program, and forks it at each event, with and without edits. What must hold is said in ``worlds``.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import sys

from tests.forks.worlds import forks_of


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.forks.soak", description=__doc__)
    parser.add_argument("forks", nargs="?", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    made, failed, seed = 0, 0, options.seed
    with multiprocessing.Pool(initializer=logging.disable, initargs=(logging.CRITICAL,)) as pool:
        while made < options.forks:
            seeds = range(seed, seed + 2 * multiprocessing.cpu_count())
            seed = seeds[-1] + 1
            for count, wrong in pool.imap_unordered(forks_of, seeds):
                made += count
                failed += len(wrong)
                for line in wrong[:5]:
                    print(line, flush=True)
    print(f"{made:,} forks, {failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
