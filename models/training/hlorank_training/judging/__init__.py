"""Measures how well models rank held-out layouts, tiles, fusions and columns of feature sets."""
