"""Metrics of ranking quality, for every other package."""
