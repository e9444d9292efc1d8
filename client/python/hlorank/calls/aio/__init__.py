"""The calls for asyncio, from which ``make messages`` generates the blocking ones."""
