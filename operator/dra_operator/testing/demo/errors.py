"""How the demo fails. Raised by everything in this package, caught by `__main__` only."""


class DemoFailed(Exception):
    """Something that the demo claims did not happen, or it could not run; the text says what, and what to do.

    Args:
        message: for the person who runs the demo.
    """
