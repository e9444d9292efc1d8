# Generated from __init__.py of ``aio``: change that one.
"""The blocking calls; ``make messages`` generates them from ``aio``."""
