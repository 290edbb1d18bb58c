"""`python -m tests.docs`, which is `make docs`: write every page, and every manifest, that is made out of code."""

from __future__ import annotations

from .pages import FILES, ROOT


def main() -> None:
    """Write the files that are stale, and say which."""
    for name, render in FILES.items():
        path = ROOT / name
        text = render()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"{name} written")


if __name__ == "__main__":
    main()
