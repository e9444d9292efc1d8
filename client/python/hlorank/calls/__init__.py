"""The calls of a server, once for asyncio and once blocking.

``aio`` is written by hand, and ``make messages`` generates ``sync`` from it.
"""
