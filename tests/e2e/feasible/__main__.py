"""`python -m tests.e2e.feasible --seeds 500 [--first 1000]`: many seeds, by hand. Exits with 1 if there are differences."""

from __future__ import annotations

import argparse
import sys
import time

from .compare import Comparison, compare, oracle

SHOWN = 20


def main() -> int:
    """Runs the seeds, telling how far it is, and prints the differences and the reasons that occurred."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.feasible", description=__doc__)
    parser.add_argument("--seeds", type=int, default=50, help="how many worlds (default %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default %(default)s)")
    flags = parser.parse_args()
    found = Comparison()
    started = time.monotonic()
    with oracle() as asked:
        for number, found in enumerate(compare(asked, range(flags.first, flags.first + flags.seeds)), 1):
            line = f"{number} worlds, {found.pairs} pairs, {len(found.differences)} differences"
            print(f"\r{line}, {time.monotonic() - started:.0f} s", end="", flush=True)
    print()
    for text, count in sorted(found.refused.items(), key=lambda item: -item[1]):
        print(f"{count:8} {text}")
    print(f"{found.passed:8} passed")
    print(*found.differences[:SHOWN], sep="\n")
    return 1 if found.differences else 0


if __name__ == "__main__":
    sys.exit(main())
