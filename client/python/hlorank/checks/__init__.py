"""Checks of what callers pass, at the call where they pass it."""
