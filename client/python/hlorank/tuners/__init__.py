"""Adapters of other tuners, one module each, which translate a tuner's words into an Experience.

No module of the client imports them, and each needs the tuner that it is for. What a server is
asked, what is reported, and what happens while the server is away is the same for all:
``hlorank.Experience`` with a ``hlorank.Fallback``. docs/in-your-tuner.md shows how to write one.
"""
