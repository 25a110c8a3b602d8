"""Patch many random graph runs, on all cores: ``python -m tests.graph.patch_soak [RUNS] [--seed FIRST]``.

What must hold is said in ``test_random_patches``.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import sys
import traceback

from tests.graph.test_random_patches import go_back_and_play, instruct_and_play, patch_ahead_and_play, patch_and_play

PLAYS = (patch_and_play, patch_ahead_and_play, go_back_and_play, instruct_and_play)


def wrong_with(seed: int) -> str:
    """Return what is wrong with the run of a seed, or nothing."""
    try:
        for play in PLAYS:
            play(seed)
    except Exception:
        return f"seed {seed}: {traceback.format_exc(limit=-3)}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.graph.patch_soak", description=__doc__)
    parser.add_argument("runs", nargs="?", type=int, default=30_000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    failed = 0
    with multiprocessing.Pool(initializer=logging.disable, initargs=(logging.CRITICAL,)) as pool:
        seeds = range(options.seed, options.seed + options.runs)
        for wrong in pool.imap_unordered(wrong_with, seeds, chunksize=20):
            if wrong:
                failed += 1
                print(wrong, flush=True)
    print(f"{options.runs:,} runs, {failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
