"""`python -m tests.conformance.spec`: a line for each case whose answer is not the suite's, known ones last; exit status 1 on unknown ones."""

from __future__ import annotations

import sys

from .running import cases, difference, different


def main() -> int:
    """Run all cases; returns the exit status."""
    known = different()
    found = {case.id: text for case in cases() if (text := difference(case))}
    news = found.keys() - known.keys()
    for case in sorted(found, key=lambda case: (case in known, case)):
        print(f"{case}: {found[case]}" + (f" ({known[case]})" if case in known else ""))
    total = len(cases())
    print(f"{total - len(found)} of {total} agree, {len(found) - len(news)} are known to differ")
    return 1 if news else 0


if __name__ == "__main__":
    sys.exit(main())
