"""Text to syntax tree: tokens, constants, macros, and the words for what cannot be read. `parser.parse` is the way in.

It must not know what names mean.
"""
