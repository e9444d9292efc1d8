"""Markdown tables (``tables``) and SVG plots (``plots``) for every other package."""
