"""`python -m tests.docs`, which is `make docs`: write every page that is made out of code."""

from __future__ import annotations

from .pages import DOCS, PAGES


def main() -> None:
    """Write the pages that are stale, and say which."""
    for name, render in PAGES.items():
        path = DOCS / name
        text = render()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"docs/{name} written")


if __name__ == "__main__":
    main()
