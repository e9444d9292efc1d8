"""Graphs as a client holds and sends them."""
