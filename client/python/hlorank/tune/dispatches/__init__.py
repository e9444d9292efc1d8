"""Tunes the tiles of a program's dispatches with IREE, and writes a tuning spec."""
