"""`dra-operator run`: settings, wiring, supervision, shutdown. The top of the layers; nothing imports it."""

from .command import main

__all__ = ["main"]
