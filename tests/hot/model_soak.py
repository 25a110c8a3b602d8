"""Try the larger worlds of the model: ``python -m tests.hot.model_soak [--states MAX] [--walks N] [--only NAME]``."""

from __future__ import annotations

import argparse
import sys
import time

from tests.hot.model_plans import LARGE, SMALL, WILD
from tests.hot.model_search import Search, explore, walk


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hot.model_soak", description=__doc__)
    parser.add_argument("--states", type=int, default=3_000_000, help="how many states of each world at most")
    parser.add_argument("--walks", type=int, default=20_000, help="how many walks through the largest world")
    parser.add_argument("--only", choices=("walks", "small", *LARGE), help="this world only")
    options = parser.parse_args()
    failed = False
    for name, plan in {"small": SMALL, **LARGE}.items():
        if options.only in (None, name):
            begun = time.monotonic()
            failed |= tell(name, explore(plan, states_max=options.states), begun)
    if options.only in (None, "walks"):
        failed |= walks(options.walks)
    return 1 if failed else 0


def walks(count: int) -> bool:
    begun = time.monotonic()
    for seed in range(count):
        found = walk(WILD, seed)
        if found.breach:
            return tell(f"walk {seed}", found, begun)
    print(f"{count} walks: no breach, {time.monotonic() - begun:.0f} s", flush=True)
    return False


def tell(name: str, found: Search, begun: float) -> bool:
    print(f"{name}: {found}, {time.monotonic() - begun:.0f} s", flush=True)
    return bool(found.breach)


if __name__ == "__main__":
    sys.exit(main())
